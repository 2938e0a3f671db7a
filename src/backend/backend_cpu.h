// The CPU backend and its kernel tables.
#pragma once
#include "backend/backend.h"
#include "device/entry/cpu_entry.h"

namespace fccl {

Backend* cpu_backend();

// Kernels of the best level built that is not above `level`; null if there is none.
CpuKernelTable cpu_kernels(CpuLevel level);

}  // namespace fccl
