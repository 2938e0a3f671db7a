// What a communicator costs: memory against what was announced, init, host time of a call, device
// time of a call through the C ABI.
#include <dlfcn.h>

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

namespace {

// Host time of enqueue(), us: the median and the least over batches that the GPU finishes between.
struct HostTime {
  double median = 0, least = 0;
};
std::string time_host(AbiRank& rank, const std::function<std::string()>& enqueue, HostTime* time) {
  constexpr int kBatch = 100;
  std::vector<double> times;
  for (int batch = 0; batch < 40; ++batch) {
    rank.meet();
    const double start = now_us();
    for (int i = 0; i < kBatch; ++i) ABI_EXPECT_OK(enqueue());
    times.push_back((now_us() - start) / kBatch);
    ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
  }
  std::sort(times.begin(), times.end());
  *time = {times[times.size() / 2], times.front()};
  return "";
}

// A launch of a kernel that does nothing, with as many arguments as fccl's: what the driver takes.
class BareLaunch {
 public:
  explicit BareLaunch(cudaStream_t stream) {
    static const char kText[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry nothing(.param .align 8 .b8 arguments[456]) { ret; }\n";
    CUDA_OK(cudaLibraryLoadData(&library_, kText, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUDA_OK(cudaLibraryGetKernel(&kernel_, library_, "nothing"));
    attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute_.val.programmaticStreamSerializationAllowed = 1;
    config_.gridDim = dim3(1);
    config_.blockDim = dim3(512);
    config_.stream = stream;
    config_.attrs = &attribute_;
    config_.numAttrs = 1;
  }
  ~BareLaunch() { CUDA_OK(cudaLibraryUnload(library_)); }
  std::string enqueue() {
    void* arguments[] = {arguments_};
    CUDA_OK(cudaLaunchKernelExC(&config_, reinterpret_cast<const void*>(kernel_), arguments));
    return "";
  }

 private:
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  cudaLaunchAttribute attribute_{};
  cudaLaunchConfig_t config_{};
  char arguments_[456] = {};
};

// NCCL's all-reduce of the same tensor, if the library is there.
class NcclPeer {
 public:
  using Id = struct { char bytes[128]; };
  NcclPeer() : library_(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    load("ncclGetUniqueId", get_id_);
    load("ncclCommInitRank", init_);
    load("ncclAllReduce", all_reduce_);
    load("ncclCommDestroy", destroy_);
    whole_ =
        get_id_ != nullptr && init_ != nullptr && all_reduce_ != nullptr && destroy_ != nullptr;
  }
  bool present() const { return whole_; }
  Id new_id() const {
    Id id{};
    get_id_(&id);
    return id;
  }
  std::string time(AbiRank& rank, const Id& id, const SpeedBuffers& buffers, size_t count,
                   HostTime* time) const {
    constexpr int kBfloat16 = 9, kSum = 0;
    void* comm = nullptr;
    if (init_(&comm, rank.ranks, id, rank.rank) != 0) return "ncclCommInitRank failed";
    const std::string wrong = time_host(
        rank,
        [&]() -> std::string {
          const int code = all_reduce_(
              buffers.input, buffers.norm_out, count, kBfloat16, kSum, comm, rank.stream);
          return code == 0 ? "" : "ncclAllReduce failed";
        },
        time);
    destroy_(comm);
    return wrong;
  }

 private:
  template <class Function>
  void load(const char* name, Function& to) {
    to = reinterpret_cast<Function>(dlsym(library_, name));
  }
  void* library_;
  bool whole_ = false;
  int (*get_id_)(Id*) = nullptr;
  int (*init_)(void**, int, Id, int) = nullptr;
  int (*all_reduce_)(const void*, void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*destroy_)(void*) = nullptr;
};

}  // namespace

std::string abi_enqueue() {
  const NcclPeer nccl;
  const NcclPeer::Id nccl_id = nccl.present() ? nccl.new_id() : NcclPeer::Id{};
  return abi_threads(abi_options(2), [&](AbiRank& rank) -> std::string {
    const SpeedBuffers buffers(1, 4096);
    constexpr int kBatch = 100;
    HostTime eager, bare, peer;
    ABI_EXPECT_OK(time_host(
        rank, [&] { return error_text(buffers.call(rank), "call", rank.comm); }, &eager));
    BareLaunch launch(rank.stream);
    ABI_EXPECT_OK(time_host(
        rank, [&] { return launch.enqueue(); }, &bare));
    if (nccl.present()) ABI_EXPECT_OK(nccl.time(rank, nccl_id, buffers, 4096, &peer));
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
    std::printf(
        "  rank %d: host time of a call, us: eager %.2f (least %.2f), captured %.2f; a bare launch "
        "%.2f (%.2f); ncclAllReduce %.2f (%.2f)\n",
        rank.rank,
        eager.median,
        eager.least,
        captured,
        bare.median,
        bare.least,
        peer.median,
        peer.least);
    rank.meet();
    return "";
  });
}

}  // namespace fccl::test
