// See gpu_world.h.
#include "gpu/gpu_world.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace fccl::test {
namespace {

// Allowance for compute-sanitizer.
int64_t slow_factor() {
  const char* factor = std::getenv("FCCL_TEST_SLOW_FACTOR");
  return factor == nullptr ? 1 : std::max(std::atoll(factor), 1LL);
}

}  // namespace

void check_cuda(cudaError_t result, const char* what, const char* file, int line) {
  if (result == cudaSuccess) return;
  std::printf("%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(result));
  std::fflush(stdout);
  std::_Exit(3);
}

void check_pads(const KernelId& id, const KernelArgs& args) {
  if (tiles_have_pads(id, args)) return;
  std::printf(
      "a launch of %d rows in tiles of %d has too few pads\n", args.rows, args.ex.tile_rows);
  std::fflush(stdout);
  std::_Exit(3);
}

int usable_devices(int most) {
  int count = 0;
  CHECK_CUDA(cudaGetDeviceCount(&count));
  count = std::min(count, most);
  for (int a = 0; a < count; ++a) {
    CHECK_CUDA(cudaSetDevice(a));
    for (int b = 0; b < count; ++b) {
      if (a == b) continue;
      int on = 0;
      CHECK_CUDA(cudaDeviceCanAccessPeer(&on, a, b));
      if (on == 0) return 1;
      const cudaError_t result = cudaDeviceEnablePeerAccess(b, 0);
      if (result != cudaErrorPeerAccessAlreadyEnabled) CHECK_CUDA(result);
      static_cast<void>(cudaGetLastError());
    }
  }
  return count;
}

GpuShape shape_of(const CudaKernel& kernel, int row_packs) {
  GpuShape shape;
  shape.packs = kernel.packs;
  const int wanted = kernel.packs == 0 ? row_packs : (row_packs + kernel.packs - 1) / kernel.packs;
  shape.threads = std::min((std::max(wanted, 1) + 31) / 32 * 32, kernel.max_threads);
  return shape;
}

GpuWorld::GpuWorld(const GpuOptions& options) : options_(options) {
  options_.limit_ms *= slow_factor();
  const auto ranks = static_cast<uint64_t>(options.ranks);
  const uint64_t generation = 2 * ranks * options.slot_bytes;  // two hops
  layout_ = make_layout(options.ranks, generation, generation, generation);
  rank_.resize(static_cast<size_t>(options.ranks));
  for (int r = 0; r < options.ranks; ++r) {
    Rank& rank = rank_[static_cast<size_t>(r)];
    CHECK_CUDA(cudaSetDevice(device(r)));
    CHECK_CUDA(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&rank.window), layout_.bytes));
    char* host = nullptr;
    CHECK_CUDA(cudaHostAlloc(
        reinterpret_cast<void**>(&host), 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    std::memset(host, 0, 4096);
    rank.record = reinterpret_cast<FailureRecord*>(host);
    rank.abort = reinterpret_cast<uint32_t*>(host + 512);
    arm(rank);
    CHECK_CUDA(cudaDeviceSynchronize());
  }
}

void GpuWorld::arm(Rank& rank) const {
  CHECK_CUDA(cudaMemset(rank.window, 0, layout_.bytes));
  CHECK_CUDA(cudaMemset(
      rank.window + layout_.lamport.offset, 0xFF, layout_.lamport.generation * kGenerations));
  // Staging is never armed: whatever lies there must not matter.
  CHECK_CUDA(cudaMemset(rank.window + layout_.staging.offset,
                        0xAB,
                        layout_.staging.generation * kStagingGenerations));
  const uint64_t line = line_of(options_.start_epoch);
  CHECK_CUDA(cudaMemcpy(
      rank.window + offsetof(Control, line), &line, sizeof line, cudaMemcpyHostToDevice));
  const uint64_t limit = static_cast<uint64_t>(options_.limit_ms) * 1000000;
  CHECK_CUDA(cudaMemcpy(
      rank.window + offsetof(Control, limit_ns), &limit, sizeof limit, cudaMemcpyHostToDevice));
}

GpuWorld::~GpuWorld() {
  for (int r = 0; r < ranks(); ++r) {
    CHECK_CUDA(cudaSetDevice(device(r)));
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  for (int r = 0; r < ranks(); ++r) {
    Rank& rank = rank_[static_cast<size_t>(r)];
    CHECK_CUDA(cudaSetDevice(device(r)));
    CHECK_CUDA(cudaFree(rank.window));
    CHECK_CUDA(cudaFreeHost(rank.record));
    CHECK_CUDA(cudaStreamDestroy(rank.stream));
  }
}

ExchangeArgs GpuWorld::exchange(int rank, const KernelId& id) const {
  ExchangeArgs ex{};
  const Region& region = id.protocol == ProtocolKind::Lamport ? layout_.lamport
                         : id.protocol == ProtocolKind::LL    ? layout_.ll
                                                              : layout_.staging;
  const bool reduces = id.op == OpKind::FusedNorm || id.op == OpKind::AllReduce;
  const bool two_hops = reduces && id.algo != AlgoKind::Oneshot;
  for (int i = 0; i < ranks(); ++i)
    ex.window[i] = rank_[static_cast<size_t>((rank + i) % ranks())].window;
  ex.record = rank_[static_cast<size_t>(rank)].record;
  ex.host_abort = rank_[static_cast<size_t>(rank)].abort;
  ex.rank = rank;
  ex.ranks = ranks();
  place_slots(ex, region, two_hops);
  ex.tile_rows = 1;
  ex.hash = 0x5EED;
  return ex;
}

bool GpuWorld::dependents_fit() const {
  return ranks_per_device() == 1 || std::getenv("FCCL_TEST_SHARED_PDL") != nullptr;
}

int GpuWorld::most_blocks(const CudaKernel& kernel, int threads, size_t shared) const {
  int per_sm = 0, sms = 0;
  CHECK_CUDA(cudaSetDevice(0));
  CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel.entry, threads, shared));
  CHECK_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int resident = per_sm * sms;
  const int kernels = ranks_per_device() == 1 ? 2 : ranks_per_device() * (dependents_fit() ? 2 : 1);
  return std::max(1, resident / kernels);
}

