#include "backend/cuda/kernels.h"

#include <algorithm>

namespace fccl {
namespace {

// Rows that a grid works on at the same time.
int64_t tiles_of(int64_t rows, int tile_rows) {
  return tile_rows <= 1 ? rows : (rows + tile_rows - 1) / tile_rows;
}

int64_t units_of_work(const Launch& launch) {
  const KernelArgs& a = launch.args;
  if (launch.id.algo == AlgoKind::Oneshot && launch.id.op != OpKind::ReduceScatter) return a.rows;
  if (launch.id.algo != AlgoKind::TwoshotRows) return tiles_of(a.rows, a.ex.tile_rows);
  const int64_t most = (a.total_rows + a.ex.ranks - 1) / std::max(a.ex.ranks, 1) - a.chunk_first;
  return tiles_of(std::clamp<int64_t>(most, 1, std::max(a.chunk_rows, 1)), a.ex.tile_rows);
}

int threads_for(const CudaKernel& kernel, int packs) {
  const int wanted = kernel.packs == 0 ? packs : (packs + kernel.packs - 1) / kernel.packs;
  return std::min((std::max(wanted, 1) + 31) / 32 * 32, kernel.max_threads);
}

}  // namespace

Status KernelBook::load(int ranks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if ((ranks_loaded_ >> ranks & 1) != 0) return {};
  FCCL_TRY(load_one(wait_for_call_entry(), false));
  struct Visit {
    KernelBook* book;
    Status status;
  } visit{this, {}};
  visit_cuda_kernels(
      ranks,
      [](void* context, const CudaKernel& kernel, int) {
        auto* v = static_cast<Visit*>(context);
        if (v->status.ok()) v->status = v->book->load_one(kernel.entry, kernel.packs == 0);
      },
      &visit);
  FCCL_TRY(visit.status);
  ranks_loaded_ |= 1u << ranks;
  return {};
}

Status KernelBook::load_one(const void* entry, bool streams) {
  if (loaded_.count(entry) != 0) return {};
  cudaFuncAttributes attributes{};
  const cudaError_t found = cudaFuncGetAttributes(&attributes, entry);
  if (found == cudaErrorNoKernelImageForDevice || found == cudaErrorInvalidDeviceFunction) {
    static_cast<void>(cudaGetLastError());
    return error(Code::Unsupported,
                 "fccl was built without kernels for this GPU (sm_%d)",
                 device_.arch() / 10);
  }
  FCCL_CUDA_TRY(found, "loading a kernel");
  Loaded loaded;
  loaded.static_shared = static_cast<int>(attributes.sharedSizeBytes);
  if (streams)
    FCCL_CUDA_TRY(cudaFuncSetAttribute(entry,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       device_.block_shared_bytes() - loaded.static_shared),
                  "shared memory of a kernel");
  loaded_.emplace(entry, loaded);
  return {};
}

Result<int> KernelBook::resident(const void* entry, int threads, size_t shared) {
  const auto found = loaded_.find(entry);
  if (found == loaded_.end()) return error(Code::InternalError, "a kernel was not loaded in init");
  Loaded& kernel = found->second;
  const auto key = std::make_pair(threads, shared);
  const auto known = kernel.per_sm.find(key);
  if (known != kernel.per_sm.end()) return known->second;
  if (shared + static_cast<size_t>(kernel.static_shared) >
      static_cast<size_t>(device_.block_shared_bytes()))
    return error(Code::Unsupported,
                 "a row needs %zu bytes of shared memory; a block of this GPU has %d",
                 shared,
                 device_.block_shared_bytes() - kernel.static_shared);
  int blocks = 0;
  FCCL_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry, threads, shared),
                "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (blocks == 0)
    return error(Code::InternalError, "a block of %d threads of this kernel does not fit", threads);
  kernel.per_sm.emplace(key, blocks);
  return blocks;
}

Result<int> KernelBook::most_blocks(const CudaKernel& kernel, int threads, size_t shared,
                                    int sharers) {
  FCCL_TRY_ASSIGN(per_sm, resident(kernel.entry, threads, shared));
  if (sharers <= 1) {
    const int half = std::max(1, device_.sm_threads() / 2 / threads);
    return std::min(per_sm, half) * device_.sm_count();
  }
  const int whole_halves = per_sm >= 2 ? per_sm / 2 * 2 : 1;
  return std::max(1, whole_halves * device_.sm_count() / sharers);
}

// One pack per thread is the fastest where a row fits (measured on H200 at every size); more packs
// per thread make smaller blocks, of which two fit an SM.
Result<KernelShape> KernelBook::shape_of(const Launch& launch, int sharers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const KernelArgs& a = launch.args;
  KernelShape shape;
  for (int held = 1; held <= kMostHeldPacks; held *= 2) {
    shape.kernel = find_cuda_kernel(launch.id, a.ex.ranks, a.packs, held);
    if (shape.kernel.entry == nullptr)
      return error(Code::InternalError, "no CUDA kernel for this plan");
    shape.threads = threads_for(shape.kernel, a.packs);
    shape.shared_bytes = shape.kernel.packs == 0 ? stream_shared_bytes(a.packs) : 0;
    if (sharers <= 1 || shape.kernel.packs == 0) break;
    FCCL_TRY_ASSIGN(per_sm, resident(shape.kernel.entry, shape.threads, shape.shared_bytes));
    if (per_sm >= 2) break;
  }
  FCCL_TRY_ASSIGN(most, most_blocks(shape.kernel, shape.threads, shape.shared_bytes, sharers));
  int64_t blocks = std::clamp<int64_t>(units_of_work(launch), 1, most);
  if (launch.max_blocks > 0) blocks = std::min<int64_t>(blocks, launch.max_blocks);
  shape.blocks = static_cast<int>(blocks);
  return shape;
}

LaunchLimits KernelBook::limits() const {
  LaunchLimits limits;
  limits.max_threads = 1024;
  limits.sm_count = device_.sm_count();
  limits.max_blocks = device_.sm_count();
  limits.arch = device_.arch();
  return limits;
}

}  // namespace fccl
