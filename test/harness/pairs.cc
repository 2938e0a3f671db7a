// See pairs.h. Each new row starts from a pair that no row has yet, fills the other factors at
// random a few dozen times, and keeps the filling that meets the most new pairs.
#include "harness/pairs.h"

#include <set>
#include <tuple>

#include "harness/number.h"

namespace fccl::test {
namespace {

struct Pair {
  int factor, value, other_factor, other_value;
  bool operator<(const Pair& b) const {
    return std::tie(factor, value, other_factor, other_value) <
           std::tie(b.factor, b.value, b.other_factor, b.other_value);
  }
};

std::vector<Pair> pairs_of(const FactorRow& row) {
  std::vector<Pair> pairs;
  for (int f = 0; f < static_cast<int>(row.size()); ++f)
    for (int g = f + 1; g < static_cast<int>(row.size()); ++g)
      pairs.push_back({f, row[static_cast<size_t>(f)], g, row[static_cast<size_t>(g)]});
  return pairs;
}

std::set<Pair> every_pair(const std::vector<int>& sizes) {
  std::set<Pair> pairs;
  for (int f = 0; f < static_cast<int>(sizes.size()); ++f)
    for (int g = f + 1; g < static_cast<int>(sizes.size()); ++g)
      for (int a = 0; a < sizes[static_cast<size_t>(f)]; ++a)
        for (int b = 0; b < sizes[static_cast<size_t>(g)]; ++b) pairs.insert({f, a, g, b});
  return pairs;
}

FactorRow random_row(const std::vector<int>& sizes, const Pair& fixed, uint64_t seed) {
  FactorRow row;
  for (size_t f = 0; f < sizes.size(); ++f)
    row.push_back(static_cast<int>(mix(seed, f) % static_cast<uint64_t>(sizes[f])));
  row[static_cast<size_t>(fixed.factor)] = fixed.value;
  row[static_cast<size_t>(fixed.other_factor)] = fixed.other_value;
  return row;
}

}  // namespace

std::vector<FactorRow> all_pairs(const std::vector<int>& sizes, uint64_t seed,
                                 const std::function<bool(const FactorRow&)>& allowed) {
  constexpr int kTries = 4000;  // to find any row with a pair; a pair that has none is given up
  constexpr int kKept = 40;  // allowed rows to choose from
  std::set<Pair> open = every_pair(sizes);
  std::vector<FactorRow> rows;
  while (!open.empty()) {
    const Pair wanted = *open.begin();
    FactorRow best;
    size_t best_count = 0;
    int kept = 0;
    for (int i = 0; i < kTries && kept < kKept; ++i) {
      FactorRow row =
          random_row(sizes, wanted, mix(seed, rows.size(), open.size(), static_cast<uint64_t>(i)));
      if (!allowed(row)) continue;
      ++kept;
      size_t count = 0;
      for (const Pair& pair : pairs_of(row)) count += open.count(pair);
      if (count > best_count) best = std::move(row), best_count = count;
    }
    open.erase(wanted);
    if (best.empty()) continue;
    for (const Pair& pair : pairs_of(best)) open.erase(pair);
    rows.push_back(std::move(best));
  }
  return rows;
}

}  // namespace fccl::test
