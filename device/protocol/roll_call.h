// The roll call: of all ranks that arrive, exactly one learns that it is the last, and the others
// get to know which, and when what it made is complete. For CPU ranks that share CPUs: the last
// rank to store its part reduces at once, in the turn that it has, where a fixed owner would first
// wait for a turn of its own.
//
// WHO WRITES WHAT. The words stand in the window of rank 0. `arrived` {epoch, count} is counted up
// by every rank, once an exchange, by compare-and-swap; the first of an exchange starts it anew,
// the last replaces the count by its own number. `made` {epoch, number} is stored by that rank
// alone, after its result and `scale_bits` (release), and polled by the others (acquire). ORDER.
// Each arrival reads what the one before wrote, so the last has acquired every rank's stores.
// NOBODY IS OVERTAKEN. A rank arrives at exchange m after it has left m-1, so m's first arrival
// finds all of m-1 in, and m's result, which needs m's last arrival, is stored when nobody polls
// for m-1 any more. Only equality of epochs is asked: 56 bits of it are in a word, and a word of
// another exchange is an older one. Closed: whoever is told the last rank gets something of every
// rank through it.
#pragma once
#include "device/protocol/exchange.h"

namespace fccl::FCCL_TARGET {

template <int kRanks>
class RollCall {
 public:
  FCCL_DEVICE explicit RollCall(const Exchange<kRanks>& exchange)
      : exchange_(exchange), words_(control_of(args(), window_of(args(), 0)).roll_call) {}

  // Everything that this rank stored before is there for the last. True: that is this rank.
  FCCL_DEVICE bool arrive(Block& blk) const {
    blk.arrive_begin();
    const uint32_t all = static_cast<uint32_t>(rank_count<kRanks>(args()));
    for (;;) {
      const uint64_t seen = load_acquire(&words_.arrived);
      const uint32_t count = is_of_now(seen) ? low(seen) + 1 : 1;
      const bool last = count == all;
      if (compare_and_swap(&words_.arrived, seen, word(last ? own_number() : count))) return last;
    }
  }
  // By the last rank: its result is complete; `scale` belongs to it.
  FCCL_DEVICE void tell_made(float scale) const {
    store_release(&words_.scale_bits, float_bits(scale));
    store_release(&words_.made, word(own_number()));
    Block::ring_peers(args(), rank_count<kRanks>(args()));
  }
  // By the others: which rank made the result, once it is complete; -1 after a failure.
  FCCL_DEVICE int wait_until_made(Block& blk) const {
    uint64_t made = 0;
    const bool done = exchange_.wait(
        blk,
        [&] { return is_of_now(made = load_acquire(&words_.made)) && low(made) >= kNumber; },
        [&] {
          return Waiting{awaited(), 0, 0};
        });
    return done ? rank_of_number(low(made)) : -1;
  }

  // Told with the result.
  FCCL_DEVICE float scale() const { return float_of_bits(load_relaxed(&words_.scale_bits)); }

 private:
  static constexpr uint32_t kNumber = 0x80;  // numbers of ranks begin here, above every count

  FCCL_DEVICE const ExchangeArgs& args() const { return exchange_.args(); }
  FCCL_DEVICE uint64_t word(uint32_t low) const { return exchange_.epoch() << 8 | low; }
  FCCL_DEVICE static uint32_t low(uint64_t word) { return static_cast<uint32_t>(word & 0xFF); }
  FCCL_DEVICE bool is_of_now(uint64_t seen) const { return (seen ^ word(0)) < 0x100; }
  FCCL_DEVICE uint32_t own_number() const { return kNumber + static_cast<uint32_t>(args().rank); }
  // A peer is not trusted for an index.
  FCCL_DEVICE int rank_of_number(uint32_t number) const {
    const int rank = static_cast<int>(number - kNumber);
    return rank < args().ranks ? rank : 0;
  }

  // Whom a rank waits for: the last one if there is one, else the first that did not make this
  // call.
  FCCL_SLOW int awaited() const {
    const uint64_t seen = load_acquire(&words_.arrived);
    if (is_of_now(seen) && low(seen) >= kNumber) return rank_of_number(low(seen));
    int other = args().rank == 0 ? 1 : 0;
    for (int q = 0; q < args().ranks; ++q) {
      if (q == args().rank) continue;
      const CallHeader header = load_header(header_of(args(), exchange_.gen(), q));
      if (epoch_in(header) != exchange_.epoch() || !same_call(args(), header)) return q;
      other = q;
    }
    return other;
  }

  const Exchange<kRanks>& exchange_;
  RollCallWords& words_;
};

}  // namespace fccl::FCCL_TARGET
