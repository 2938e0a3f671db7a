// One exchange: what every kernel does before and after its data moves, whatever the protocol.
//
// WORDS. The control line of a rank counts its exchanges (control.h): all blocks read it at entry,
// and add to it once each. Nobody else writes it but a failure, which sets its highest bit. The
// header of a call, {epoch and options, hash, tokens}, is stored by block 0 of each rank into
// headers[gen][rank] of every peer, or of its own window where readers pull; it is read in slow
// paths, and by all in checked mode.
//
// WHY THREE GENERATIONS ARE ENOUGH. (i) The launches of one rank are ordered. (ii) An exchange is
// closed: a rank leaves exchange n only after it has received, directly or through others,
// something of n from every rank. (iii) A slot is re-armed by the block that read it, in the same
// launch. If rank A has started m it has completed m-1, so every rank has started m-1 and, by (i),
// completed m-2. The last user of gen(m) is m-3, whose slots were re-armed before m-3 ended: one
// whole launch earlier than the push of m. Two generations would be exactly tight; the third is the
// slack for the write-back of re-arm stores (a store performed at its home before a kernel boundary
// is not overtaken) and needs no exit fence. gen(m) is m modulo 3 of all bits of m, which never
// wraps: of 32 bits alone it would use one generation twice at the wrap (2^32 = 1 modulo 3).
//
// THE ADVANCE. A launch of B blocks adds 2^16 to the line: each block adds 1 once all its lanes
// have read the line, block 0 what is left, 2^16 - (B-1). Before the last block has added, the sum
// is less than 2^16 whatever the order (without block 0 it is at most B-1; with it, 2^16 less those
// that are missing), so every block reads the same number, and once all have read it is one more.
// Nobody waits for the answer, and the addition is over at the kernel boundary, before the next
// launch of this rank reads (i). So the line says what has begun; that a launch has completed is
// known by its kernel boundary alone, and the argument above uses nothing else. If two launches of
// one rank overlapped, both read n: the last addition finds n+1, and its block reports it when it
// leaves. A failure poisons the line, and additions do not undo that: later launches leave at
// entry.
#pragma once
#include "device/dialect/dialect.h"

