#include "backend/cuda/kernels.h"

#include <algorithm>

namespace fccl {

Status KernelBook::load(int ranks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if ((ranks_loaded_ >> ranks & 1) != 0) return {};
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

Result<int> KernelBook::most_blocks(const CudaShape& shape, int sharers) {
  FCCL_TRY_ASSIGN(per_sm, resident(shape.kernel.entry, shape.threads, shape.shared_bytes));
  if (sharers <= 1) return per_sm * device_.sm_count();
  const int whole_halves = per_sm >= 2 ? per_sm / 2 * 2 : 1;
  return std::max(1, whole_halves * device_.sm_count() / sharers);
}

Result<CudaShape> KernelBook::shape_of(const Launch& launch, int sharers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CudaShape shape = cuda_shape(launch.id, launch.args, device_.sm_count());
  if (shape.kernel.entry == nullptr)
    return error(Code::InternalError, "no CUDA kernel for this plan");
  // More packs per thread make smaller blocks, of which two fit an SM.
  for (int held = 2; sharers > 1 && shape.kernel.packs != 0 && held <= kMostHeldPacks; held *= 2) {
    FCCL_TRY_ASSIGN(per_sm, resident(shape.kernel.entry, shape.threads, shape.shared_bytes));
    if (per_sm >= 2) break;
    shape = cuda_shape(launch.id, launch.args, device_.sm_count(), held);
  }
  FCCL_TRY_ASSIGN(most, most_blocks(shape, sharers));
  shape.blocks = std::clamp(shape.blocks, 1, most);
  if (launch.max_blocks > 0) shape.blocks = std::min(shape.blocks, launch.max_blocks);
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
