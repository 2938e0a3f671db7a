// Steps that several algorithms share: fold what all ranks sent.
#pragma once
#include "device/epilogue/fused_norm.h"
#include "device/epilogue/reduce.h"
#include "device/protocol/exchange.h"

namespace fccl::FCCL_TARGET {

// Where pack `p` of a row stands in a slot.
FCCL_DEVICE uint32_t pack_index(int row, int packs, int p = 0) {
  return static_cast<uint32_t>(row) * static_cast<uint32_t>(packs) + static_cast<uint32_t>(p);
}

template <int kRanks>
struct Received {
  Pack packs[kRanks > 0 ? kRanks : kMaxRanks];
  FCCL_DEVICE Pack& operator[](int q) { return packs[q]; }
};

// x[0] + x[1] + ... in rank order of pack `index`; the own one is `mine`. False: failed.
template <int kRanks, class T, class Reader, class Line>
FCCL_DEVICE bool fold_ranks(Block& blk, const ExchangeArgs& ex, const Reader& in, uint32_t index,
                            int row, Pack mine, const Line& line, Floats<kElements<T>>& sum) {
  auto add = [&](int q, Pack x) {
    if (q == 0) {
      sum = to_floats<T>(x);
    } else {
      sum = line.fold(sum, to_floats<T>(x));
    }
  };
  if constexpr (Reader::kWaitsForPacks) {
    Received<kRanks> got;
    if (!in.receive_all(blk, index, row, mine, got)) return false;
    each_rank<kRanks>(ex, 0, [&](int q) { add(q, got[q]); });
  } else {
    in.each_in_order(index, mine, add);
  }
  return true;
}

template <class Epilogue>
FCCL_DEVICE Rows<typename Epilogue::Type, Epilogue::kWhole> input_rows(const KernelArgs& a) {
  return {a.input, a.hidden, a.total_rows - 1, a.last_hidden};
}

}  // namespace fccl::FCCL_TARGET
