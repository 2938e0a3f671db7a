// What the CUDA backend and the kernel entry files agree on: one entry point per kernel and shape
// of a row, found through one function per entry file (cuda_table.cc). An instance holds `packs`
// packs of a row per thread in registers, or with 0 takes rows of any length and needs shared
// memory for them.
#pragma once
#include <cstddef>

#include "device/entry/gpu_shape.h"
#include "device/layout/args.h"

namespace fccl {

struct CudaKernel {
  const void* entry = nullptr;  // __global__ void (KernelArgs); null: no such instance
  int packs = 0;  // per thread; 0: any row
  int max_threads = 0;  // of a block
};

// The instance for this kernel that serves rows of `packs`: the exact one, else one for any number
// of ranks, else one for any row. `packs_per_thread` is a wish; 0 is none.
CudaKernel find_cuda_kernel(const KernelId& id, int ranks, int packs, int packs_per_thread);

// How a launch is laid out on a device of `sm_count` SMs that the communicator has for itself;
// whoever shares one takes fewer blocks. Never more blocks than are resident together.
struct CudaShape {
  CudaKernel kernel;
  int threads = 0;
  int blocks = 0;
  size_t shared_bytes = 0;
};
// `packs_per_thread`: a wish, for measuring; 0 is none.
CudaShape cuda_shape(const KernelId& id, const KernelArgs& args, int sm_count,
                     int packs_per_thread = 0);

// Every instance, for loading them all before anything is captured.
using CudaKernelVisitor = void (*)(void* context, const CudaKernel& kernel, int ranks);
void visit_cuda_kernels(int ranks, CudaKernelVisitor visit, void* context);

}  // namespace fccl
