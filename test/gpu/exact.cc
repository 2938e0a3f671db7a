// Exactness: fused kernels and plain collectives on GPU ranks, bit for bit against the scalar
// reference (and the CPU instance of the same kernel against it in the same process). Groups of
// launches run back to back without a host wait, ranks start in random order with random pauses.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <thread>

#include "gpu/checks.h"
#include "gpu/gpu_case.h"
#include "harness/generator.h"

namespace fccl::test {
namespace {

const AlgoKind kAlgos[] = {AlgoKind::Oneshot,
                           AlgoKind::Oneshot,
                           AlgoKind::Oneshot,
                           AlgoKind::TwoshotRows,
                           AlgoKind::TwoshotRows,
                           AlgoKind::TwoshotCols,
                           AlgoKind::TwoshotCols};
const ProtocolKind kProtocols[] = {ProtocolKind::Lamport,
                                   ProtocolKind::Flags,
                                   ProtocolKind::LL,
                                   ProtocolKind::Lamport,
                                   ProtocolKind::Flags,
                                   ProtocolKind::Lamport,
                                   ProtocolKind::Flags};
const int64_t kHidden[] = {1,
                           7,
                           63,
                           64,
                           65,
                           512,
                           1000,
                           2048,
                           2880,
                           4096,
                           4100,
                           5120,
                           7168,
                           8191,
                           8192,
                           8200,
                           16384,
                           24576,
                           33000};
const int64_t kTokens[] = {1, 2, 3, 5, 8, 17, 33, 64, 130};
const int kPacksPerThread[] = {1, 2, 4, 0};

// A case drawn by number: every factor varies, most cases are plain.
KernelCase draw(uint64_t i, int ranks) {
  const auto pick = [&](uint64_t salt, uint64_t count) {
    return static_cast<int>(mix(i, salt, static_cast<uint64_t>(ranks)) % count);
  };
  KernelCase c;
  const int algo = pick(1, 10) % 7;  // Lamport and flags one-shot, LL a little more often
  c.id = {
      OpKind::FusedNorm, kAlgos[algo], kProtocols[algo], static_cast<TypeKind>(pick(2, 3)), true};
  c.level = kernel_levels().back();
  c.ranks = ranks;
  c.hidden = kHidden[pick(3, std::size(kHidden))];
  c.tokens = kTokens[pick(4, std::size(kTokens))];
  while (c.tokens > 1 && c.tokens * c.hidden * ranks > 600000) c.tokens = (c.tokens + 1) / 2;
  c.launch = i;
  c.tile_rows = 1 + pick(5, 4);
  c.blocks = 1 + pick(6, 40);
  c.residual = pick(7, 4) != 0;
  c.residual_out = pick(8, 4) != 0;
  c.residual_out_in =
      c.residual && c.residual_out && pick(9, 2) == 0 ? Share::Residual : Share::None;
  c.norm_out_in = pick(10, 3) == 0 ? Share::Input : Share::None;
  c.checked = pick(11, 3) == 0;
  c.eps = pick(12, 4) == 0 ? 0.0f : 1e-6f;
  if (c.hidden * element_bytes(c.id.type) % 16 != 0 || pick(13, 3) == 0) {
    static const Placement placements[] = {{0, 0}, {0, 64}, {1, 0}, {3, 5}};
    c.id.plain = false;
    c.placement = placements[pick(14, 4)];
    c.weight = pick(15, 2) == 0 ? VectorType::Tensor : VectorType::Float32;
    c.bias = static_cast<VectorType>(pick(16, 3));
    c.weight_plus_one = pick(17, 2) == 0;
    c.as_unfused = pick(18, 2) == 0;
    c.allreduce_out = pick(19, 2) == 0 && c.id.algo == AlgoKind::Oneshot;
    c.sharded = pick(20, 2) == 0 && c.id.algo == AlgoKind::TwoshotRows && c.tokens >= ranks;
    if (c.sharded) c.residual_out_in = c.norm_out_in = Share::None;
  }
  return c;
}

struct Group {
  std::vector<KernelCase> cases;
  std::vector<int> packs;
  uint64_t seed = 0;
};

// Every rank gets all launches of the group; whose turn it is is random.
void launch_group(std::deque<GpuCase>& cases, int ranks, uint64_t seed) {
  std::vector<size_t> next(static_cast<size_t>(ranks), 0);
  for (uint64_t step = 0; *std::min_element(next.begin(), next.end()) < cases.size(); ++step) {
    const auto rank = static_cast<size_t>(mix(seed, step) % static_cast<uint64_t>(ranks));
    if (next[rank] == cases.size()) continue;
    if (mix(seed, step, 1) % 8 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(mix(seed, step, 2) % 50));
    cases[next[rank]++].launch(static_cast<int>(rank));
  }
}

// The CPU instance of the same cases, on the same reference.
std::string run_on_cpu(const Group& group, int ranks, uint64_t slot) {
  KernelWorld::Options options;
  options.ranks = ranks;
  options.slot_bytes = slot;
  KernelWorld world(options);
  return world.run([&](int rank) -> std::string {
    for (KernelCase c : group.cases) {
      c.blocks = 1;
      std::string error = run_case(world, rank, c, make_problem(c));
      if (!error.empty()) return "CPU: " + error;
    }
    return "";
  });
}

std::string run_group(const Group& group, int ranks, int devices, bool cpu_too) {
  GpuOptions options;
  options.ranks = ranks;
  options.devices = devices;
  options.start_epoch = 1 + mix(group.seed, 3) % 100;
  for (const KernelCase& c : group.cases)
    options.slot_bytes = std::max(options.slot_bytes, slot_bytes(c));
  options.slot_bytes = (options.slot_bytes + 127) / 128 * 128;
  if (cpu_too) {
    const std::string error = run_on_cpu(group, ranks, options.slot_bytes);
    if (!error.empty()) return error;
  }
  GpuWorld world(options);
  std::deque<GpuCase> cases;
  for (size_t i = 0; i < group.cases.size(); ++i)
    cases.emplace_back(world, group.cases[i], group.packs[i]);
  for (int r = 0; r < ranks; ++r) {
    CHECK_CUDA(cudaSetDevice(world.device(r)));
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  launch_group(cases, ranks, group.seed);
  if (!world.wait(30)) return "launches did not end";
  std::string errors;
  for (GpuCase& c : cases)
    for (int r = 0; r < ranks && errors.empty(); ++r) errors = c.check(r);
  const std::string rest = world.not_at_rest(group.cases.size());
  if (!rest.empty()) {
    errors += (errors.empty() ? "" : "; ") + rest;
    for (int r = 0; r < ranks; ++r)
      errors += "; record " + std::to_string(r) + ": " + describe_failure(world.record(r));
    for (const GpuCase& c : cases) errors += "\n      in " + c.text();
  }
  return errors;
}

}  // namespace

int check_exact(int devices, int groups, uint64_t seed, int most_ranks) {
  int bad = 0;
  long cases = 0, launches = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    if (ranks > most_ranks) continue;
    const auto start = std::chrono::steady_clock::now();
    int bad_here = 0;
    for (int g = 0; g < groups && bad_here < 6; ++g) {
      Group group;
      group.seed = mix(seed, static_cast<uint64_t>(g), static_cast<uint64_t>(ranks));
      while (group.cases.size() < 8) {
        const auto i = mix(group.seed, group.packs.size(), group.cases.size()) % 100000;
        const KernelCase c = draw(i, ranks);
        group.seed = mix(group.seed);
        if (!is_possible(c)) continue;
        group.cases.push_back(c);
        group.packs.push_back(kPacksPerThread[mix(i, 99) % 4]);
      }
      const std::string error = run_group(group, ranks, devices, g % 4 == 0);
      cases += static_cast<long>(group.cases.size());
      launches += static_cast<long>(group.cases.size()) * ranks;
      if (error.empty()) continue;
      ++bad_here;
      std::printf("NOT EXACT (ranks %d, group %d): %s\n", ranks, g, error.c_str());
      std::fflush(stdout);
    }
    bad += bad_here;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("ranks %d on %d GPUs: %d groups of 8 fused launches, %d wrong, %.1f s\n",
                ranks,
                devices,
                groups,
                bad_here,
                took.count());
    std::fflush(stdout);
  }
  std::printf("exact: %ld cases, %ld launches, %d wrong groups\n", cases, launches, bad);
  return bad;
}

}  // namespace fccl::test
