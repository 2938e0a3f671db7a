// Signal pads: plain stores into staging, then one arrival for a whole tile of rows.
//
// WHO WRITES WHAT. On a GPU senders push: staging slot (parity of the epoch, hop, sender) of a rank
// is written by that sender only. On the CPU readers pull: a rank writes what it offers into its
// own window (slot: parity, hop, receiver; one slot where all get the same), once however many
// peers there are, and the readers' hardware fetches it ahead; a store would have to own the peer's
// line first. Pad (hop, sender, tile) of a rank is written by that sender only, with the epoch of
// the exchange, after the tile's data (release at system scope); the reader waits until it is at
// least the current epoch (acquire) and never writes it. Pads are monotone, so nothing is consumed
// and a pad that is already one exchange ahead is an arrival too. WHY TWO STAGING GENERATIONS. The
// writer of exchange m has completed m-1, so every rank has completed m-2, the last user of that
// parity, and reads nothing of it any more. No re-arm, no exit barrier. A pad is per plan tile,
// never per block: ranks may run different grids.
#pragma once
#include "device/protocol/exchange.h"

namespace fccl::FCCL_TARGET {

constexpr bool kPullStaging = FCCL_PULL_STAGING != 0;

// On the CPU the lines of staging are in a peer's cache when they are written again, and in the
// writer's when they are read: both sides ask for them ahead.
struct StagedWriter {
  char* to;
  FCCL_DEVICE void put(uint32_t index, Pack p) const {
    char* at = to + pack_offset(index);
    if constexpr (kPullStaging) fetch_to_write(at);
    store_staged(at, p);
  }
};

// What a step reads from staging after the arrivals: plain loads, nothing to wait for.
template <int kRanks>
class StagedReader {
 public:
  static constexpr int kHeld = kRanks > 0 ? kRanks : kMaxRanks;
  static constexpr bool kWaitsForPacks = false;

  FCCL_DEVICE StagedReader(const ExchangeArgs& ex, const Slots& slots, Hop hop)
      : rank_(ex.rank), ranks_(ex.ranks) {
    if constexpr (kPullStaging) {
      each_rank<kRanks>(
          ex, 0, [&](int q) { from_[q] = slots.offered_by(q, hop == Hop::Scatter ? ex.rank : 0); });
    } else {
      from_[0] = slots.incoming(0, 0);
      stride_ = pack_offset(ex.from_stride);
    }
  }

  // f(pack) for each rank, in rank order; the own pack is `mine`.
  template <class F>
  FCCL_DEVICE void each_in_order(uint32_t index, Pack mine, F&& f) const {
    if constexpr (kRanks == 2) {  // the order of two changes no bit
      f(0, mine);
      f(1, load(1 - rank_, index));
    } else {
      each_rank<kRanks>(ranks_, 0, [&](int q) { f(q, q == rank_ ? mine : load(q, index)); });
    }
  }
  FCCL_DEVICE void release_all(int64_t) const {}
  FCCL_DEVICE bool receive(Block&, int q, uint32_t index, int, Pack& got) const {
    got = load(q, index);
    return true;
  }
  FCCL_DEVICE void release(int, int64_t) const {}

 private:
  FCCL_DEVICE Pack load(int q, uint32_t index) const {
    const char* at = from(q) + pack_offset(index);
    if constexpr (kPullStaging) fetch_to_read(at);
    return load_staged(at);
  }
  FCCL_DEVICE const char* from(int q) const {
    if constexpr (kPullStaging) {
      return from_[q];
    } else {
      return from_[0] + static_cast<uint64_t>(q) * stride_;
    }
  }

  const char* from_[kPullStaging ? kHeld : 1];
  uint64_t stride_ = 0;
  int rank_;
  int ranks_;
};

template <int kRanks>
class Flags {
 public:
  static constexpr ProtocolKind kind = ProtocolKind::Flags;

  FCCL_DEVICE Flags(const Exchange<kRanks>& exchange, int hop, Hop carries)
      : exchange_(exchange),
        slots_(exchange.args(), static_cast<uint32_t>(exchange.epoch() & 1u), hop),
        hop_(hop),
        carries_(carries) {}

  FCCL_DEVICE void push(int i, uint32_t index, Pack p) const {
    store_staged(slots_.outgoing(i, index), p);
  }
  FCCL_DEVICE StagedWriter sender(int i) const {
    return {kPullStaging ? slots_.offered(rank_at(i)) : slots_.outgoing(i, 0)};
  }
  FCCL_DEVICE auto sender_to_all(int first) const {
    if constexpr (kPullStaging) {
      return StagedWriter{slots_.offered(0)};
    } else {
      return SendAll<Flags, kRanks>{*this, exchange_.args(), first};
    }
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
    each_rank<kRanks>(exchange_.args(), 1, [&](int i) { wait_for(blk, i, rank_at(i), tile, row); });
    return !blk.any_failed();
  }
  FCCL_DEVICE bool acquire_from(Block& blk, int q, int tile, int row) const {
    wait_for(blk, 0, q, tile, row);
    return !blk.any_failed();
  }

  FCCL_DEVICE StagedReader<kRanks> reader() const { return {exchange_.args(), slots_, carries_}; }

 private:
  FCCL_DEVICE int rank_at(int i) const {
    const ExchangeArgs& ex = exchange_.args();
    return ex.rank + i < ex.ranks ? ex.rank + i : ex.rank + i - ex.ranks;
  }
  FCCL_DEVICE void arrive(Block& blk, int i, int tile) const {
    const ExchangeArgs& ex = exchange_.args();
    blk.by_lane(
        i, [&] { store_release(&control_of(ex, i).pads[hop_][ex.rank][tile], exchange_.epoch()); });
  }
  FCCL_DEVICE void wait_for(Block& blk, int lane, int q, int tile, int row) const {
    const uint64_t& pad = control_of(exchange_.args(), 0).pads[hop_][q][tile];
    blk.by_lane(lane, [&] {
      exchange_.wait(
          blk,
          [&] { return static_cast<int64_t>(load_acquire(&pad) - exchange_.epoch()) >= 0; },
          [&] {
            return Waiting{q, hop_, row};
          });
    });
  }

  const Exchange<kRanks>& exchange_;
  const Slots slots_;
  const int hop_;
  const Hop carries_;
};

}  // namespace fccl::FCCL_TARGET
