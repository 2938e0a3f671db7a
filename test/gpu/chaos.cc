// Many launches of random shapes, types and algorithms, eager and in graphs, a thread per rank with
// random delays. In the end every mailbox is armed again, the counters are right, and what each
// case left behind has the bits of the reference.
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

constexpr int kCases = 48;  // prepared cases of one round
constexpr int kRounds = 100000;  // bounded by time

KernelCase draw(uint64_t i, int ranks) {
  static const AlgoKind algos[] = {AlgoKind::Oneshot,
                                   AlgoKind::Oneshot,
                                   AlgoKind::Oneshot,
                                   AlgoKind::TwoshotRows,
                                   AlgoKind::TwoshotCols};
  static const ProtocolKind protocols[] = {ProtocolKind::Lamport,
                                           ProtocolKind::Flags,
                                           ProtocolKind::LL,
                                           ProtocolKind::Lamport,
                                           ProtocolKind::Lamport};
  static const int64_t hidden[] = {64, 1000, 2048, 4096, 7168, 8192};
  const auto pick = [&](uint64_t salt, uint64_t count) {
    return static_cast<int>(mix(i, salt, 5) % count);
  };
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

// The longest call of CUDA that a rank made: what a rank that shares a GPU may have been stopped
// by.
struct Longest {
  const char* name = "none";
  double ms = 0;
  template <class F>
  void timed(const char* what, F&& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const double took =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (took <= ms) return;
    ms = took;
    name = what;
  }
};

// One round: a burst of prepared cases in random order, some of them captured into a graph that is
// replayed several times; the order is equal on all ranks, the delays are not. Ranks that share a
// GPU make their graphs before anything runs: to make one may wait for the device.
class Round {
 public:
  Round(GpuWorld& world, std::vector<std::unique_ptr<GpuCase>>& cases, uint64_t seed,
        bool graphs_first)
      : world_(world),
        cases_(cases),
        seed_(seed),
        graphs_first_(graphs_first),
        barrier_(world.ranks()) {}

  uint64_t run(int rank, Longest& longest) {
    CHECK_CUDA(cudaSetDevice(world_.device(rank)));
    cudaStream_t stream = world_.stream(rank);
    cudaGraphExec_t graphs[kSteps] = {};
    if (graphs_first_) {
      for (uint64_t step = 0; step < kSteps; ++step)
        if (is_graph(step)) graphs[step] = make_graph(rank, step, longest);
      CHECK_CUDA(cudaStreamSynchronize(stream));
      barrier_.arrive_and_wait();
    }
    uint64_t launches = 0;
    for (uint64_t step = 0; step < kSteps; ++step) {
      const uint64_t own = mix(seed_, step, static_cast<uint64_t>(rank) + 1);
      if (own % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own / 4 % 50));
      if (is_graph(step)) {
        if (!graphs_first_) graphs[step] = make_graph(rank, step, longest);
        const uint64_t replays = 1 + mix(seed_, step) / 1024 % 5;
        for (uint64_t i = 0; i < replays; ++i)
          longest.timed("cudaGraphLaunch",
                        [&] { CHECK_CUDA(cudaGraphLaunch(graphs[step], stream)); });
        launches += replays * count(step);
      } else {
        longest.timed("launches", [&] { launch(rank, step); });
        launches += count(step);
      }
    }
    longest.timed("cudaStreamSynchronize", [&] { CHECK_CUDA(cudaStreamSynchronize(stream)); });
    barrier_.arrive_and_wait();
    for (cudaGraphExec_t graph : graphs)
      if (graph != nullptr) CHECK_CUDA(cudaGraphExecDestroy(graph));
    return launches;
  }

 private:
  static constexpr uint64_t kSteps = 12;

  bool is_graph(uint64_t step) const { return mix(seed_, step) % 4 == 0; }
  uint64_t count(uint64_t step) const { return 1 + mix(seed_, step) / 8 % 20; }
  cudaGraphExec_t make_graph(int rank, uint64_t step, Longest& longest) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK_CUDA(cudaStreamBeginCapture(world_.stream(rank), cudaStreamCaptureModeThreadLocal));
    launch(rank, step);
    CHECK_CUDA(cudaStreamEndCapture(world_.stream(rank), &graph));
    longest.timed("cudaGraphInstantiate",
                  [&] { CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0)); });
    if (graphs_first_)
      longest.timed("cudaGraphUpload",
                    [&] { CHECK_CUDA(cudaGraphUpload(exec, world_.stream(rank))); });
    CHECK_CUDA(cudaGraphDestroy(graph));
    return exec;
  }
  void launch(int rank, uint64_t step) {
    for (uint64_t i = 0; i < count(step); ++i)
      cases_[mix(mix(seed_, step), i) % cases_.size()]->launch(rank);
  }

  GpuWorld& world_;
  std::vector<std::unique_ptr<GpuCase>>& cases_;
  const uint64_t seed_;
  const bool graphs_first_;
  std::barrier<> barrier_;
};

}  // namespace

int check_chaos(int devices, double seconds, uint64_t seed, bool graphs_first) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  int bad = 0;
  for (const int ranks : {2, 4}) {
    GpuOptions options;
    options.ranks = ranks;
    options.devices = devices;
    std::vector<KernelCase> drawn;
    for (uint64_t i = 0; i < kCases; ++i) drawn.push_back(draw(seed * 1000 + i, ranks));
    for (const KernelCase& c : drawn)
      options.slot_bytes = std::max(options.slot_bytes, slot_bytes(c));
    GpuWorld world(options);
    std::vector<std::unique_ptr<GpuCase>> cases;
    for (size_t i = 0; i < drawn.size(); ++i)
      cases.push_back(std::make_unique<GpuCase>(world, drawn[i], 1 << i % 3));
    uint64_t launches = 0;
    std::vector<Longest> longest(static_cast<size_t>(ranks));
    for (uint64_t r = 0; r < kRounds && elapsed() < seconds * ranks / 4.0; ++r) {
      Round round(world, cases, mix(seed, r), world.ranks_per_device() > 1 && graphs_first);
      std::vector<std::thread> threads;
      std::vector<uint64_t> counts(static_cast<size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
          const auto at = static_cast<size_t>(rank);
          counts[at] = round.run(rank, longest[at]);
        });
      for (std::thread& t : threads) t.join();
      if (!world.wait(60)) {
        std::printf("WRONG: chaos, ranks %d, round %llu did not end\n",
                    ranks,
                    static_cast<unsigned long long>(r));
        return bad + 1;
      }
      launches += counts[0];
      if (world.control(0).status != 0) break;
    }
    std::string error = world.not_at_rest(launches);
    for (const auto& c : cases)
      for (int rank = 0; rank < ranks && error.empty(); ++rank)
        error = c->launched() ? c->check(rank) : std::string();
    if (!error.empty()) ++bad;
    std::printf("chaos, ranks %d: %llu launches per rank, %s\n",
                ranks,
                static_cast<unsigned long long>(launches),
                error.empty() ? "exact" : error.c_str());
    for (int rank = 0; rank < ranks; ++rank) {
      const Longest& l = longest[static_cast<size_t>(rank)];
      std::printf("  rank %d: longest call %s, %.1f ms%s%s\n",
                  rank,
                  l.name,
                  l.ms,
                  error.empty() ? "" : "; ",
                  error.empty() ? "" : describe_failure(world.record(rank)).c_str());
    }
    std::fflush(stdout);
  }
  return bad;
}

}  // namespace fccl::test
