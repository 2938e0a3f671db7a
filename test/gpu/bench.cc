// Latency of the fused kernel at two ranks on two GPUs: many calls captured into one graph on each
// of two streams, replayed 20 times; a figure is the minimum over replays of the maximum over
// ranks, in us per call. Every launch shape that could be best is tried.
#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <map>
#include <thread>

#include "gpu/checks.h"
#include "gpu/gpu_world.h"
#include "gpu/stages.h"
#include "harness/generator.h"

namespace fccl::test {
namespace {

struct Variant {
  int packs = 1;  // per thread
  int blocks_per_sm = 1;  // 0: the shape that the product takes, packs too
  bool dependent = true;
  bool early = false;
  ProtocolKind protocol = ProtocolKind::Lamport;
  Stage stage = Stage::Whole;
  bool chosen() const { return blocks_per_sm == 0; }
  std::string name() const {
    static const char* const protocols[] = {"lamport", "flags", "ll"};
    std::string text = chosen() ? "chosen"
                                : std::string(protocols[static_cast<int>(protocol)]) + " k" +
                                      std::to_string(packs) + " b" + std::to_string(blocks_per_sm);
    return text + (dependent ? "" : " no pdl") + (early ? " early" : "");
  }
};

struct Figure {
  double least = 0, median = 0;
};

// The buffers of one rank, big enough for every shape.
struct Buffers {
  char *input = nullptr, *residual = nullptr, *weight = nullptr, *residual_out = nullptr,
       *norm_out = nullptr;
};

class Bench {
 public:
  Bench(int devices, int ranks, uint64_t bytes)
      : world_(options(devices, ranks, bytes)), barrier_(ranks) {
    for (int r = 0; r < ranks; ++r) buffers_.push_back(make_buffers(r, bytes));
    CHECK_CUDA(cudaDeviceGetAttribute(&sm_count_, cudaDevAttrMultiProcessorCount, 0));
  }

  Figure run(TypeKind type, int rows, int hidden, const Variant& v) {
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
  bool healthy() const { return world_.control(0).status == 0 && world_.control(1).status == 0; }

 private:
  static constexpr int kReplays = 20;

  static GpuOptions options(int devices, int ranks, uint64_t bytes) {
    GpuOptions o;
    o.ranks = ranks;
    o.devices = devices;
    o.slot_bytes = bytes;
    return o;
  }

  Buffers make_buffers(int rank, uint64_t bytes) const {
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
    CHECK_CUDA(cudaDeviceSynchronize());
    return b;
  }

  void enqueue(int rank, TypeKind type, int rows, int hidden, const Variant& v) {
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
    world_.launch(rank, v.stage == Stage::Whole ? chosen.kernel : stage_kernel(v.stage), a, shape);
  }

  std::vector<double> run_rank(int rank, TypeKind type, int rows, int hidden, const Variant& v,
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

  GpuWorld world_;
  std::barrier<> barrier_;
  std::vector<Buffers> buffers_;
  int sm_count_ = 0;
};

// tokens x hidden: local norm, best peer and floor in bf16, as measured before on such a machine.
struct Anchor {
  int rows, hidden;
  double local, peer, floor;
};
const Anchor kAnchors[] = {
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

std::vector<Variant> variants(int rows, int packs, bool quick) {
  std::vector<Variant> all{{1, 0, true, false, ProtocolKind::Lamport},
                           {1, 0, true, true, ProtocolKind::Lamport}};
  for (const int held : {1, 2, 4}) {
    const int threads = (packs / held + 31) / 32 * 32;
    if (threads > held_max_threads(held) || threads < 64 || (quick && held > 1)) continue;
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
    if (v.packs == 1 && packs > held_max_threads(1)) continue;
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

// For one wave the local norm and the bytes do not overlap: the more honest bound.
double one_wave_bound(const Anchor& at) {
  const double wave = at.local + 0.67 + at.rows * at.hidden * 2.0 / 360e3;
  return at.rows <= 132 ? std::max(at.floor, wave) : at.floor;
}

void print_table(const std::vector<Found>& found) {
  std::printf(
      "\nTP2 bf16 in graphs, us per call. The chosen shape, with early triggers, the best of all; "
      "the\n"
      "better of the chosen ones over the floor, over the one-wave bound; the best peer over it.\n"
      " tokens hidden | chosen  early   best | floor ratio | bound ratio |   peer ratio\n");
  Ratios floor, bound, peer;
  for (size_t i = 0; i < found.size(); ++i) {
    const Anchor& at = kAnchors[i];
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
  for (const Anchor& at : kAnchors)
    found.push_back(measure(bench, TypeKind::BF16, at.rows, at.hidden, quick, csv));
  if (csv != nullptr) std::fclose(csv);
  print_table(found);
  if (!bench.healthy()) std::printf("COMMUNICATOR FAILED\n");
  return bench.healthy() ? 0 : 1;
}

int run_stages(int devices) {
  if (devices < 2) {
    std::printf("stages: needs two GPUs\n");
    return 0;
  }
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
  std::vector<Anchor> anchors;
  for (const Anchor& at : kAnchors)
    if (at.rows <= 132) anchors.push_back(at);
  rows.resize(anchors.size());
  bool healthy = true;
  for (int i = 0; i < kStages; ++i) {
    Bench bench(devices, 2, uint64_t{128} * 8192 * 2);
    const Variant variant{1, 1, true, false, ProtocolKind::Lamport, static_cast<Stage>(i)};
    for (size_t k = 0; k < anchors.size(); ++k)
      rows[k][static_cast<size_t>(i)] =
          bench.run(TypeKind::BF16, anchors[k].rows, anchors[k].hidden, variant).least;
    healthy = healthy && bench.healthy();
  }
  for (size_t k = 0; k < anchors.size(); ++k) {
    const Anchor& at = anchors[k];
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
