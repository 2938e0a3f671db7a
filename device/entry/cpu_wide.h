// Kernels in wide packs (dialect/target_cpu.h), for what is the default on CPUs: flags, one-shot
// and rows, rows of whole wide packs. They move the bytes of the narrow kernels to the same places
// and give the same bits, so that a rank may take either. Instances are made by the cpu_wide_*.cc.
#pragma once
#include "device/dialect/target_cpu.h"
#include "device/entry/cpu_entry.h"
#include "device/types/number.h"

namespace fccl::FCCL_WIDE_TARGET {

constexpr int kWidth = FCCL_WIDE_PACK_BYTES / 16;  // packs in a wide one; 1: the level has none

template <AlgoKind kAlgo, class T, int kRanks, bool kNorm>
void run_wide(const KernelArgs& args, const CpuLaunch& launch);

}  // namespace fccl::FCCL_WIDE_TARGET