namespace fccl::FCCL_TARGET {

// f(from), f(from + 1), ... below `to`, written out.
template <int kFrom, int kTo, class F>
FCCL_DEVICE void each_constant(F&& f) {
  if constexpr (kFrom < kTo) {
    f(kFrom);
    each_constant<kFrom + 1, kTo>(f);
  }
}

template <int kRanks>
FCCL_DEVICE int rank_count(const ExchangeArgs& ex) {
  if constexpr (kRanks > 0) {
    return kRanks;
  } else {
    return ex.ranks;
  }
}

// f(i) for each i in [first, ranks); constants where the count is one, so that arrays indexed by
// them stay in registers.
template <int kRanks, class F>
FCCL_DEVICE void each_rank(int ranks, int first, F&& f) {
  if constexpr (kRanks > 0) {
    each_constant<0, kRanks>([&](int i) {
      if (i >= first) f(i);
    });
  } else {
    for (int i = first; i < ranks; ++i) f(i);
  }
}
template <int kRanks, class F>
FCCL_DEVICE void each_rank(const ExchangeArgs& ex, int first, F&& f) {
  each_rank<kRanks>(ex.ranks, first, f);
}

// Bytes before pack `index` of a region: 32 bits are enough for 64 GiB (args.h).
FCCL_DEVICE uint64_t pack_offset(uint32_t index) {
  return static_cast<uint64_t>(index) * kPackBytes;
}

FCCL_DEVICE Control& control_of(const ExchangeArgs& ex, int i) {
  return *reinterpret_cast<Control*>(ex.window[i]);
}

// Rank `q` as an index into window[].
FCCL_DEVICE int window_of(const ExchangeArgs& ex, int q) {
  return q >= ex.rank ? q - ex.rank : q - ex.rank + ex.ranks;
}

// On the CPU a rank writes headers, pads and staging into its own window and its peers read them
// there: one store however many peers there are. Elsewhere they are pushed into every peer's.
constexpr bool kReadersPull = FCCL_READERS_PULL != 0;

// The header that rank `q` left for this rank.
FCCL_DEVICE const CallHeader& header_of(const ExchangeArgs& ex, uint32_t gen, int q) {
  return control_of(ex, kReadersPull ? window_of(ex, q) : 0).headers[gen][q];
}

// Whom a lane waits for, and where, as the record will tell it.
struct Waiting {
  int peer;
  int hop;
  int row;
};

FCCL_DEVICE bool same_call(const ExchangeArgs& ex, const CallHeader& seen) {
  return seen.hash == ex.hash && seen.tokens == ex.tokens && options_in(seen) == ex.options;
}

// A lane closes the line and the status, so that the other lanes of this rank leave. The answer is
// what this lane has to report at the end of the kernel: the first failure of the rank is told.
FCCL_DEVICE int fail_as(const ExchangeArgs& ex, uint32_t word, Waiting at) {
  Control& own = control_of(ex, 0);
  poison(own.line);
  int report = Block::kNothing;
  if (compare_and_swap(&own.status, 0u, word)) {
    report = Block::kTellPeers;
    if (compare_and_swap(&ex.record->claimed, 0u, 1u)) {
      report = Block::kWriteRecord;
      ex.record->failure = static_cast<uint32_t>(failure_of(word));
      ex.record->peer = at.peer;
      ex.record->hop = static_cast<uint32_t>(at.hop);
      ex.record->row = static_cast<uint32_t>(at.row);
    }
  }
  return report;
}

// Completes the record and tells every peer.
FCCL_SLOW void report_failure(const ExchangeArgs& ex, uint64_t epoch, bool write_record) {
  Control& own = control_of(ex, 0);
  if (write_record) {
    FailureRecord& record = *ex.record;
    const CallHeader seen = load_header(header_of(ex, generation_of(epoch), record.peer));
    record.epoch = epoch;
    record.seen = epoch_in(seen);
    record.expected = epoch;
    record.seen_hash = seen.hash;
    record.expected_hash = ex.hash;
    record.seen_tokens = seen.tokens;
    record.expected_tokens = ex.tokens;
    record.seen_options = options_in(seen);
    record.expected_options = ex.options;
    publish_record(&record.complete);
  }
  const uint32_t word = load_acquire(&own.status);
  for (int i = 1; i < ex.ranks; ++i) store_status(control_of(ex, i).status, word);
  Block::ring_peers(ex, ex.ranks);
}

// Slow path of a wait: has the communicator failed, or is it time to fail? Block::kGoOn, or what to
// report.
FCCL_DEVICE int must_stop(const ExchangeArgs& ex, uint64_t epoch, uint32_t gen, Waiting at,
                          uint64_t waited_ns) {
  Control& own = control_of(ex, 0);
  if (load_acquire(&own.status) != 0) {
    poison(own.line);
    return Block::kNothing;
  }
  // The host's word first: a rank that left had stored its header before it said good-bye.
  uint32_t word = host_word(ex.host_abort);
  const CallHeader seen = load_header(header_of(ex, gen, at.peer));
  // Who left in order owes nothing of the exchanges that it entered.
  if (failure_of(word) == Failure::Left && (!has_left(word, at.peer) || epoch_in(seen) == epoch))
    word = 0;
  if (word == 0) {
    if (epoch_in(seen) == epoch && !same_call(ex, seen)) {
      word = status_word(Failure::Mismatch, ex.rank);
    } else if (waited_ns > load_relaxed(&own.limit_ns)) {
      word = status_word(Failure::Timeout, ex.rank);
    } else {
      return Block::kGoOn;
    }
  }
  return fail_as(ex, word, at);
}

template <int kRanks>
class Exchange {
 public:
  FCCL_DEVICE explicit Exchange(const ExchangeArgs& ex) : ex_(ex) {}

  // Once, first: nothing in memory is touched before. False: the communicator has failed.
  FCCL_DEVICE bool enter() {
    wait_for_earlier_kernels();
    return read_line();
  }
  // The same for who has waited already.
  FCCL_DEVICE bool read_line() {
    line_ = load_line(control_of(ex_, 0).line);
    gen_ = generation_of(epoch());
    return !is_poisoned(line_);
  }
  FCCL_DEVICE uint64_t epoch() const { return epoch_of(line_); }
  FCCL_DEVICE uint32_t gen() const { return gen_; }
  FCCL_DEVICE const ExchangeArgs& args() const { return ex_; }

  // Cooperative, by block 0 only.
  FCCL_DEVICE void push_header(Block& blk) const {
    if (blk.id() != 0) return;
    const CallHeader header{header_number(epoch(), ex_.options), ex_.hash, ex_.tokens};
    const auto leave = [&](int i) {
      blk.by_lane(i, [&] { store_header(control_of(ex_, i).headers[gen()][ex_.rank], header); });
    };
    if constexpr (kReadersPull) {
      leave(0);
    } else {
      each_rank<kRanks>(ex_, 1, leave);
    }
    if (ex_.checked) Block::ring_peers(ex_, rank_count<kRanks>(ex_));  // nobody else waits for it
  }

