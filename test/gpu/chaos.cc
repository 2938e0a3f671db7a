// Many launches of random shapes, types and algorithms, eager and in graphs, a thread per rank with
// random delays. In the end every mailbox is armed again, the counters are right, and what each case left
// behind has the bits of the reference.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "gpu/checks.h"
#include "gpu/gpu_case.h"
#include "harness/generator.h"

namespace fccl::test {
namespace {

constexpr int kCases = 48;      // prepared cases of one round
constexpr int kRounds = 100000;  // bounded by time

KernelCase draw(uint64_t i, int ranks) {
  static const AlgoKind algos[] = {AlgoKind::Oneshot, AlgoKind::Oneshot, AlgoKind::Oneshot,
                                   AlgoKind::TwoshotRows, AlgoKind::TwoshotCols};
  static const ProtocolKind protocols[] = {ProtocolKind::Lamport, ProtocolKind::Flags, ProtocolKind::LL,
                                           ProtocolKind::Lamport, ProtocolKind::Lamport};
  static const int64_t hidden[] = {64, 1000, 2048, 4096, 7168, 8192};
  const auto pick = [&](uint64_t salt, uint64_t count) { return static_cast<int>(mix(i, salt, 5) % count); };
  KernelCase c;
  const int algo = pick(1, 5);
  c.id = {OpKind::FusedNorm, algos[algo], protocols[algo], static_cast<TypeKind>(pick(2, 3)), true};
  c.level = kernel_levels().back();
  c.ranks = ranks;
  c.hidden = hidden[pick(3, 6)];
  c.tokens = 1 + pick(4, 32);
  c.blocks = 1 + pick(5, 24);
  c.launch = i;
  return c;
}

// One round: a burst of prepared cases in random order, some of them captured into a graph that is
// replayed several times; the order is equal on all ranks, the delays are not.
class Round {
 public:
  Round(GpuWorld& world, std::vector<std::unique_ptr<GpuCase>>& cases) : world_(world), cases_(cases) {}

  uint64_t run(int rank, uint64_t seed) {
    CHECK_CUDA(cudaSetDevice(world_.device(rank)));
    cudaStream_t stream = world_.stream(rank);
    uint64_t launches = 0;
    for (uint64_t step = 0; step < 12; ++step) {
      const uint64_t word = mix(seed, step);
      const uint64_t own = mix(seed, step, static_cast<uint64_t>(rank) + 1);
      if (own % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own / 4 % 50));
      const uint64_t count = 1 + word / 8 % 20;
      if (word % 4 == 0) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        launch(rank, word, count);
        CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
        CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
        const uint64_t replays = 1 + word / 1024 % 5;
        for (uint64_t i = 0; i < replays; ++i) CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaGraphExecDestroy(exec));
        CHECK_CUDA(cudaGraphDestroy(graph));
        launches += replays * count;
      } else {
        launch(rank, word, count);
        launches += count;
      }
    }
    return launches;
  }

 private:
  void launch(int rank, uint64_t word, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) cases_[mix(word, i) % cases_.size()]->launch(rank);
  }

  GpuWorld& world_;
  std::vector<std::unique_ptr<GpuCase>>& cases_;
};

}  // namespace

int check_chaos(int devices, double seconds, uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  int bad = 0;
  for (const int ranks : {2, 4}) {
    GpuOptions options;
    options.ranks = ranks;
    options.devices = devices;
    std::vector<KernelCase> drawn;
    for (uint64_t i = 0; i < kCases; ++i) drawn.push_back(draw(seed * 1000 + i, ranks));
    for (const KernelCase& c : drawn) options.slot_bytes = std::max(options.slot_bytes, slot_bytes(c));
    GpuWorld world(options);
    std::vector<std::unique_ptr<GpuCase>> cases;
    for (size_t i = 0; i < drawn.size(); ++i)
      cases.push_back(std::make_unique<GpuCase>(world, drawn[i], 1 << i % 3));
    Round round(world, cases);
    uint64_t launches = 0;
    for (uint64_t r = 0; r < kRounds && elapsed() < seconds * ranks / 4.0; ++r) {
      std::vector<std::thread> threads;
      std::vector<uint64_t> counts(static_cast<size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] { counts[static_cast<size_t>(rank)] = round.run(rank, mix(seed, r)); });
      for (std::thread& t : threads) t.join();
      if (!world.wait(60)) {
        std::printf("WRONG: chaos, ranks %d, round %llu did not end\n", ranks, static_cast<unsigned long long>(r));
        return bad + 1;
      }
      launches += counts[0];
      if (world.control(0).status != 0) break;
    }
    std::string error = world.not_at_rest(launches);
    for (const auto& c : cases)
      for (int rank = 0; rank < ranks && error.empty(); ++rank) error = c->launched() ? c->check(rank) : std::string();
    if (!error.empty()) ++bad;
    std::printf("chaos, ranks %d: %llu launches per rank, %s\n", ranks, static_cast<unsigned long long>(launches),
                error.empty() ? "exact" : error.c_str());
    std::fflush(stdout);
  }
  return bad;
}

}  // namespace fccl::test
