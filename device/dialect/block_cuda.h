// What the execution context of block_gpu.h is made of on CUDA.
#pragma once
#include "device/dialect/memory_cuda.h"

namespace fccl::FCCL_TARGET {

FCCL_DEVICE int thread_index() {
  return static_cast<int>(threadIdx.x);
}
FCCL_DEVICE int thread_count() {
  return static_cast<int>(blockDim.x);
}
FCCL_DEVICE int block_index() {
  return static_cast<int>(blockIdx.x);
}
FCCL_DEVICE int block_count() {
  return static_cast<int>(gridDim.x);
}

// `x` of lane ^ o of the warp.
FCCL_DEVICE float sum_of_partner(float x, int o) {
  return __shfl_xor_sync(~0u, x, o);
}

class Barrier {
 public:
  FCCL_DEVICE void meet() { __syncthreads(); }
  FCCL_DEVICE void meet_after_stores() { __syncthreads(); }
  FCCL_DEVICE bool any(bool mine) { return __syncthreads_or(mine); }
};

FCCL_DEVICE void pause_between_polls() {}
FCCL_DEVICE void loads_of_row_end() {}

using ReportWord = int;

}  // namespace fccl::FCCL_TARGET

#include "device/dialect/block_gpu.h"
