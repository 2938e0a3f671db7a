// What a communicator costs: memory against what was announced, init, host time of a call, device
// time of a call through the C ABI.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "gpu/abi_checks.h"
#include "gpu/abi_speed.h"

namespace fccl::test {
namespace {

constexpr int64_t kPatienceMs = 20000;

double now_us() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

// Buffers for a call whose results nobody looks at.
struct SpeedBuffers {
  SpeedBuffers(int64_t rows, int64_t hidden) : rows_(rows), hidden_(hidden) {
    for (void** p : {&input, &residual, &weight, &residual_out, &norm_out}) {
      CUDA_OK(cudaMalloc(p, static_cast<size_t>(rows * hidden * 2)));
      CUDA_OK(cudaMemset(*p, 0, static_cast<size_t>(rows * hidden * 2)));
    }
    CUDA_OK(cudaDeviceSynchronize());
  }
  ~SpeedBuffers() {
    for (void* p : {input, residual, weight, residual_out, norm_out}) CUDA_OK(cudaFree(p));
  }
  SpeedBuffers(const SpeedBuffers&) = delete;
  SpeedBuffers& operator=(const SpeedBuffers&) = delete;
  fcclResult_t call(const AbiRank& rank) const {
    return fcclAllReduceResidualRMSNorm(input,
                                        residual,
                                        weight,
                                        residual_out,
                                        norm_out,
                                        rows_,
                                        hidden_,
                                        fcclBfloat16,
                                        1e-5f,
                                        rank.comm,
                                        rank.stream);
  }
  void *input = nullptr, *residual = nullptr, *weight = nullptr, *residual_out = nullptr,
       *norm_out = nullptr;

