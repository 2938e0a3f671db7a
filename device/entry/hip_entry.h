// What a HIP backend and the kernel entry files agree on: one entry point per kernel and shape of a
// row, found through one function per entry file. An instance holds `packs` packs of a row per
// thread in registers, or with 0 takes rows of any length and needs shared memory for them
// (stream_shared_bytes). Blocks are a multiple of 64 threads; the grid is resident as a whole.
#pragma once
#include "device/entry/gpu_shape.h"
#include "device/layout/args.h"

namespace fccl {

struct HipKernel {
  const void* entry = nullptr;  // kernel of KernelArgs; null: no such instance
  int packs = 0;  // per thread; 0: any row
  int max_threads = 0;  // of a block
};

}  // namespace fccl
