// CUDA graphs through the C ABI: the first call of a communicator inside a capture, several shapes
// in one graph, replays mixed with eager calls, two streams in one capture, graphs that outlive a
// communicator.
#include <cstdio>

#include "gpu/abi_checks.h"
#include "gpu/abi_world.h"

namespace fccl::test {
namespace {

constexpr int64_t kMostElements = 300000;
constexpr int64_t kPatienceMs = 20000;

class Graph {
 public:
  ~Graph() {
    if (run_ != nullptr) CUDA_OK(cudaGraphExecDestroy(run_));
    if (graph_ != nullptr) CUDA_OK(cudaGraphDestroy(graph_));
  }
  // Captures what `issue` puts on `stream`.
  std::string capture(cudaStream_t stream, cudaStreamCaptureMode mode,
                      const std::function<std::string()>& issue) {
    CUDA_OK(cudaStreamBeginCapture(stream, mode));
    const std::string wrong = issue();
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph_);
    if (!wrong.empty()) return wrong;  // it tells more than what it did to the capture
    CUDA_OK(ended);
    CUDA_OK(cudaGraphInstantiate(&run_, graph_, 0));
    return "";
  }
  void launch(cudaStream_t stream) const { CUDA_OK(cudaGraphLaunch(run_, stream)); }
  size_t nodes() const {
    size_t count = 0;
    CUDA_OK(cudaGraphGetNodes(graph_, nullptr, &count));
    return count;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t run_ = nullptr;
};

std::string issue_all(const AbiRank& rank, const std::vector<RankJob>& jobs) {
  for (const RankJob& job : jobs) ABI_EXPECT_OK(job.issue(rank, rank.stream));
  return "";
}

// Does `step` leave a capture alive? What is wrong, or "".
std::string survives(const char* name, cudaStream_t stream, void* buffer,
                     const std::function<std::string()>& step) {
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CUDA_OK(cudaMemsetAsync(buffer, 0, 64, stream));
  std::string wrong = step();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  static_cast<void>(cudaGetLastError());
  if (ended != cudaSuccess)
    wrong += (wrong.empty() ? "" : "; ") + std::string("the capture: ") + cudaGetErrorString(ended);
  if (graph != nullptr) CUDA_OK(cudaGraphDestroy(graph));
  std::printf("  %s: %s\n", name, wrong.empty() ? "ok" : wrong.c_str());
  return wrong.empty() ? "" : std::string(name) + ": " + wrong;
}

std::string told(cudaError_t result) {
  static_cast<void>(cudaGetLastError());
  return result == cudaSuccess ? "" : cudaGetErrorString(result);
}

}  // namespace

// What a call does to the capture that it joins, step by step: the one that a driver refuses shows.
std::string abi_capture_steps() {
  const FusedJobs jobs = random_jobs(2, 41, 2, kMostElements);
  return abi_threads(abi_options(2), [&](AbiRank& rank) -> std::string {
    auto mine = on_rank(jobs, rank.rank);
    void* buffer = nullptr;
    cudaEvent_t event = nullptr;
    CUDA_OK(cudaMalloc(&buffer, 64));
    CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    rank.meet();
    cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* last = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    size_t count = 0;
    const auto ask = [&] {
      return told(
          cudaStreamGetCaptureInfo(rank.stream, &state, nullptr, &graph, &last, &edges, &count));
    };
    const std::pair<const char*, std::function<std::string()>> steps[] = {
        {"capture info", ask},
        {"type of a node",
         [&] {
           cudaGraphNodeType type{};
           const std::string wrong = ask();
           return wrong.empty() ? told(cudaGraphNodeGetType(last[0], &type)) : wrong;
         }},
        {"user object",
         [&] {
           cudaUserObject_t object = nullptr;
           std::string wrong = ask();
           if (wrong.empty())
             wrong = told(cudaUserObjectCreate(
                 &object, buffer, [](void*) {}, 1, cudaUserObjectNoDestructorSync));
           if (wrong.empty())
             wrong = told(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
           return wrong;
         }},
        {"external wait",
         [&] { return told(cudaStreamWaitEvent(rank.stream, event, cudaEventWaitExternal)); }},
        {"external record",
         [&] {
           return told(cudaEventRecordWithFlags(event, rank.stream, cudaEventRecordExternal));
         }},
        {"one call", [&] { return mine[0].issue(rank, rank.stream); }},
        {"two calls", [&] { return issue_all(rank, mine); }},
    };
    std::string all;
    for (const auto& [name, step] : steps) {
      const std::string wrong = survives(name, rank.stream, buffer, step);
      if (!wrong.empty()) all += (all.empty() ? "" : "; ") + wrong;
    }
    rank.meet();
    CUDA_OK(cudaEventDestroy(event));
    CUDA_OK(cudaFree(buffer));
    return all;
  });
}

std::string abi_graph() {
  const FusedJobs first = random_jobs(5, 1, 2, kMostElements),
                  second = random_jobs(4, 2, 2, kMostElements);
  const FusedJobs eager = random_jobs(1, 3, 2, kMostElements);
  return abi_threads(abi_options(2), [&](AbiRank& rank) -> std::string {
    auto a = on_rank(first, rank.rank), b = on_rank(second, rank.rank),
         e = on_rank(eager, rank.rank);
    Graph graph_a, graph_b;
    for (int turn = 0; turn < rank.ranks;
         ++turn) {  // the strictest mode forbids things to all threads
      rank.meet();
      if (turn != rank.rank) continue;
      ABI_EXPECT_OK(graph_a.capture(
          rank.stream, cudaStreamCaptureModeGlobal, [&] { return issue_all(rank, a); }));
      ABI_EXPECT_OK(graph_b.capture(
          rank.stream, cudaStreamCaptureModeGlobal, [&] { return issue_all(rank, b); }));
    }
    rank.meet();
    for (int replay = 0; replay < 7; ++replay) {
      graph_a.launch(rank.stream);
      ABI_EXPECT_OK(issue_all(rank, e));
      graph_b.launch(rank.stream);
      if (replay % 3 == 1) graph_b.launch(rank.stream);
      ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
      ABI_EXPECT_OK(check_all(a));
      ABI_EXPECT_OK(check_all(b));
      ABI_EXPECT_OK(check_all(e));
      rank.meet();
    }
    // What the user's stream does before and after is the user's: eager calls on another one
    // follow.
    cudaStream_t other = nullptr;
    CUDA_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    graph_a.launch(rank.stream);
    ABI_EXPECT_OK(issue_all(rank, e));
    for (const RankJob& job : b) ABI_EXPECT_OK(job.issue(rank, other));
    ABI_EXPECT_OK(rank.wait(other, kPatienceMs));
    ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
    ABI_EXPECT_OK(check_all(b));
    CUDA_OK(cudaStreamDestroy(other));
    rank.meet();
    return "";
  });
}

std::string abi_graph_of_two_streams() {
  const FusedJobs jobs = random_jobs(10, 8, 2, kMostElements);
  return abi_threads(abi_options(2), [&](AbiRank& rank) -> std::string {
    auto mine = on_rank(jobs, rank.rank);
    cudaStream_t other = nullptr;
    cudaEvent_t fork = nullptr, join = nullptr;
    CUDA_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CUDA_OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    Graph graph;
    rank.meet();
    ABI_EXPECT_OK(
        graph.capture(rank.stream, cudaStreamCaptureModeThreadLocal, [&]() -> std::string {
          CUDA_OK(cudaEventRecord(fork, rank.stream));
          CUDA_OK(cudaStreamWaitEvent(other, fork, 0));
          for (size_t i = 0; i < mine.size(); ++i)
            ABI_EXPECT_OK(mine[i].issue(rank, i % 3 == 0 ? rank.stream : other));
          CUDA_OK(cudaEventRecord(join, other));
          CUDA_OK(cudaStreamWaitEvent(rank.stream, join, 0));
          return "";
        }));
    if (graph.nodes() != mine.size()) return "the graph has more nodes than calls";
    rank.meet();
    for (int replay = 0; replay < 5; ++replay) {
      graph.launch(rank.stream);
      ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
      ABI_EXPECT_OK(check_all(mine));
      rank.meet();
    }
    CUDA_OK(cudaEventDestroy(fork));
    CUDA_OK(cudaEventDestroy(join));
    CUDA_OK(cudaStreamDestroy(other));
    return "";
  });
}

// Graphs and eager calls on two streams, ordered by the library alone.
std::string abi_graph_mixing() {
  const FusedJobs jobs = random_jobs(4, 21, 2, kMostElements),
                  eager = random_jobs(3, 22, 2, kMostElements);
  return abi_threads(
      abi_options(2, {{"FCCL_GRAPH_MIXING", "1"}}), [&](AbiRank& rank) -> std::string {
        auto a = on_rank(jobs, rank.rank), e = on_rank(eager, rank.rank);
        cudaStream_t other = nullptr;
        CUDA_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
        Graph graph;
        rank.meet();
        ABI_EXPECT_OK(graph.capture(
            rank.stream, cudaStreamCaptureModeThreadLocal, [&] { return issue_all(rank, a); }));
        rank.meet();
        for (int round = 0; round < 5; ++round) {
          graph.launch(rank.stream);
          for (const RankJob& job : e) ABI_EXPECT_OK(job.issue(rank, other));
          ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
          ABI_EXPECT_OK(rank.wait(other, kPatienceMs));
          ABI_EXPECT_OK(check_all(a));
          ABI_EXPECT_OK(check_all(e));
          rank.meet();
        }
        CUDA_OK(cudaStreamDestroy(other));
        return "";
      });
}

std::string abi_graph_outlives() {
  const FusedJobs jobs = random_jobs(3, 31, 2, kMostElements);
  const AbiOptions options = abi_options(2);
  const fcclUniqueId id = new_id(), later = new_id();
  return abi_threads(
      options,
      [&](AbiRank& rank) -> std::string {
        auto mine = on_rank(jobs, rank.rank);
        {
          Graph graph;
          ABI_EXPECT_OK(rank.init(id, options.config));
          ABI_EXPECT_OK(graph.capture(rank.stream, cudaStreamCaptureModeThreadLocal, [&] {
            return issue_all(rank, mine);
          }));
          graph.launch(rank.stream);
          ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
          ABI_EXPECT_OK(check_all(mine));
          rank.meet();
          const int64_t start = now_ms();
          FCCL_EXPECT_OK(fcclCommDestroy(rank.comm), nullptr);
          rank.comm = nullptr;
          if (now_ms() - start > 3000) return "destroy waited for a graph";
          graph.launch(rank.stream);
          graph.launch(rank.stream);
          ABI_EXPECT_OK(rank.wait(rank.stream, 2000));
        }
        rank.meet();
        ABI_EXPECT_OK(rank.init(later, options.config));
        rank.meet();
        ABI_EXPECT_OK(issue_all(rank, mine));
        ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
        ABI_EXPECT_OK(check_all(mine));
        rank.meet();
        return "";
      },
      false);
}

}  // namespace fccl::test
