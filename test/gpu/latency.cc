// See latency.h.
#include "gpu/latency.h"

#include <algorithm>
#include <thread>

#include "harness/generator.h"

namespace fccl::test {
namespace {

constexpr size_t kRecords = size_t{kTimedCalls} * kTimedBlocks * kTimedWarps;

GpuOptions options(int devices, int ranks, uint64_t bytes) {
  GpuOptions o;
  o.ranks = ranks;
  o.devices = devices;
  o.slot_bytes = bytes;
  return o;
}

}  // namespace

Bench::Bench(int devices, int ranks, uint64_t bytes)
    : world_(options(devices, ranks, bytes)), barrier_(ranks) {
  for (int r = 0; r < ranks; ++r) buffers_.push_back(make_buffers(r, bytes));
  CHECK_CUDA(cudaDeviceGetAttribute(&sm_count_, cudaDevAttrMultiProcessorCount, 0));
}

Bench::~Bench() {
  for (const Buffers& b : buffers_)
    for (void* p : {static_cast<void*>(b.input),
                    static_cast<void*>(b.residual),
                    static_cast<void*>(b.weight),
                    static_cast<void*>(b.residual_out),
                    static_cast<void*>(b.norm_out),
                    static_cast<void*>(b.marks)})
      static_cast<void>(cudaFree(p));
}

Figure Bench::run(TypeKind type, int rows, int hidden, const Variant& v) {
  const auto work = static_cast<uint64_t>(rows) * static_cast<uint64_t>(hidden) *
                    static_cast<uint64_t>(element_bytes(type));
  const int calls = work <= (2u << 20) ? 500 : work <= (8u << 20) ? 200 : 60;
  std::vector<std::vector<double>> times(static_cast<size_t>(world_.ranks()));
  std::vector<std::thread> threads;
  for (int r = 0; r < world_.ranks(); ++r)
    threads.emplace_back(
        [&, r] { times[static_cast<size_t>(r)] = run_rank(r, type, rows, hidden, v, calls); });
  for (std::thread& t : threads) t.join();
  std::vector<double> slowest(times[0]);
  for (const auto& of_rank : times)
    for (size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], of_rank[i]);
  std::sort(slowest.begin(), slowest.end());
  return {slowest.front(), slowest[slowest.size() / 2]};
}

std::vector<WarpMarks> Bench::marks(int rank) const {
  std::vector<WarpMarks> all(kRecords);
  CHECK_CUDA(cudaMemcpy(all.data(),
                        buffers_[static_cast<size_t>(rank)].marks,
                        kRecords * sizeof(WarpMarks),
                        cudaMemcpyDeviceToHost));
  return all;
}

bool Bench::healthy() const {
  return world_.control(0).status == 0 && world_.control(1).status == 0;
}

Buffers Bench::make_buffers(int rank, uint64_t bytes) const {
  CHECK_CUDA(cudaSetDevice(world_.device(rank)));
  Buffers b;
  const Matrix some = make_input(TypeKind::BF16, 1, 1 << 16, 0, rank);
  for (char** p : {&b.input, &b.residual, &b.weight, &b.residual_out, &b.norm_out}) {
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(p), bytes));
    for (uint64_t at = 0; at < bytes; at += some.row_bytes())
      CHECK_CUDA(cudaMemcpy(*p + at,
                            some.row(0),
                            std::min<uint64_t>(some.row_bytes(), bytes - at),
                            cudaMemcpyHostToDevice));
  }
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&b.marks), kRecords * sizeof(WarpMarks)));
  CHECK_CUDA(cudaDeviceSynchronize());
  return b;
}

