// Signal pads: plain stores into staging, then one arrival for a whole tile of rows.
//
// WHO WRITES WHAT. On a GPU senders push: staging slot (parity of the epoch, hop, sender) of a rank
// is written by that sender only. On the CPU readers pull: a rank writes what it offers into its
// own window (slot: parity, hop, receiver; one slot where all get the same), once however many
// peers there are, and the readers' hardware fetches it ahead; a store would have to own the peer's
// line first. A pad has one writer, who stores the epoch of the exchange after the tile's data
// (release at system scope); the readers wait until it is at least the current epoch (acquire) and
// never write it. Pushed: pad (hop, sender, tile) in the reader's window. Pulled: pad (hop, reader,
// tile) in the sender's own, and (hop, sender, tile) there for what all may read, so that an
// arrival is one store however many peers there are. Pads are monotone, so nothing is consumed and
// a pad that is already one exchange ahead is an arrival too. WHY TWO STAGING GENERATIONS. The
// writer of exchange m has completed m-1, so every rank has completed m-2, the last user of that
// parity, and reads nothing of it any more. No re-arm, no exit barrier. A pad is per plan tile,
// never per block: ranks may run different grids.
#pragma once
#include "device/protocol/exchange.h"

namespace fccl::FCCL_TARGET {

// On the CPU the lines of staging are in a peer's cache when they are written again, and in the
// writer's when they are read: both sides ask for them ahead.
struct StagedWriter {
  char* to;
  FCCL_DEVICE void put(uint32_t index, Pack p) const {
    char* at = to + pack_offset(index);
    if constexpr (kReadersPull) fetch_to_write(at);
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
    if constexpr (kReadersPull) {
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
    if constexpr (kReadersPull) fetch_to_read(at);
    return load_staged(at);
  }
  FCCL_DEVICE const char* from(int q) const {
    if constexpr (kReadersPull) {
      return from_[q];
    } else {
      return from_[0] + static_cast<uint64_t>(q) * stride_;
    }
  }

  const char* from_[kReadersPull ? kHeld : 1];
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
    return {kReadersPull ? slots_.offered(rank_at(i)) : slots_.outgoing(i, 0)};
  }
  FCCL_DEVICE auto sender_to_all(int first) const {
    if constexpr (kReadersPull) {
      return StagedWriter{slots_.offered(0)};
    } else {
      return SendAll<Flags, kRanks>{*this, exchange_.args(), first};
    }
  }
  // Cooperative: the tile's data is complete, for every peer or for one.
  FCCL_DEVICE void publish(Block& blk, int tile) const {
    const ExchangeArgs& ex = exchange_.args();
    blk.arrive_begin();
    if constexpr (kReadersPull) {
      arrive(0, ex.rank, tile);
    } else {
      each_rank<kRanks>(ex, 1, [&](int i) { blk.by_lane(i, [&] { arrive(i, ex.rank, tile); }); });
    }
    Block::ring_peers(ex, rank_count<kRanks>(ex));
  }
  FCCL_DEVICE void publish_to(Block& blk, int i, int tile) const {
    const ExchangeArgs& ex = exchange_.args();
    blk.arrive_begin();
    if constexpr (kReadersPull) {
      arrive(0, rank_at(i), tile);
    } else {
      blk.by_lane(i, [&] { arrive(i, ex.rank, tile); });
    }
    Block::ring_peer(ex, i);
  }
  // Cooperative: waits for what every peer, or one, published to all; or for what every peer
  // published to this rank. False on all lanes after a failure.
  FCCL_DEVICE bool acquire(Block& blk, int tile, int row) const {
    each_rank<kRanks>(exchange_.args(), 1, [&](int i) {
      wait_for(blk, i, rank_at(i), pad_of(i, rank_at(i), tile), row);
    });
    return !blk.any_failed();
  }
  FCCL_DEVICE bool acquire_from(Block& blk, int q, int tile, int row) const {
    wait_for(blk, 0, q, pad_of(window_of(exchange_.args(), q), q, tile), row);
    return !blk.any_failed();
  }
  FCCL_DEVICE bool acquire_own(Block& blk, int tile, int row) const {
    const ExchangeArgs& ex = exchange_.args();
    each_rank<kRanks>(ex, 1, [&](int i) {
      const int q = rank_at(i);
      wait_for(blk, i, q, pad_of(i, kReadersPull ? ex.rank : q, tile), row);
    });
    return !blk.any_failed();
  }

  FCCL_DEVICE StagedReader<kRanks> reader() const { return {exchange_.args(), slots_, carries_}; }

 private:
  FCCL_DEVICE int rank_at(int i) const {
    const ExchangeArgs& ex = exchange_.args();
    return ex.rank + i < ex.ranks ? ex.rank + i : ex.rank + i - ex.ranks;
  }
  FCCL_DEVICE void arrive(int i, int column, int tile) const {
    store_release(&control_of(exchange_.args(), i).pads[hop_][column][tile], exchange_.epoch());
  }
  // The pad that stands for window i.
  FCCL_DEVICE const uint64_t& pad_of(int i, int column, int tile) const {
    return control_of(exchange_.args(), kReadersPull ? i : 0).pads[hop_][column][tile];
  }
  FCCL_DEVICE void wait_for(Block& blk, int lane, int q, const uint64_t& pad, int row) const {
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
