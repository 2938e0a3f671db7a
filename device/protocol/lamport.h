// Lamport mailboxes: the data is its own flag.
//
// WHO WRITES WHAT. Slot (generation, hop, sender) of a rank's mailbox is written by that sender
// only, each word once per exchange (push), and set back to the sentinel by the owner's lane that
// read it (release), in the same launch. A word has arrived when it is not the sentinel; senders
// replace the sentinel, one NaN, by another NaN. Packs are pushed whole: elements beyond the row
// are 0. ORDER. None is needed between the words of a push: each carries its own arrival. Between
// the re-arm of a slot and the next push into it lies a whole exchange (exchange.h). MEMORY.
// Relaxed system-scope 16-byte accesses; all four words are tested, so a torn pack is seen as not
// arrived. Re-arm with the same kind of store as a push, never a weak one.
#pragma once
#include "device/protocol/exchange.h"

namespace fccl::FCCL_TARGET {

template <int kRanks>
class Lamport {
 public:
  static constexpr ProtocolKind kind = ProtocolKind::Lamport;
  static constexpr bool kWaitsForPacks = true;

  FCCL_DEVICE Lamport(const Exchange<kRanks>& exchange, int hop, Hop)
      : exchange_(exchange), hop_(hop) {}

  FCCL_DEVICE uint64_t places() const {
    const ExchangeArgs& ex = exchange_.args();
    if constexpr (kRanks == 2)
      return reinterpret_cast<uint64_t>(ex.to_peer) | reinterpret_cast<uint64_t>(ex.from_peer) |
             ex.generation;
    return 0;
  }
  // Pack `index` of this rank's slot at peer i (an index into window[]).
  FCCL_DEVICE void push(int i, uint32_t index, Pack p) const {
    store_peer(outgoing(i, index), without_sentinel(p));
  }
  FCCL_DEVICE SendTo<Lamport> sender(int i) const { return {*this, i}; }
  FCCL_DEVICE SendAll<Lamport, kRanks> sender_to_all(int first) const {
    return {*this, exchange_.args(), first};
  }
  FCCL_DEVICE void publish(Block&, int) const {
    Block::ring_peers(exchange_.args(), rank_count<kRanks>(exchange_.args()));
  }
  FCCL_DEVICE void publish_to(Block&, int i, int) const { Block::ring_peer(exchange_.args(), i); }
  FCCL_DEVICE bool acquire(Block&, int, int) const { return true; }
  FCCL_DEVICE bool acquire_from(Block&, int, int, int) const { return true; }
  FCCL_DEVICE bool acquire_own(Block&, int, int) const { return true; }

  // What a step reads, by value where that keeps it in registers.
  FCCL_DEVICE const Lamport& reader() const { return *this; }

  // Waits for pack `index` of every other rank; the own one is `mine`.
  template <class Got>
  FCCL_DEVICE bool receive_all(Block& blk, uint32_t index, int row, Pack mine, Got& got) const {
    const ExchangeArgs& ex = exchange_.args();
    if constexpr (kRanks == 2) {  // the order of two changes no bit: no choice by rank in the poll
      got[0] = mine;
      return receive_at(blk, from_peer(index), 1 - ex.rank, row, got[1]);
    } else {
      auto ready = [&] {
        bool all = true;
#if FCCL_POLL_WITHOUT_BRANCHES  // the own slot too: it is there, and nobody pushes to it here
        each_rank<kRanks>(ex, 0, [&](int q) { got[q] = load_peer(slots().incoming(q, index)); });
        each_rank<kRanks>(ex, 0, [&](int q) { all &= (q == ex.rank) | arrived(got[q]); });
        each_rank<kRanks>(ex, 0, [&](int q) {
          if (q == ex.rank) got[q] = mine;
        });
#else
        each_rank<kRanks>(ex, 0, [&](int q) {
          if (q == ex.rank) {
            got[q] = mine;
          } else {
            got[q] = load_peer(slots().incoming(q, index));
            all = arrived(got[q]) && all;
          }
        });
#endif
        return all;
      };
      return exchange_.wait(blk, ready, [&] { return Waiting{missing(index), hop_, row}; });
    }
  }
  FCCL_DEVICE void release_all(uint32_t index) const {
    const ExchangeArgs& ex = exchange_.args();
    if constexpr (kRanks == 2) {
      store_peer(from_peer(index), sentinel_pack());
    } else {
      each_rank<kRanks>(ex, 0, [&](int q) {
        if (q != ex.rank) release(q, index);
      });
    }
  }
  // The same for one sender, this rank included if it pushed to itself.
  FCCL_DEVICE bool receive(Block& blk, int q, uint32_t index, int row, Pack& got) const {
    return receive_at(blk, slots().incoming(q, index), q, row, got);
  }
  FCCL_DEVICE void release(int q, uint32_t index) const {
    store_peer(slots().incoming(q, index), sentinel_pack());
  }

 private:
  FCCL_DEVICE bool receive_at(Block& blk, const char* at, int q, int row, Pack& got) const {
    auto ready = [&] {
      got = load_peer(at);
      return arrived(got);
    };
    return exchange_.wait(blk, ready, [&] { return Waiting{q, hop_, row}; });
  }
  FCCL_DEVICE char* outgoing(int i, uint32_t index) const {
    if (kRanks == 2 && i == 1) return exchange_.args().to_peer + pack_offset(from_slot(index));
    return slots().outgoing(i, index);
  }
  // Of two ranks.
  FCCL_DEVICE char* from_peer(uint32_t index) const {
    return exchange_.args().from_peer + pack_offset(from_slot(index));
  }
  FCCL_DEVICE uint32_t from_slot(uint32_t index) const {
    const ExchangeArgs& ex = exchange_.args();
    return exchange_.gen() * ex.generation + static_cast<uint32_t>(hop_) * ex.hop_stride + index;
  }
  FCCL_DEVICE Slots slots() const {
    return {exchange_.args(), exchange_.gen(), hop_};
  }

  FCCL_DEVICE int missing(uint32_t index) const {
    const ExchangeArgs& ex = exchange_.args();
    int peer = ex.rank;
    each_rank<kRanks>(ex, 0, [&](int q) {
      if (q != ex.rank && !arrived(load_peer(slots().incoming(q, index)))) peer = q;
    });
    return peer;
  }

  const Exchange<kRanks>& exchange_;
  const int hop_;
};

}  // namespace fccl::FCCL_TARGET