void Bench::enqueue(int rank, TypeKind type, int rows, int hidden, const Variant& v) {
  const int64_t row_bytes = static_cast<int64_t>(hidden) * element_bytes(type);
  const KernelId id{OpKind::FusedNorm, AlgoKind::Oneshot, v.protocol, type, v.packs != 0};
  const Buffers& b = buffers_[static_cast<size_t>(rank)];
  KernelArgs a{};
  a.ex = world_.exchange(rank, id);
  a.ex.tokens = static_cast<uint32_t>(rows);
  a.input = {b.input, row_bytes};
  a.residual = {b.residual, row_bytes};
  a.residual_out = {b.residual_out, row_bytes};
  a.norm_out = {b.norm_out, row_bytes};
  a.weight = b.weight;
  a.total_rows = a.rows = a.chunk_rows = rows;
  a.hidden = a.last_hidden = hidden;
  a.packs = static_cast<int32_t>(row_bytes / 16);
  a.flags = v.early ? kEarlyTrigger : 0u;
  a.eps = 1e-6f;
  a.inv_hidden = 1.0f / static_cast<float>(hidden);
  const CudaShape chosen = cuda_shape(id, a, sm_count_, v.chosen() ? 0 : v.packs);
  GpuShape shape;
  shape.threads = chosen.threads;
  shape.packs = chosen.kernel.packs;
  shape.blocks = v.chosen() ? chosen.blocks : std::min(rows, sm_count_ * v.blocks_per_sm);
  shape.dependent = v.dependent;
  if (v.timed) a.allreduce_out.ptr = reinterpret_cast<char*>(b.marks);
  world_.launch(rank,
                v.timed                   ? timed_kernel()
                : v.stage == Stage::Whole ? chosen.kernel
                                          : stage_kernel(v.stage),
                a,
                shape);
}

std::vector<double> Bench::run_rank(int rank, TypeKind type, int rows, int hidden, const Variant& v,
                                    int calls) {
  CHECK_CUDA(cudaSetDevice(world_.device(rank)));
  cudaStream_t stream = world_.stream(rank);
  for (int i = 0; i < 3; ++i) enqueue(rank, type, rows, hidden, v);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  barrier_.arrive_and_wait();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; ++i) enqueue(rank, type, rows, hidden, v);
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t before, after;
  CHECK_CUDA(cudaEventCreate(&before));
  CHECK_CUDA(cudaEventCreate(&after));
  std::vector<double> times;
  for (int i = 0; i < kReplays + 2; ++i) {
    barrier_.arrive_and_wait();
    CHECK_CUDA(cudaEventRecord(before, stream));
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaEventRecord(after, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    float ms = 0;
    CHECK_CUDA(cudaEventElapsedTime(&ms, before, after));
    if (i >= 2) times.push_back(static_cast<double>(ms) * 1e3 / calls);
  }
  barrier_.arrive_and_wait();
  CHECK_CUDA(cudaEventDestroy(before));
  CHECK_CUDA(cudaEventDestroy(after));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  return times;
}

const std::vector<Anchor>& anchors() {
  static const std::vector<Anchor> all = {
      {1, 2048, 1.43, 3.72, 2.10},     {16, 2048, 1.51, 4.60, 2.18},
      {128, 2048, 1.74, 5.31, 3.46},   {1024, 2048, 3.19, 22.54, 13.7},
      {1, 4096, 1.61, 4.00, 2.28},     {4, 4096, 1.64, 4.73, 2.31},
      {8, 4096, 1.70, 4.93, 2.37},     {16, 4096, 1.73, 5.13, 2.40},
      {32, 4096, 1.77, 5.56, 2.73},    {64, 4096, 1.82, 6.25, 3.46},
      {128, 4096, 2.01, 7.00, 4.91},   {256, 4096, 2.43, 10.77, 7.83},
      {512, 4096, 3.30, 19.22, 13.7},  {1024, 4096, 5.60, 42.05, 25.3},
      {2048, 4096, 17.79, 80.4, 48.6}, {1, 7168, 1.92, 4.57, 2.59},
      {16, 7168, 2.06, 5.51, 2.73},    {128, 7168, 2.47, 9.78, 7.10},
      {1024, 7168, 15.93, 69.0, 42.8}, {1, 8192, 2.09, 4.64, 2.76},
      {8, 8192, 2.16, 5.61, 2.83},     {32, 8192, 2.29, 6.57, 3.46},
      {128, 8192, 2.64, 10.73, 7.83},  {512, 8192, 5.90, 37.4, 25.3},
      {1024, 8192, 18.44, 77.5, 48.6}, {2048, 8192, 34.88, 152.6, 95.2},
  };
  return all;
}

double one_wave_bound(const Anchor& at) {
  const double wave = at.local + 0.67 + at.rows * at.hidden * 2.0 / 360e3;
  return at.rows <= 132 ? std::max(at.floor, wave) : at.floor;
}

}  // namespace fccl::test
