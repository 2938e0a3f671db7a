// Signal pads: plain stores into staging, then one arrival for a whole tile of rows.
//
// WHO WRITES WHAT. Staging slot (parity of the epoch, hop, sender) of a rank is written by that sender
// only. Pad (hop, sender, tile) of a rank is written by that sender only, with the epoch of the
// exchange, after the tile's data (release at system scope); the reader waits until it is at least the
// current epoch (acquire) and never writes it. Pads are monotone, so nothing is consumed and a pad that
// is already one exchange ahead is an arrival too.
// WHY TWO STAGING GENERATIONS. The writer of exchange m has completed m-1, so every rank has completed
// m-2, the last user of that parity, and reads nothing of it any more. No re-arm, no exit barrier.
// A pad is per plan tile, never per block: ranks may run different grids.
#pragma once
#include "device/protocol/exchange.h"

namespace fccl::FCCL_TARGET {

template <int kRanks>
class Flags {
 public:
  static constexpr ProtocolKind kind = ProtocolKind::Flags;

  FCCL_DEVICE Flags(const Exchange<kRanks>& exchange, int hop)
      : exchange_(exchange), slots_(exchange.args(), exchange.epoch() & 1u, hop), hop_(hop) {}

  FCCL_DEVICE void push(int i, int64_t index, Pack p) const {
    store_staged(slots_.outgoing(i) + index * kPackBytes, p);
  }
  // Cooperative: the tile's data is complete, in every peer or in one.
  FCCL_DEVICE void publish(Block& blk, int tile) const {
    blk.arrive_begin();
    each_rank<kRanks>(exchange_.args(), 1, [&](int i) { arrive(blk, i, tile); });
    Block::ring_peers(exchange_.args(), rank_count<kRanks>(exchange_.args()));
  }
  FCCL_DEVICE void publish_to(Block& blk, int i, int tile) const {
    blk.arrive_begin();
    arrive(blk, i, tile);
    Block::ring_peer(exchange_.args(), i);
  }
  // Cooperative: waits for the tile of every peer, or of one. False on all lanes after a failure.
  FCCL_DEVICE bool acquire(Block& blk, int tile, int row) const {
    each_rank<kRanks>(exchange_.args(), 1, [&](int i) { wait_for(blk, i, peer_of(i), tile, row); });
    return !blk.any_failed();
  }
  FCCL_DEVICE bool acquire_from(Block& blk, int q, int tile, int row) const {
    wait_for(blk, 0, q, tile, row);
    return !blk.any_failed();
  }

  template <class Got>
  FCCL_DEVICE bool receive_all(Block&, int64_t index, int, Pack mine, Got& got) const {
    const ExchangeArgs& ex = exchange_.args();
    each_rank<kRanks>(ex, 0, [&](int q) {
      got[q] = q == ex.rank ? mine : load_staged(slots_.incoming(q) + index * kPackBytes);
    });
    return true;
  }
  FCCL_DEVICE void release_all(int64_t) const {}
  FCCL_DEVICE bool receive(Block&, int q, int64_t index, int, Pack& got) const {
    got = load_staged(slots_.incoming(q) + index * kPackBytes);
    return true;
  }
  FCCL_DEVICE void release(int, int64_t) const {}

 private:
  FCCL_DEVICE int peer_of(int i) const {
    const ExchangeArgs& ex = exchange_.args();
    return ex.rank + i < ex.ranks ? ex.rank + i : ex.rank + i - ex.ranks;
  }
  FCCL_DEVICE void arrive(Block& blk, int i, int tile) const {
    const ExchangeArgs& ex = exchange_.args();
    blk.by_lane(i, [&] { store_release(&control_of(ex, i).pads[hop_][ex.rank][tile], exchange_.epoch()); });
  }
  FCCL_DEVICE void wait_for(Block& blk, int lane, int q, int tile, int row) const {
    const uint64_t& pad = control_of(exchange_.args(), 0).pads[hop_][q][tile];
    blk.by_lane(lane, [&] {
      exchange_.wait(
          blk, [&] { return static_cast<int64_t>(load_acquire(&pad) - exchange_.epoch()) >= 0; },
          [&] { return Waiting{q, hop_, row}; });
    });
  }

  const Exchange<kRanks>& exchange_;
  const Slots slots_;
  const int hop_;
};

}  // namespace fccl::FCCL_TARGET
