// AllGather and Broadcast: pure copies (a NaN becomes the canonical one, as in every output).
//
// AllGather: every rank pushes its part to all. Closed by itself.
// Broadcast: the root pushes, the others only receive, and a rank that has the data has heard of
// the root alone. So that the exchange is closed all the same, every rank arrives at the pads of
// all peers when it starts (hop 1, tile 0) and leaves only after it saw all arrivals.
#pragma once
#include "device/algo/steps.h"
#include "device/protocol/flags.h"

namespace fccl::FCCL_TARGET {

template <class T>
FCCL_DEVICE Pack canonical(Pack p) {
  return to_pack<T>(to_floats<T>(p));
}

template <template <int> class Protocol, int kRanks, class T>
class Gather {
 public:
  FCCL_DEVICE static void all_gather(Block& blk, const KernelArgs& a) {
    Exchange<kRanks> exchange(a.ex);
    if (!exchange.enter()) return;
    exchange.push_header(blk);
    exchange.begin(blk);
    if (exchange.check_headers(blk)) gather_tiles(blk, a, exchange);
    exchange.close(blk);
  }

  FCCL_DEVICE static void broadcast(Block& blk, const KernelArgs& a) {
    Exchange<kRanks> exchange(a.ex);
    if (!exchange.enter()) return;
    exchange.push_header(blk);
    exchange.begin(blk);
    if (exchange.check_headers(blk)) broadcast_tiles(blk, a, exchange);
    exchange.close(blk);
  }

 private:
  FCCL_DEVICE static void gather_tiles(Block& blk, const KernelArgs& a,
                                       const Exchange<kRanks>& exchange) {
    const Protocol<kRanks> hop(exchange, 0, Hop::Gather);
    each_tile(blk, a, [&](int tile, int first, int last) {
      const auto own = part_of(a, a.ex.rank);
      for (int row = first; row < last; ++row) push_row(blk, a, hop, row, &own);
      hop.publish(blk, tile);
      if (!hop.acquire(blk, tile, first)) return false;
      each_rank<kRanks>(a.ex, 0, [&](int q) {
        if (q == a.ex.rank) return;
        const auto part = part_of(a, q);
        for (int row = first; row < last; ++row) take_row(blk, a, hop, q, row, part);
      });
      return !blk.any_failed();
    });
  }

  FCCL_DEVICE static void broadcast_tiles(Block& blk, const KernelArgs& a,
                                          const Exchange<kRanks>& exchange) {
    const Protocol<kRanks> hop(exchange, 0, Hop::Gather);
    const Flags<kRanks> closing(exchange, 1, Hop::Gather);
    if (blk.id() == 0) closing.publish(blk, 0);
    const auto out = part_of(a, 0);
    const bool ok = each_tile(blk, a, [&](int tile, int first, int last) {
      if (a.ex.rank == a.root) {
        for (int row = first; row < last; ++row) push_row(blk, a, hop, row, &out);
        hop.publish(blk, tile);
        return true;
      }
      if (!hop.acquire_from(blk, a.root, tile, first)) return false;
      for (int row = first; row < last; ++row) take_row(blk, a, hop, a.root, row, out);
      return !blk.any_failed();
    });
    if (ok && blk.id() == 0) closing.acquire(blk, 0, 0);
  }

  FCCL_DEVICE static Rows<T, false> part_of(const KernelArgs& a, int q) {
    return {Tensor{a.norm_out.ptr + q * a.part_stride, a.norm_out.stride},
            a.hidden,
            a.total_rows - 1,
            a.last_hidden};
  }

  template <class F>
  FCCL_DEVICE static bool each_tile(Block& blk, const KernelArgs& a, F&& f) {
    const int size = a.ex.tile_rows;
    const int tiles = (a.rows + size - 1) / size;
    for (int tile = blk.id(); tile < tiles; tile += blk.count()) {
      const int first = tile * size;
      if (!f(tile, first, first + size < a.rows ? first + size : a.rows)) return false;
    }
    return true;
  }

  // Sends a row of the input to all peers and copies it to the own output.
  FCCL_DEVICE static void push_row(Block& blk, const KernelArgs& a, const Protocol<kRanks>& hop,
                                   int row, const Rows<T, false>* own) {
    const auto input = Rows<T, false>(a.input, a.hidden, a.total_rows - 1, a.last_hidden).row(row);
    const auto copy = own->row(row);
    const bool alone = rank_count<kRanks>(a.ex) == 1;
    const auto out = hop.sender_to_all(1);
    const uint32_t at = pack_index(row, a.packs);
    blk.each_pack(0, a.packs, [&](Slot, int p) {
      const Pack x = canonical<T>(input.load(p));
      if (!alone) out.put(at + p, x);
      copy.store(p, x);
    });
  }

  FCCL_DEVICE static void take_row(Block& blk, const KernelArgs& a, const Protocol<kRanks>& hop,
                                   int q, int row, const Rows<T, false>& out) {
    const auto line = out.row(row);
    const auto& in = hop.reader();
    blk.each_pack(0, a.packs, [&](Slot, int p) {
      const uint32_t at = pack_index(row, a.packs, p);
      Pack got;
      if (!in.receive(blk, q, at, row, got)) return;
      line.store(p, canonical<T>(got));
      in.release(q, at);
    });
  }
};

}  // namespace fccl::FCCL_TARGET
