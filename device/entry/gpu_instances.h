// Which kernels there are on a GPU: one list for all vendors. Included by cuda_instances.h and
// hip_instances.h behind the kernel itself: Kernel (what the table holds) and
// instance<Algorithm>(), which makes one. Entry files call the find functions.
#pragma once
#include "device/algo/gather.h"
#include "device/algo/oneshot.h"
#include "device/algo/reduce_scatter.h"
#include "device/algo/twoshot_cols.h"
#include "device/algo/twoshot_rows.h"
#include "device/protocol/flags.h"
#include "device/protocol/lamport.h"
#include "device/protocol/ll.h"

namespace fccl::FCCL_TARGET {

template <template <int> class Protocol, int kRanks, class T>
struct AllGather {
  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Gather<Protocol, kRanks, T>::all_gather(blk, a);
  }
};
template <template <int> class Protocol, int kRanks, class T>
struct Broadcast {
  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Gather<Protocol, kRanks, T>::broadcast(blk, a);
  }
};

template <class T, int kRanks, bool kPlain>
Kernel find_norm(const KernelId& id) {
  using Epilogue = FusedNorm<T, kPlain>;
  const bool flags = id.protocol == ProtocolKind::Flags;
  if (id.algo == AlgoKind::Oneshot) {
    if (id.protocol == ProtocolKind::Lamport) return instance<Oneshot<Lamport, kRanks, Epilogue>>();
    if (flags) return instance<Oneshot<Flags, kRanks, Epilogue>>();
    return instance<Oneshot<LL, kRanks, Epilogue>>();
  }
  if (id.protocol == ProtocolKind::LL) return {};
  if (id.algo == AlgoKind::TwoshotRows)
    return flags ? instance<TwoshotRows<Flags, kRanks, Epilogue>>()
                 : instance<TwoshotRows<Lamport, kRanks, Epilogue>>();
  return flags ? instance<TwoshotCols<Flags, kRanks, Epilogue>>()
               : instance<TwoshotCols<Lamport, kRanks, Epilogue>>();
}

// Rows of any length: every kernel, and with them whatever has no instance of its own.
template <class T>
Kernel find_streamed_norm(const KernelId& id, int ranks) {
  if (ranks == 2) return find_norm<T, 2, false>(id);
  return find_norm<T, 0, false>(id);
}

// Rows in registers: the kernels that carry the load.
template <class T, int kRanks>
Kernel find_held_norm(const KernelId& id) {
  using Epilogue = FusedNorm<T, true>;
  if (id.protocol != ProtocolKind::Lamport) return {};
  if (id.algo == AlgoKind::Oneshot) return instance<Oneshot<Lamport, kRanks, Epilogue>>();
  if constexpr (kRanks > 2) {
    if (id.algo == AlgoKind::TwoshotRows) return instance<TwoshotRows<Lamport, kRanks, Epilogue>>();
    return instance<TwoshotCols<Lamport, kRanks, Epilogue>>();
  }
  return {};
}
template <class T>
Kernel find_held_norm(const KernelId& id, int ranks) {
  if (!id.plain) return {};
  if (ranks == 2) return find_held_norm<T, 2>(id);
  if (ranks == 4) return find_held_norm<T, 4>(id);
  if (ranks == 8) return find_held_norm<T, 8>(id);
  return {};
}

template <class T, template <int> class Protocol>
Kernel find_collective(const KernelId& id) {
  switch (id.op) {
    case OpKind::AllReduce:
      if (id.algo == AlgoKind::Oneshot) return instance<Oneshot<Protocol, 0, Reduce<T>>>();
      if (id.algo == AlgoKind::TwoshotRows) return instance<TwoshotRows<Protocol, 0, Reduce<T>>>();
      return {};
    case OpKind::ReduceScatter:
      return instance<ReduceScatter<Protocol, 0, Reduce<T>>>();
    case OpKind::AllGather:
      return instance<AllGather<Protocol, 0, T>>();
    case OpKind::Broadcast:
      return instance<Broadcast<Protocol, 0, T>>();
    default:
      return {};
  }
}
template <class T>
Kernel find_collective_of_type(const KernelId& id) {
  if (id.protocol == ProtocolKind::Lamport) return find_collective<T, Lamport>(id);
  if (id.protocol == ProtocolKind::Flags) return find_collective<T, Flags>(id);
  return {};
}

}  // namespace fccl::FCCL_TARGET
