// Makes CUDA kernels out of the algorithms, in the namespace of the row shape (FCCL_CUDA_PACKS).
// More packs per thread need more registers: those instances take at most 512 threads.
#pragma once
#include "device/dialect/block_cuda.h"
#include "device/entry/cuda_entry.h"

namespace fccl::FCCL_TARGET {

using Kernel = CudaKernel;
constexpr int kMaxThreads = kStreamed ? kStreamThreads : held_max_threads(kRowPacks);

template <class Algorithm>
__global__ void __launch_bounds__(kMaxThreads, kStreamed ? 2 : 1)
    cuda_kernel(const __grid_constant__ KernelArgs args) {
  Block block;
  Algorithm::run(block, args);
}

template <class Algorithm>
Kernel instance() {
  return {reinterpret_cast<const void*>(&cuda_kernel<Algorithm>), kRowPacks, kMaxThreads};
}

}  // namespace fccl::FCCL_TARGET

#include "device/entry/gpu_instances.h"
