// Makes the kernels of cpu_wide.h, in the namespace of wide packs.
#pragma once
#define FCCL_CPU_WIDE
#include "device/algo/oneshot.h"
#include "device/algo/twoshot_rows.h"
#include "device/dialect/rounding_cpu.h"
#include "device/entry/cpu_wide.h"
#include "device/protocol/flags.h"

namespace fccl::FCCL_TARGET {

template <AlgoKind kAlgo, class T, int kRanks, bool kNorm>
void run_wide(const KernelArgs& args, const CpuLaunch& launch) {
  const DefaultRounding rounding;
  KernelArgs wide = args;
  wide.packs /= kWidth;
  wide.ex.generation /= kWidth;
  wide.ex.hop_stride /= kWidth;
  wide.ex.from_stride /= kWidth;
  Block block(launch);
  using Epilogue = std::conditional_t<kNorm, FusedNorm<T, true>, Reduce<T>>;
  if constexpr (kAlgo == AlgoKind::Oneshot) {
    Oneshot<Flags, kRanks, Epilogue>::run(block, wide);
  } else {
    TwoshotRows<Flags, kRanks, Epilogue>::run(block, wide);
  }
}

#define FCCL_WIDE_KERNEL(algo, T, ranks, norm) \
  template void run_wide<AlgoKind::algo, T, ranks, norm>(const KernelArgs&, const CpuLaunch&);
#define FCCL_WIDE_KERNELS(T)                 \
  FCCL_WIDE_KERNEL(Oneshot, T, 1, true)      \
  FCCL_WIDE_KERNEL(Oneshot, T, 2, true)      \
  FCCL_WIDE_KERNEL(Oneshot, T, 0, true)      \
  FCCL_WIDE_KERNEL(TwoshotRows, T, 2, true)  \
  FCCL_WIDE_KERNEL(TwoshotRows, T, 0, true)  \
  FCCL_WIDE_KERNEL(Oneshot, T, 2, false)     \
  FCCL_WIDE_KERNEL(Oneshot, T, 0, false)     \
  FCCL_WIDE_KERNEL(TwoshotRows, T, 2, false) \
  FCCL_WIDE_KERNEL(TwoshotRows, T, 0, false)

}  // namespace fccl::FCCL_TARGET
