// Makes CPU kernels out of the algorithms: one function each, in the namespace of its level. Each
// runs in the floating-point environment that the contract needs, whatever the caller's is.
#pragma once
#include "device/algo/gather.h"
#include "device/algo/oneshot.h"
#include "device/algo/reduce_scatter.h"
#include "device/algo/twoshot_cols.h"
#include "device/algo/twoshot_rows.h"
#include "device/dialect/rounding_cpu.h"
#include "device/entry/cpu_wide.h"
#include "device/protocol/flags.h"
#include "device/protocol/lamport.h"
#include "device/protocol/ll.h"

namespace fccl::FCCL_TARGET {

template <void (*kRun)(Block&, const KernelArgs&)>
void cpu_kernel(const KernelArgs& args, const CpuLaunch& launch) {
  const DefaultRounding rounding;
  Block block(launch);
  kRun(block, args);
}

// In wide packs where rows are whole ones.
template <void (*kRun)(Block&, const KernelArgs&), AlgoKind kAlgo, class T, int kRanks, bool kNorm>
void cpu_kernel_of_either_width(const KernelArgs& args, const CpuLaunch& launch) {
  constexpr int kWidth = FCCL_WIDE_TARGET::kWidth;
  if constexpr (kWidth > 1) {
    if (args.packs % kWidth == 0)
      return FCCL_WIDE_TARGET::run_wide<kAlgo, T, kRanks, kNorm>(args, launch);
  }
  cpu_kernel<kRun>(args, launch);
}
template <AlgoKind kAlgo, class T, int kRanks>
CpuKernel norm_of_either_width() {
  using Epilogue = FusedNorm<T, true>;
  if constexpr (kAlgo == AlgoKind::Oneshot) {
    return cpu_kernel_of_either_width<Oneshot<Flags, kRanks, Epilogue>::run,
                                      kAlgo,
                                      T,
                                      kRanks,
                                      true>;
  } else {
    return cpu_kernel_of_either_width<TwoshotRows<Flags, kRanks, Epilogue>::run,
                                      kAlgo,
                                      T,
                                      kRanks,
                                      true>;
  }
}

template <class T, int kRanks, bool kPlain>
CpuKernel find_norm(const KernelId& id) {
  using Epilogue = FusedNorm<T, kPlain>;
  if constexpr (kPlain) {
    if (id.protocol == ProtocolKind::Flags && id.algo == AlgoKind::Oneshot)
      return norm_of_either_width<AlgoKind::Oneshot, T, kRanks>();
    if (id.protocol == ProtocolKind::Flags && id.algo == AlgoKind::TwoshotRows)
      return norm_of_either_width<AlgoKind::TwoshotRows, T, kRanks>();
  }
  if (id.algo == AlgoKind::Oneshot) {
    if (id.protocol == ProtocolKind::Lamport)
      return cpu_kernel<Oneshot<Lamport, kRanks, Epilogue>::run>;
    if (id.protocol == ProtocolKind::Flags)
      return cpu_kernel<Oneshot<Flags, kRanks, Epilogue>::run>;
    return cpu_kernel<Oneshot<LL, kRanks, Epilogue>::run>;
  }
  const bool flags = id.protocol == ProtocolKind::Flags;
  if (id.protocol == ProtocolKind::LL) return nullptr;
  if (id.algo == AlgoKind::TwoshotRows)
    return flags ? cpu_kernel<TwoshotRows<Flags, kRanks, Epilogue>::run>
                 : cpu_kernel<TwoshotRows<Lamport, kRanks, Epilogue>::run>;
  return flags ? cpu_kernel<TwoshotCols<Flags, kRanks, Epilogue>::run>
               : cpu_kernel<TwoshotCols<Lamport, kRanks, Epilogue>::run>;
}

// One and two ranks have instances of their own; any other count runs the general one.
template <class T>
CpuKernel find_norm_of_type(const KernelId& id, int ranks) {
  if (ranks == 1 && id.algo == AlgoKind::Oneshot && id.protocol == ProtocolKind::Flags)
    return id.plain ? norm_of_either_width<AlgoKind::Oneshot, T, 1>()
                    : cpu_kernel<Oneshot<Flags, 1, FusedNorm<T, false>>::run>;
  if (ranks == 2) return id.plain ? find_norm<T, 2, true>(id) : find_norm<T, 2, false>(id);
  return id.plain ? find_norm<T, 0, true>(id) : find_norm<T, 0, false>(id);
}

template <AlgoKind kAlgo, class T, int kRanks>
CpuKernel reduce_of_either_width() {
  if constexpr (kAlgo == AlgoKind::Oneshot) {
    return cpu_kernel_of_either_width<Oneshot<Flags, kRanks, Reduce<T>>::run,
                                      kAlgo,
                                      T,
                                      kRanks,
                                      false>;
  } else {
    return cpu_kernel_of_either_width<TwoshotRows<Flags, kRanks, Reduce<T>>::run,
                                      kAlgo,
                                      T,
                                      kRanks,
                                      false>;
  }
}

template <class T, template <int> class Protocol>
CpuKernel find_collective(const KernelId& id, int ranks) {
  if constexpr (Protocol<2>::kind == ProtocolKind::Flags) {
    if (id.op == OpKind::AllReduce && id.algo == AlgoKind::Oneshot)
      return ranks == 2 ? reduce_of_either_width<AlgoKind::Oneshot, T, 2>()
                        : reduce_of_either_width<AlgoKind::Oneshot, T, 0>();
    if (id.op == OpKind::AllReduce && id.algo == AlgoKind::TwoshotRows)
      return ranks == 2 ? reduce_of_either_width<AlgoKind::TwoshotRows, T, 2>()
                        : reduce_of_either_width<AlgoKind::TwoshotRows, T, 0>();
  }
  switch (id.op) {
    case OpKind::AllReduce:
      if (id.algo == AlgoKind::Oneshot)
        return ranks == 2 ? cpu_kernel<Oneshot<Protocol, 2, Reduce<T>>::run>
                          : cpu_kernel<Oneshot<Protocol, 0, Reduce<T>>::run>;
      if (id.algo == AlgoKind::TwoshotRows)
        return ranks == 2 ? cpu_kernel<TwoshotRows<Protocol, 2, Reduce<T>>::run>
                          : cpu_kernel<TwoshotRows<Protocol, 0, Reduce<T>>::run>;
      return nullptr;
    case OpKind::ReduceScatter:
      return cpu_kernel<ReduceScatter<Protocol, 0, Reduce<T>>::run>;
    case OpKind::AllGather:
      return cpu_kernel<Gather<Protocol, 0, T>::all_gather>;
    case OpKind::Broadcast:
      return cpu_kernel<Gather<Protocol, 0, T>::broadcast>;
    default:
      return nullptr;
  }
}

template <class T>
CpuKernel find_collective_of_type(const KernelId& id, int ranks) {
  if (id.protocol == ProtocolKind::Lamport) return find_collective<T, Lamport>(id, ranks);
  if (id.protocol == ProtocolKind::Flags) return find_collective<T, Flags>(id, ranks);
  return nullptr;
}

CpuKernel find_norm_f32(const KernelId& id, int ranks);
CpuKernel find_norm_f16(const KernelId& id, int ranks);
CpuKernel find_norm_bf16(const KernelId& id, int ranks);
CpuKernel find_collective_f32(const KernelId& id, int ranks);
CpuKernel find_collective_f16(const KernelId& id, int ranks);
CpuKernel find_collective_bf16(const KernelId& id, int ranks);

}  // namespace fccl::FCCL_TARGET
