// LL lines: {d0, e, d1, e}, two data words and the exchange's tag in each 8-byte half. For payloads
// that may hold any bits; a pack takes two lines.
//
// WHO WRITES WHAT. As a Lamport mailbox, in a region of its own: the sender writes each line once
// per exchange, the reader zeroes the tags after reading. The tag is the low half of the epoch, and
// never 0; since every line is zeroed before its generation comes round again, no stale tag can be
// met, at the wrap neither. ORDER: each half carries its own tag, so a line may be torn between its
// halves.
#pragma once
#include "device/protocol/exchange.h"

namespace fccl::FCCL_TARGET {

template <int kRanks>
class LL {
 public:
  static constexpr ProtocolKind kind = ProtocolKind::LL;
  static constexpr bool kWaitsForPacks = true;
  static constexpr int kLineBytes = 16;

  FCCL_DEVICE LL(const Exchange<kRanks>& exchange, int hop, Hop) : exchange_(exchange), hop_(hop) {}

  FCCL_DEVICE uint64_t places() const { return 0; }
  FCCL_DEVICE void push(int i, uint32_t index, Pack p) const {
    uint32_t w[4];
    pack_to_words(p, w);
    char* to = slots().outgoing(i, 2 * index);
    const uint32_t first[4] = {w[0], tag(), w[1], tag()};
    const uint32_t second[4] = {w[2], tag(), w[3], tag()};
    store_peer(to, pack_of_words(first));
    store_peer(to + kLineBytes, pack_of_words(second));
  }
  FCCL_DEVICE SendTo<LL> sender(int i) const { return {*this, i}; }
  FCCL_DEVICE SendAll<LL, kRanks> sender_to_all(int first) const {
    return {*this, exchange_.args(), first};
  }
  FCCL_DEVICE void publish(Block&, int) const {
    Block::ring_peers(exchange_.args(), rank_count<kRanks>(exchange_.args()));
  }
  FCCL_DEVICE void publish_to(Block&, int i, int) const { Block::ring_peer(exchange_.args(), i); }
  FCCL_DEVICE bool acquire(Block&, int, int) const { return true; }
  FCCL_DEVICE bool acquire_from(Block&, int, int, int) const { return true; }
  FCCL_DEVICE bool acquire_own(Block&, int, int) const { return true; }

  FCCL_DEVICE const LL& reader() const { return *this; }

  template <class Got>
  FCCL_DEVICE bool receive_all(Block& blk, uint32_t index, int row, Pack mine, Got& got) const {
    const ExchangeArgs& ex = exchange_.args();
    bool ok = true;
    each_rank<kRanks>(ex, 0, [&](int q) {
      if (q == ex.rank) {
        got[q] = mine;
      } else {
        ok = receive(blk, q, index, row, got[q]) && ok;
      }
    });
    return ok;
  }
  FCCL_DEVICE void release_all(uint32_t index) const {
    const ExchangeArgs& ex = exchange_.args();
    each_rank<kRanks>(ex, 0, [&](int q) {
      if (q != ex.rank) release(q, index);
    });
  }
  FCCL_DEVICE bool receive(Block& blk, int q, uint32_t index, int row, Pack& got) const {
    const char* from = slots().incoming(q, 2 * index);
    auto ready = [&] {
      uint32_t a[4];
      uint32_t b[4];
      pack_to_words(load_peer(from), a);
      pack_to_words(load_peer(from + kLineBytes), b);
      const uint32_t words[4] = {a[0], a[2], b[0], b[2]};
      got = pack_of_words(words);
      return a[1] == tag() && a[3] == tag() && b[1] == tag() && b[3] == tag();
    };
    return exchange_.wait(blk, ready, [&] { return Waiting{q, hop_, row}; });
  }
  FCCL_DEVICE void release(int q, uint32_t index) const {
    char* line = slots().incoming(q, 2 * index);
    store_peer(line, zero_pack());
    store_peer(line + kLineBytes, zero_pack());
  }

 private:
  FCCL_DEVICE Slots slots() const { return {exchange_.args(), exchange_.gen(), hop_}; }
  FCCL_DEVICE uint32_t tag() const {
    const uint32_t low = static_cast<uint32_t>(exchange_.epoch());
    return low == 0 ? 0x80000000u : low;
  }

  const Exchange<kRanks>& exchange_;
  const int hop_;
};

}  // namespace fccl::FCCL_TARGET
