// Makes CUDA kernels out of the algorithms, in the namespace of the row shape (FCCL_CUDA_PACKS).
#pragma once
#include "device/dialect/block_cuda.h"
#include "device/entry/cuda_entry.h"

namespace fccl::FCCL_TARGET {

using Kernel = CudaKernel;

template <class Algorithm>
constexpr int max_threads() {
  if constexpr (kStreamed) {
    return kStreamThreads;
  } else {
    return held_max_threads(kRowPacks, Algorithm::kRankCount);
  }
}

template <class Algorithm>
__global__ void __launch_bounds__(max_threads<Algorithm>(), kStreamed ? 2 : 1)
    cuda_kernel(const __grid_constant__ KernelArgs args) {
  Block block;
  Algorithm::run(block, args);
}

template <class Algorithm>
Kernel instance() {
  return {
      reinterpret_cast<const void*>(&cuda_kernel<Algorithm>), kRowPacks, max_threads<Algorithm>()};
}

}  // namespace fccl::FCCL_TARGET

#include "device/entry/gpu_instances.h"
