// What the CPU backend and the kernel entry files agree on: one function per kernel and level,
// found through a table per level (cpu_table.cc), run on the calling thread as one block.
#pragma once
#include <cstddef>

#include "device/layout/args.h"

namespace fccl {

struct CpuLaunch {
  int32_t block = 0;
  int32_t blocks = 1;
  char* scratch = nullptr;  // 64-byte aligned
  size_t scratch_bytes = 0;  // at least cpu_scratch_bytes(packs)
  uint32_t spins = 0;  // polls before giving the CPU away
  uint32_t yields = 0;  // times it is given to another thread before sleeping
  uint32_t chaos = 0;  // seed of random delays; 0: none
};

using CpuKernel = void (*)(const KernelArgs& args, const CpuLaunch& launch);
// null: no such instance
using CpuKernelTable = CpuKernel (*)(const KernelId& id, int ranks);

// A row of packs, its pair sums, and the unit sums of a split row.
constexpr size_t cpu_scratch_bytes(int packs) {
  return 2u * (static_cast<size_t>(packs) * 16 + 256) + 1024;
}

}  // namespace fccl