 private:
  int64_t rows_, hidden_;
};

// us per call: the least and the median over the replays.
std::string time_graph(AbiRank& rank, int64_t rows, int64_t hidden, double* least, double* median) {
  const int calls = rows * hidden >= 2000000 ? 60 : 500;
  const SpeedBuffers buffers(rows, hidden);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t run = nullptr;
  cudaEvent_t start = nullptr, end = nullptr;
  CUDA_OK(cudaEventCreate(&start));
  CUDA_OK(cudaEventCreate(&end));
  CUDA_OK(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
  std::string wrong;
  for (int i = 0; i < calls && wrong.empty(); ++i)
    wrong = error_text(buffers.call(rank), "call", rank.comm);
  const cudaError_t ended = cudaStreamEndCapture(rank.stream, &graph);
  if (!wrong.empty()) return wrong;
  CUDA_OK(ended);
  CUDA_OK(cudaGraphInstantiate(&run, graph, 0));
  std::vector<double> times;
  for (int i = 0; i < 23; ++i) {
    CUDA_OK(cudaEventRecord(start, rank.stream));
    CUDA_OK(cudaGraphLaunch(run, rank.stream));
    CUDA_OK(cudaEventRecord(end, rank.stream));
    ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
    float ms = 0;
    CUDA_OK(cudaEventElapsedTime(&ms, start, end));
    if (i >= 3) times.push_back(1000.0 * static_cast<double>(ms) / calls);
  }
  std::sort(times.begin(), times.end());
  *least = times.front();
  *median = times[times.size() / 2];
  CUDA_OK(cudaGraphExecDestroy(run));
  CUDA_OK(cudaGraphDestroy(graph));
  CUDA_OK(cudaEventDestroy(start));
  CUDA_OK(cudaEventDestroy(end));
  return "";
}

}  // namespace

std::string print_speed(AbiRank& rank, const char* title) {
  constexpr std::pair<int64_t, int64_t> kShapes[] = {{1, 2048},
                                                     {1, 4096},
                                                     {16, 4096},
                                                     {128, 4096},
                                                     {256, 4096},
                                                     {512, 4096},
                                                     {1024, 4096},
                                                     {1, 8192},
                                                     {16, 8192},
                                                     {128, 8192},
                                                     {512, 8192}};
  for (const auto& [rows, hidden] : kShapes) {
    double least = 0, median = 0;
    ABI_EXPECT_OK(time_graph(rank, rows, hidden, &least, &median));
    fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
    args.tokens = rows;
    args.hidden = hidden;
    args.datatype = fcclBfloat16;
    args.input = args.residual = args.weight = args.norm_out.ptr = args.residual_out.ptr = &args;
    fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
    FCCL_EXPECT_OK(fcclCommQuery(rank.comm, &args, &info), rank.comm);
    std::printf("  %s rank %d: %5lld x %lld: %7.2f us, median %7.2f (%s, %d blocks of %d)\n",
                title,
                rank.rank,
                static_cast<long long>(rows),
                static_cast<long long>(hidden),
                least,
                median,
                info.algorithm_name,
                info.blocks,
                info.threads);
  }
  return "";
}

std::string abi_speed() {
  return abi_threads(abi_options(2), [](AbiRank& rank) { return print_speed(rank, "threads"); });
}

std::string abi_memory_and_init() {
  const AbiOptions options = abi_options(2);
  const fcclUniqueId ids[2] = {new_id(), new_id()};
  return abi_threads(
      options,
      [&](AbiRank& rank) -> std::string {
        int64_t announced = 0;
        FCCL_EXPECT_OK(fcclWorkspaceBytes(rank.ranks, &options.config, &announced), nullptr);
        for (const fcclUniqueId& id : ids) {
          size_t before = 0, after = 0, total = 0;
          rank.meet();
          CUDA_OK(cudaMemGetInfo(&before, &total));
          rank.meet();
          const double start = now_us();
          ABI_EXPECT_OK(rank.init(id, options.config));
          const double ms = (now_us() - start) / 1000;
          rank.meet();
          CUDA_OK(cudaMemGetInfo(&after, &total));
          fcclMemoryInfo info = FCCL_MEMORY_INFO_INITIALIZER;
          FCCL_EXPECT_OK(fcclCommMemory(rank.comm, &info), rank.comm);
          std::printf("  rank %d: init %.1f ms; announced %lld, told %lld, the GPU has %lld less\n",
                      rank.rank,
                      ms,
                      static_cast<long long>(announced),
                      static_cast<long long>(info.workspace_bytes),
                      static_cast<long long>(before) - static_cast<long long>(after));
          if (std::llabs(info.workspace_bytes - announced) > info.granule_bytes)
            return "the workspace is not as large as announced";
          if (&id == &ids[1] && ms > 1000) return "init took longer than a second";
          const int64_t taken = static_cast<int64_t>(before) - static_cast<int64_t>(after);
          if (&id == &ids[1] && std::llabs(taken - info.workspace_bytes) > info.granule_bytes)
            return "the communicator took another amount of memory than it says";
          rank.meet();
          FCCL_EXPECT_OK(fcclCommDestroy(rank.comm), nullptr);
          rank.comm = nullptr;
        }
        return "";
      },
      false);
}

std::string abi_enqueue() {
  return abi_threads(abi_options(2), [](AbiRank& rank) -> std::string {
    const SpeedBuffers buffers(1, 4096);
    constexpr int kBatch = 100;
    std::vector<double> times;
    for (int batch = 0; batch < 40; ++batch) {
      rank.meet();
      const double start = now_us();
      for (int i = 0; i < kBatch; ++i) FCCL_EXPECT_OK(buffers.call(rank), rank.comm);
      times.push_back((now_us() - start) / kBatch);
      ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
    }
    std::sort(times.begin(), times.end());
    const double eager = times[times.size() / 2];
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
    const double start = now_us();
    std::string wrong;
    for (int i = 0; i < kBatch && wrong.empty(); ++i)
      wrong = error_text(buffers.call(rank), "call", rank.comm);
    const double captured = (now_us() - start) / kBatch;
    const cudaError_t ended = cudaStreamEndCapture(rank.stream, &graph);
    if (!wrong.empty()) return wrong;
    CUDA_OK(ended);
    CUDA_OK(cudaGraphDestroy(graph));
    std::printf("  rank %d: host time of a call: eager %.2f us (least %.2f), captured %.2f us\n",
                rank.rank,
                eager,
                times.front(),
                captured);
    rank.meet();
    return "";
  });
}

}  // namespace fccl::test
