// The table of latencies (latency.h) beside the peers' and the floor. Every launch shape that could
// be best is tried.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "gpu/checks.h"
#include "gpu/latency.h"
#include "harness/number.h"

namespace fccl::test {
namespace {

std::vector<Variant> variants(int rows, int packs, bool quick) {
  std::vector<Variant> all{{1, 0, true, false, ProtocolKind::Lamport},
                           {1, 0, true, true, ProtocolKind::Lamport}};
  for (const int held : {1, 2, 4}) {
    const int threads = (packs / held + 31) / 32 * 32;
    if (threads > held_max_threads(held, 2) || threads < 64 || (quick && held > 1)) continue;
    for (int per_sm = 1; per_sm <= 8; ++per_sm) {
      if (threads * per_sm > 1024) break;
      if (per_sm > 1 && rows <= 132 * (per_sm - 1)) break;
      if (held == 1 && rows <= 132) break;  // is the chosen one
      all.push_back({held, per_sm, true, false, ProtocolKind::Lamport});
    }
  }
  if (!quick) {
    all.push_back({1, 0, false, false, ProtocolKind::Lamport});
    all.push_back({0, 1, true, false, ProtocolKind::Lamport});
    all.push_back({0, 1, true, false, ProtocolKind::Flags});
    if (static_cast<int64_t>(rows) * packs * 16 <= 1 << 20)
      all.push_back({0, 1, true, false, ProtocolKind::LL});
  }
  return all;
}

// What was found at one shape, in us.
struct Found {
  double chosen = 0, early = 0, best = 1e9;
  std::string best_name, all;
};

Found measure(Bench& bench, TypeKind type, int rows, int hidden, bool quick, std::FILE* csv) {
  Found found;
  const int packs = hidden * element_bytes(type) / 16;
  for (const Variant& v : variants(rows, packs, quick)) {
    if (v.packs == 1 && packs > held_max_threads(1, 2)) continue;
    const Figure f = bench.run(type, rows, hidden, v);
    if (csv != nullptr)
      std::fprintf(csv,
                   "%s,%d,%d,%s,%.3f,%.3f\n",
                   type_name(type),
                   rows,
                   hidden,
                   v.name().c_str(),
                   f.least,
                   f.median);
    char text[64];
    std::snprintf(text, sizeof text, " [%s %.2f, %.2f]", v.name().c_str(), f.least, f.median);
    found.all += text;
    if (v.chosen() && v.dependent) (v.early ? found.early : found.chosen) = f.least;
    if (f.least >= found.best) continue;
    found.best = f.least;
    found.best_name = v.name();
  }
  std::printf("%s %d x %d:%s\n", type_name(type), rows, hidden, found.all.c_str());
  std::fflush(stdout);
  return found;
}

// Ratios over all shapes.
struct Ratios {
  double log_sum = 0, most = 0, least = 1e9;
  int count = 0;
  void add(double ratio) {
    log_sum += std::log(ratio);
    most = std::max(most, ratio);
    least = std::min(least, ratio);
    ++count;
  }
  double mean() const { return std::exp(log_sum / std::max(count, 1)); }
};

void print_table(const std::vector<Found>& found) {
  std::printf(
      "\nTP2 bf16 in graphs, us per call. The chosen shape, with early triggers, the best of all; "
      "the\n"
      "better of the chosen ones over the floor, over the one-wave bound; the best peer over it.\n"
      " tokens hidden | chosen  early   best | floor ratio | bound ratio |   peer ratio\n");
  Ratios floor, bound, peer;
  for (size_t i = 0; i < found.size(); ++i) {
    const Anchor& at = anchors()[i];
    const Found& f = found[i];
    const double us = std::min(f.chosen, f.early);
    const double wave = one_wave_bound(at);
    floor.add(us / at.floor);
    bound.add(us / wave);
    peer.add(at.peer / us);
    std::printf("%7d %6d | %6.2f %6.2f %6.2f | %5.2f %5.3f | %5.2f %5.3f | %6.2f %5.2f | %s\n",
                at.rows,
                at.hidden,
                f.chosen,
                f.early,
                f.best,
                at.floor,
                us / at.floor,
                wave,
                us / wave,
                at.peer,
                at.peer / us,
                f.best_name.c_str());
  }
  std::printf(
      "geometric mean: %.3f of the floor (most %.3f), %.3f of the bound (most %.3f), best peer "
      "%.2f "
      "times as long (least %.2f)\n",
      floor.mean(),
      floor.most,
      bound.mean(),
      bound.most,
      peer.mean(),
      peer.least);
}

}  // namespace

int run_bench(int devices, bool quick, const char* csv_path) {
  if (devices < 2) {
    std::printf("bench: needs two GPUs\n");
    return 0;
  }
  Bench bench(devices, 2, uint64_t{2048} * 8192 * 2);
  std::FILE* csv = csv_path != nullptr ? std::fopen(csv_path, "w") : nullptr;
  if (csv != nullptr) std::fprintf(csv, "type,rows,hidden,variant,least_us,median_us\n");
  for (const TypeKind type : {TypeKind::F16, TypeKind::F32})
    for (const int rows : {1, 16, 128, 1024}) measure(bench, type, rows, 4096, true, csv);
  std::vector<Found> found;
  for (const Anchor& at : anchors())
    found.push_back(measure(bench, TypeKind::BF16, at.rows, at.hidden, quick, csv));
  if (csv != nullptr) std::fclose(csv);
  print_table(found);
  if (!bench.healthy()) std::printf("COMMUNICATOR FAILED\n");
  return bench.healthy() ? 0 : 1;
}

}  // namespace fccl::test
