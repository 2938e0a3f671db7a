// The tables of CPU kernels that this build holds and this machine can run.
#pragma once
#include <vector>

#include "device/entry/cpu_entry.h"

namespace fccl::test {

struct KernelLevel {
  const char* name = "";
  CpuKernelTable find = nullptr;
};

// From the lowest level up; never empty.
const std::vector<KernelLevel>& kernel_levels();

}  // namespace fccl::test
