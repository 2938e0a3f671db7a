// Makes HIP kernels out of the algorithms, in the namespace of the row shape (FCCL_HIP_PACKS).
// The lambdas that hold most, over ranks and in the row-owning two-shot, are inlined whatever the
// compiler thinks of their size: one call, and the block and what it holds would live in scratch.
#pragma once
#include "device/dialect/dialect.h"

#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "device/protocol/exchange.h"
#pragma clang attribute pop
#include "device/algo/steps.h"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "device/algo/twoshot_rows.h"
#pragma clang attribute pop
#include "device/entry/hip_entry.h"

namespace fccl::FCCL_TARGET {

using Kernel = HipKernel;
constexpr int kMaxThreads = kStreamed ? kStreamThreads : held_max_threads(kRowPacks, 2);
// Waves that a SIMD (four to a unit) must have room for: two blocks that stream, one that holds.
constexpr int kWavesPerSimd = (kStreamed ? 2 : 1) * kMaxThreads / 64 / 4;

// The arguments are read where the dispatch put them: the parameter itself would be copied to the
// stack as soon as its address is taken.
template <class Algorithm>
__attribute__((global, amdgpu_flat_work_group_size(64, kMaxThreads),
               amdgpu_waves_per_eu(kWavesPerSimd))) void
hip_kernel(KernelArgs) {
  const auto& args =
      *(const KernelArgs*)(const FCCL_CONSTANT KernelArgs*)__builtin_amdgcn_kernarg_segment_ptr();
  Block block;
  Algorithm::run(block, args);
}

template <class Algorithm>
Kernel instance() {
  return {reinterpret_cast<const void*>(&hip_kernel<Algorithm>), kRowPacks, kMaxThreads};
}

}  // namespace fccl::FCCL_TARGET

#include "device/entry/gpu_instances.h"
