// What bounds a shape in one wave: the kernel with stages left out or done twice, and the kernel
// with a clock.
#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "gpu/checks.h"
#include "gpu/latency.h"

namespace fccl::test {
namespace {

double median(std::vector<double>& all) {
  std::sort(all.begin(), all.end());
  return all.empty() ? 0.0 : all[all.size() / 2];
}

// One shape: the slowest warp of rank 0 reaches each mark so long after its block had pushed, and
// what is left of the call then: launch, load and push.
void print_timeline(Bench& bench, const Anchor& at, double cycles_per_us) {
  Variant variant{1, 1, true, false, ProtocolKind::Lamport};
  const double whole = bench.run(TypeKind::BF16, at.rows, at.hidden, variant).least;
  variant.timed = true;
  const double timed = bench.run(TypeKind::BF16, at.rows, at.hidden, variant).least;
  const std::vector<WarpMarks> all = bench.marks(0);
  std::printf("%7d %6d | %6.2f %6.2f |", at.rows, at.hidden, whole, timed);
  double done = 0;
  for (int m = 1; m < kMarks; ++m) {
    std::vector<double> slowest;
    for (int call = 0; call < kTimedCalls; ++call) {
      uint32_t most = 0;
      for (int block = 0; block < at.rows; ++block) {
        const WarpMarks* warps =
            &all[static_cast<size_t>(call * kTimedBlocks + block) * kTimedWarps];
        for (int w = 0; w < at.hidden / 8 / 32; ++w)
          most = std::max(most, warps[w].clock[m] - warps[0].clock[0]);
      }
      slowest.push_back(most / cycles_per_us);
    }
    done = median(slowest);
    std::printf(" %8.2f", done);
  }
  std::printf(" | %6.2f\n", timed - done);
  std::fflush(stdout);
}

}  // namespace

int run_timeline(int devices) {
  std::printf(
      "%d GPU(s)%s. TP2 bf16 in graphs, us: the kernel, the same with a clock; from the push of a "
      "block's\n"
      "row to where its slowest warp is; and the rest of the call: launch, load and push.\n"
      " tokens hidden |  whole  timed |  waiting received   summed   scaled     done |   rest\n",
      devices,
      devices < 2 ? ": the two ranks share one" : "");
  Bench bench(devices, 2, uint64_t{128} * 8192 * 2);
  int khz = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
  for (const Anchor& at : anchors())
    if (at.rows <= 64) print_timeline(bench, at, khz / 1e3);
  if (!bench.healthy()) std::printf("COMMUNICATOR FAILED\n");
  return bench.healthy() ? 0 : 1;
}

int run_stages(int devices) {
  std::printf("%d GPU(s)%s\n", devices, devices < 2 ? ": the two ranks share one" : "");
  std::printf(
      "TP2 bf16 in graphs, us per call, one pack per thread and one wave: the kernel whole, with "
      "a\n"
      "stage done twice, with stages left out. Exchange: whole less local; beyond the wire: what\n"
      "of it is left without one hop (0.67 us) and the bytes at 360 GB/s.\n"
      " tokens hidden |");
  for (int i = 0; i < kStages; ++i) std::printf(" %10s", stage_name(static_cast<Stage>(i)));
  std::printf(" | exchange  beyond the wire | bound  whole/bound\n");
  // A launch without waits leaves the mailboxes as nobody may find them: a world for each stage.
  std::vector<std::array<double, kStages>> rows;
  std::vector<Anchor> shapes;
  for (const Anchor& at : anchors())
    if (at.rows <= 132) shapes.push_back(at);
  rows.resize(shapes.size());
  bool healthy = true;
  for (int i = 0; i < kStages; ++i) {
    Bench bench(devices, 2, uint64_t{128} * 8192 * 2);
    const Variant variant{1, 1, true, false, ProtocolKind::Lamport, static_cast<Stage>(i)};
    for (size_t k = 0; k < shapes.size(); ++k)
      rows[k][static_cast<size_t>(i)] =
          bench.run(TypeKind::BF16, shapes[k].rows, shapes[k].hidden, variant).least;
    healthy = healthy && bench.healthy();
  }
  for (size_t k = 0; k < shapes.size(); ++k) {
    const Anchor& at = shapes[k];
    std::printf("%7d %6d |", at.rows, at.hidden);
    for (const double us : rows[k]) std::printf(" %10.2f", us);
    const double exchange = rows[k][0] - rows[k][static_cast<size_t>(Stage::Local)];
    const double wire = 0.67 + at.rows * at.hidden * 2.0 / 360e3;
    std::printf(" | %8.2f %16.2f | %5.2f %12.3f\n",
                exchange,
                exchange - wire,
                one_wave_bound(at),
                rows[k][0] / one_wave_bound(at));
  }
  if (!healthy) std::printf("COMMUNICATOR FAILED\n");
  return healthy ? 0 : 1;
}

}  // namespace fccl::test