void GpuWorld::launch(int rank, const CudaKernel& kernel, const KernelArgs& args,
                      const GpuShape& shape) {
  CHECK_CUDA(cudaSetDevice(device(rank)));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = kernel.packs == 0 ? stream_shared_bytes(args.packs) : 0;
  config.stream = stream(rank);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attribute;
  config.numAttrs = shape.dependent ? 1 : 0;
  void* arguments[] = {const_cast<KernelArgs*>(&args)};
  CHECK_CUDA(cudaLaunchKernelExC(&config, kernel.entry, arguments));
}

bool GpuWorld::wait(double seconds) {
  seconds *= static_cast<double>(slow_factor());
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < ranks(); ++r) {
    for (;;) {
      const cudaError_t result = cudaStreamQuery(stream(r));
      if (result == cudaSuccess) break;
      if (result != cudaErrorNotReady) CHECK_CUDA(result);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (waited.count() > seconds) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  return true;
}

Control GpuWorld::control(int rank) const {
  Control copy;
  CHECK_CUDA(cudaMemcpy(
      &copy, rank_[static_cast<size_t>(rank)].window, sizeof copy, cudaMemcpyDeviceToHost));
  return copy;
}

void GpuWorld::set_limit(int rank, int64_t ms) {
  const uint64_t limit = static_cast<uint64_t>(ms) * 1000000;
  CHECK_CUDA(cudaMemcpy(rank_[static_cast<size_t>(rank)].window + offsetof(Control, limit_ns),
                        &limit,
                        sizeof limit,
                        cudaMemcpyHostToDevice));
}

void GpuWorld::poison(int rank) {
  CHECK_CUDA(cudaMemcpy(rank_[static_cast<size_t>(rank)].window + offsetof(Control, line),
                        &kPoisonedLine,
                        sizeof kPoisonedLine,
                        cudaMemcpyHostToDevice));
}

std::string GpuWorld::not_at_rest(uint64_t exchanges) const {
  std::vector<unsigned char> bytes;
  const auto all = [&](const Rank& rank, const Region& region, unsigned char value) {
    bytes.resize(region.generation * kGenerations);
    CHECK_CUDA(cudaMemcpy(
        bytes.data(), rank.window + region.offset, bytes.size(), cudaMemcpyDeviceToHost));
    return std::all_of(bytes.begin(), bytes.end(), [value](unsigned char b) { return b == value; });
  };
  for (int r = 0; r < ranks(); ++r) {
    const Control own = control(r);
    const std::string who = "rank " + std::to_string(r) + ": ";
    if (own.status != 0) return who + "status " + std::to_string(own.status);
    if (own.line != line_of(options_.start_epoch + exchanges))
      return who + "line " + std::to_string(own.line);
    const Rank& rank = rank_[static_cast<size_t>(r)];
    if (!all(rank, layout_.lamport, 0xFF)) return who + "a Lamport slot was not re-armed";
    if (!all(rank, layout_.ll, 0)) return who + "an LL line was not zeroed";
  }
  return "";
}

}  // namespace fccl::test