  // Checked mode: waits for every peer's header and compares. False: failed. Instances that are
  // built for speed have no such mode (Block::kHasCheckedMode); the host takes others then.
  FCCL_DEVICE bool check_headers(Block& blk) const {
    if constexpr (Block::kHasCheckedMode) {
      if (!ex_.checked) return true;
      for (int q = 0; q < rank_count<kRanks>(ex_); ++q) {
        if (q == ex_.rank) continue;
        blk.by_lane(0, [&] { compare_header(blk, q); });
      }
      return !blk.any_failed();
    } else {
      return true;
    }
  }

  // Waits on `ready`; `whom` is asked in the slow path only. False after a failure.
  template <class Ready, class Whom>
  FCCL_DEVICE bool wait(Block& blk, Ready&& ready, Whom&& whom) const {
    return blk.wait(control_of(ex_, 0).doorbell, ready, [&](uint64_t waited_ns) {
      return must_stop(ex_, epoch(), gen(), whom(), waited_ns);
    });
  }

  // Cooperative; every block once, before it waits for data. close() looks at the answer.
  FCCL_DEVICE void begin(Block& blk) {
    blk.meet();  // every lane has read the line
    blk.by_lane(0, [&] {
      const uint64_t rest = line_of(1) - static_cast<uint64_t>(blk.count() - 1);
      found_ = add_to_line(control_of(ex_, 0).line, blk.id() == 0 ? rest : 1);
    });
  }
  // The end of every kernel, whatever happened.
  FCCL_DEVICE void close(Block& blk) const {
    if (blk.is_lane(0) && epoch_of(answer(found_)) != epoch())
        [[unlikely]]  // another launch has begun this exchange too
      blk.set_failed(
          fail_as(ex_, status_word(Failure::Overlap, ex_.rank), Waiting{ex_.rank, 0, 0}));
    if (blk.report() != Block::kNothing) [[unlikely]]
      report_failure(ex_, epoch(), blk.report() == Block::kWriteRecord);
  }

 private:
  FCCL_DEVICE void compare_header(Block& blk, int q) const {
    const CallHeader& header = header_of(ex_, gen(), q);
    const Waiting at{q, 0, 0};
    wait(
        blk, [&] { return epoch_in(load_header(header)) == epoch(); }, [&] { return at; });
    if (!blk.failed() && !same_call(ex_, load_header(header)))
      blk.set_failed(fail_as(ex_, status_word(Failure::Mismatch, ex_.rank), at));
  }

  const ExchangeArgs& ex_;
  uint64_t line_;
  uint32_t gen_;
  uint64_t found_;  // by the lane that added to it
};

// How a step stores what it sends: to one peer (an index into window[]), or to all from `first` on.
template <class Protocol>
struct SendTo {
  const Protocol& protocol;
  int i;
  FCCL_DEVICE void put(uint32_t index, Pack p) const { protocol.push(i, index, p); }
};
template <class Protocol, int kRanks>
struct SendAll {
  const Protocol& protocol;
  const ExchangeArgs& ex;
  int first;
  FCCL_DEVICE void put(uint32_t index, Pack p) const {
    each_rank<kRanks>(ex, first, [&](int i) { protocol.push(i, index, p); });
  }
};

// What a hop carries: a part for each receiver, or the same for all.
enum class Hop { Scatter, Gather };

// Where one hop of a launch lives when senders push: the slot of this rank in a peer's window, and
// those of all senders in the own window. When readers pull (staging of CPU ranks): what this rank
// offers in its own window, and what the others offer in theirs.
class Slots {
 public:
  FCCL_DEVICE Slots(const ExchangeArgs& ex, uint32_t generation, int hop)
      : ex_(ex), start_(generation * ex.generation + static_cast<uint32_t>(hop) * ex.hop_stride) {}
  // Pack `index` of a slot.
  FCCL_DEVICE char* outgoing(int i, uint32_t index) const { return pack(i, ex_.rank, index); }
  FCCL_DEVICE char* incoming(int q, uint32_t index) const { return pack(0, q, index); }
  // `receiver`: whose part it is, 0 where all get the same.
  FCCL_DEVICE char* offered(int receiver) const { return pack(0, receiver, 0); }
  FCCL_DEVICE const char* offered_by(int q, int receiver) const {
    return pack(window_of(ex_, q), receiver, 0);
  }

 private:
  FCCL_DEVICE char* pack(int i, int from, uint32_t index) const {
    return ex_.window[i] + ex_.region +
           pack_offset(start_ + static_cast<uint32_t>(from) * ex_.from_stride + index);
  }

  const ExchangeArgs& ex_;
  const uint32_t start_;
};

}  // namespace fccl::FCCL_TARGET
