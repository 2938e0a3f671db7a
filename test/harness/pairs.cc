// See pairs.h. Each new row starts from a pair that no row has yet, fills the other factors at
// random a few dozen times, and keeps the filling that meets the most new pairs.
#include "harness/pairs.h"

#include "harness/number.h"

namespace fccl::test {
namespace {

// The pairs that no row holds yet. Values of all factors are numbered through; a pair is a cell of
// the upper triangle of a square.
class OpenPairs {
 public:
  explicit OpenPairs(const std::vector<int>& sizes) : sizes_(sizes) {
    for (const int size : sizes) {
      first_.push_back(values_);
      values_ += static_cast<size_t>(size);
    }
    open_.resize(values_ * values_);
    for (size_t f = 0; f < sizes.size(); ++f)
      for (size_t g = f + 1; g < sizes.size(); ++g)
        for (int a = 0; a < sizes[f]; ++a)
          for (int b = 0; b < sizes[g]; ++b) open_[cell(f, a, g, b)] = 1;
  }

  // A row of -1 but for the next open pair, which is taken; empty if there is none.
  FactorRow take() {
    while (next_ < open_.size() && open_[next_] == 0) ++next_;
    if (next_ == open_.size()) return {};
    open_[next_] = 0;
    FactorRow row(sizes_.size(), -1);
    place(row, next_ / values_);
    place(row, next_ % values_);
    return row;
  }
  int count(const FactorRow& row) const {
    int found = 0;
    for (size_t f = 0; f < row.size(); ++f)
      for (size_t g = f + 1; g < row.size(); ++g) found += open_[cell(f, row[f], g, row[g])];
    return found;
  }
  void close(const FactorRow& row) {
    for (size_t f = 0; f < row.size(); ++f)
      for (size_t g = f + 1; g < row.size(); ++g) open_[cell(f, row[f], g, row[g])] = 0;
  }

 private:
  size_t cell(size_t f, int a, size_t g, int b) const {
    return (first_[f] + static_cast<size_t>(a)) * values_ + first_[g] + static_cast<size_t>(b);
  }
  void place(FactorRow& row, size_t value) const {
    size_t f = sizes_.size() - 1;
    while (first_[f] > value) --f;
    row[f] = static_cast<int>(value - first_[f]);
  }

  const std::vector<int> sizes_;
  std::vector<size_t> first_;
  size_t values_ = 0;
  size_t next_ = 0;
  std::vector<char> open_;
};

FactorRow filled(FactorRow row, const std::vector<int>& sizes, uint64_t seed) {
  for (size_t f = 0; f < sizes.size(); ++f)
    if (row[f] < 0) row[f] = static_cast<int>(mix(seed, f) % static_cast<uint64_t>(sizes[f]));
  return row;
}

}  // namespace

std::vector<FactorRow> all_pairs(const std::vector<int>& sizes, uint64_t seed,
                                 const std::function<bool(const FactorRow&)>& allowed) {
  constexpr uint64_t kTries =
      2000;  // to find any row with a pair; a pair that has none is given up
  constexpr int kKept = 40;  // allowed rows to choose from
  OpenPairs open(sizes);
  std::vector<FactorRow> rows;
  for (FactorRow start = open.take(); !start.empty(); start = open.take()) {
    FactorRow best;
    int best_count = -1;
    int kept = 0;
    for (uint64_t i = 0; i < kTries && kept < kKept; ++i) {
      FactorRow row = filled(start, sizes, mix(seed, rows.size(), i));
      if (!allowed(row)) continue;
      ++kept;
      const int count = open.count(row);
      if (count > best_count) best = std::move(row), best_count = count;
    }
    if (best.empty()) continue;
    open.close(best);
    rows.push_back(std::move(best));
  }
  return rows;
}

}  // namespace fccl::test
