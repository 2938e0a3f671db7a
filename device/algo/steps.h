// Steps that several algorithms share: fold what all ranks sent, and finish a row.
#pragma once
#include "device/epilogue/fused_norm.h"
#include "device/epilogue/reduce.h"
#include "device/protocol/flags.h"
#include "device/protocol/lamport.h"
#include "device/protocol/ll.h"

namespace fccl::FCCL_TARGET {

template <int kRanks>
struct Received {
  Pack packs[kRanks > 0 ? kRanks : kMaxRanks];
  FCCL_DEVICE Pack& operator[](int q) { return packs[q]; }
};

// x[0] + x[1] + ... in rank order.
template <int kRanks, class Epilogue>
FCCL_DEVICE auto fold_ranks(const Epilogue& epilogue, const ExchangeArgs& ex, Received<kRanks>& got) {
  using T = typename Epilogue::Type;
  auto sum = to_floats<T>(got[0]);
  each_rank<kRanks>(ex, 1, [&](int q) { sum = epilogue.fold(sum, to_floats<T>(got[q])); });
  return sum;
}

template <class Epilogue>
FCCL_DEVICE Rows<typename Epilogue::Type, Epilogue::kWhole> input_rows(const KernelArgs& a) {
  return {a.input, a.hidden, a.total_rows - 1, a.last_hidden};
}

}  // namespace fccl::FCCL_TARGET
