// ReduceScatter: the first hop of the row-owned two-shot. Part o of every rank's input goes to rank
// o, which folds the parts in rank order. Closed: every rank has rows (the host launches nothing
// for none), so it receives something of every rank.
#pragma once
#include "device/algo/steps.h"

namespace fccl::FCCL_TARGET {

template <template <int> class Protocol, int kRanks, class Epilogue>
class ReduceScatter {
 public:
  using T = typename Epilogue::Type;

  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Exchange<kRanks> exchange(a.ex);
    if (!exchange.enter()) return;
    exchange.push_header(blk);
    exchange.begin(blk);
    if (exchange.check_headers(blk)) fold_tiles(blk, a, exchange);
    exchange.close(blk);
  }

 private:
  FCCL_DEVICE static void fold_tiles(Block& blk, const KernelArgs& a,
                                     const Exchange<kRanks>& exchange) {
    const Protocol<kRanks> hop(exchange, 0, Hop::Scatter);
    const Epilogue epilogue(a);
    const int size = a.ex.tile_rows;
    const int tiles = (a.rows + size - 1) / size;
    for (int tile = blk.id(); tile < tiles; tile += blk.count()) {
      const int first = tile * size;
      const int last = first + size < a.rows ? first + size : a.rows;
      each_rank<kRanks>(a.ex, 1, [&](int i) {
        const auto part =
            part_of(a, a.ex.rank + i < a.ex.ranks ? a.ex.rank + i : a.ex.rank + i - a.ex.ranks);
        const auto out = hop.sender(i);
        for (int row = first; row < last; ++row) {
          const uint32_t at = pack_index(row, a.packs);
          const auto input = part.row(row);
          blk.each_pack(0, a.packs, [&](Slot, int p) { out.put(at + p, input.load(p)); });
        }
      });
      hop.publish(blk, tile);
      if (!hop.acquire(blk, tile, first)) return;
      const auto own = part_of(a, a.ex.rank);
      for (int row = first; row < last; ++row) fold_row(blk, a, hop, epilogue, own, row);
      if (blk.any_failed()) return;
    }
  }

  FCCL_DEVICE static Rows<T, false> part_of(const KernelArgs& a, int owner) {
    return {Tensor{a.input.ptr + owner * a.part_stride, a.input.stride},
            a.hidden,
            a.total_rows - 1,
            a.last_hidden};
  }

  FCCL_DEVICE static void fold_row(Block& blk, const KernelArgs& a, const Protocol<kRanks>& hop,
                                   const Epilogue& epilogue, const Rows<T, false>& own, int row) {
    const auto line = epilogue.row(row, row);
    const auto input = own.row(row);
    const auto& in = hop.reader();
    blk.each_pack(0, a.packs, [&](Slot, int p) {
      const uint32_t at = pack_index(row, a.packs, p);
      auto sum = all_floats<kElements<T>>(0.0f);
      if (!fold_ranks<kRanks, T>(blk, a.ex, in, at, row, input.load(p), line, sum)) return;
      line.keep(p, line.combine(p, sum, zero_pack()));
      in.release_all(at);
    });
  }
};

}  // namespace fccl::FCCL_TARGET
