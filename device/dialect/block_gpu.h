// The execution context on a GPU: a block of threads, a step is a strided loop over the packs of a
// row (pack = thread + k * threads), unrolled with everything in registers where the row fits into
// FCCL_ROW_PACKS packs per thread. With 0, rows of any length: a value of a step is loaded where it
// is used, the kept row is read again from norm_out, and the squares stand in shared memory.
//
// The tree of squares: inside a pack, inside a group of 32 lanes for each k (32 neighbouring
// packs), then over the groups; low bits of the element index first throughout. A group is a warp
// of CUDA and half a wave of 64 on AMD, so the tree, and its bits, are one. Sums of one row are
// written to one of two shared arrays in turn, so that a row needs one barrier only. A lane that
// failed goes on to the barriers; they carry the failure to the whole block.
//
// Included by block_cuda.h and block_hip.h behind what differs: indices (thread_index, ...),
// sum_of_partner, Barrier, pause_between_polls, loads_of_row_end, ReportWord (holds a Report).
#pragma once
#include "device/types/units.h"

namespace fccl::FCCL_TARGET {

constexpr int kRowPacks = FCCL_ROW_PACKS;
constexpr bool kStreamed = kRowPacks == 0;
constexpr int kHeldPacks = kStreamed ? 1 : kRowPacks;

// f(k) for each pack that a lane holds, k a constant.
template <int k = 0, class F>
FCCL_DEVICE void each_held(F&& f) {
  if constexpr (k < kHeldPacks) {
    f(k);
    each_held<k + 1>(f);
  }
}

// Sum over a group of 32 lanes, neighbours first.
FCCL_DEVICE float group_tree(float x, int width = 32) {
  FCCL_UNROLL for (int o = 1; o < 32; o <<= 1) {
    if (o < width) x = add_once(x, sum_of_partner(x, o));
  }
  return x;
}

struct Slot {
  int k;  // of this lane
  int pack;  // of the step
};

template <class T>
class Lanes {
 public:
  FCCL_DEVICE T& operator[](Slot s) { return values_[s.k]; }
  FCCL_DEVICE void start(int64_t) {}

 private:
  T values_[kHeldPacks];
};

// A row that is read again from where it was stored.
template <class RowsT>
class StoredRow {
 public:
  FCCL_DEVICE explicit StoredRow(const RowsT& rows) : rows_(rows) {}
  FCCL_DEVICE void start(int64_t row) { row_ = row; }
  struct Place {
    const RowsT& rows;
    int64_t row;
    int pack;
    FCCL_DEVICE void operator=(const Pack& p) const { rows.store(row, pack, p); }
    FCCL_DEVICE operator Pack() const { return rows.load(row, pack); }
  };
  FCCL_DEVICE Place operator[](Slot s) const { return {rows_, row_, s.pack}; }

 private:
  const RowsT& rows_;
  int64_t row_ = 0;
};

// A value per pack of a step, loaded early or where it is used.
template <class V>
class LoadedEarly {
 public:
  FCCL_DEVICE const V& operator()(Slot s, int) const { return values[s.k]; }
  V values[kHeldPacks];
};
template <class Load>
class LoadedLate {
 public:
  FCCL_DEVICE explicit LoadedLate(const Load& load) : load_(load) {}
  FCCL_DEVICE auto operator()(Slot, int pack) const { return load_(pack); }

 private:
  Load load_;
};

class Squares {
 public:
  FCCL_DEVICE Squares() { FCCL_UNROLL for (int k = 0; k < kHeldPacks; ++k) sums_[k] = 0.0f; }
  template <int N>
  FCCL_DEVICE void set(Slot s, const Floats<N>& x) {
    if constexpr (kStreamed) {
      stored()[s.pack] = pack_squares(x);
    } else {
      sums_[s.k] = pack_squares(x);
    }
  }
  FCCL_DEVICE float operator[](int k) const { return sums_[k]; }
  // One float for each pack of a row, then those of the levels above (streamed_shared_bytes).
  FCCL_DEVICE static float* stored() {
    extern FCCL_SHARED float stored_squares[];
    return stored_squares;
  }

 private:
  float sums_[kHeldPacks];
};

class Block {
 public:
  static constexpr bool kOneRowTiles = true;
  static constexpr bool kHasCheckedMode = kStreamed;
  // What a lane has to report of a failure: whoever saw it first tells. kGoOn: none.
  enum Report { kGoOn = -1, kNothing, kTellPeers, kWriteRecord };

  FCCL_DEVICE Block() {}
  FCCL_DEVICE int id() const { return block_index(); }
  FCCL_DEVICE int count() const { return block_count(); }
  FCCL_DEVICE bool is_lane(int lane) const { return thread() == lane; }
  // What a row needs to be found is computed now: the union of these words, of which none is ~0.
  FCCL_DEVICE void keep_places(uint64_t places) const {
    compute_before_here(places | static_cast<uint32_t>(thread()));
  }

  // ---- steps
  template <class F>
  FCCL_DEVICE void each_pack(int first, int count, F&& step) {
    if constexpr (kStreamed) {
      for (int i = thread(); i < count; i += threads()) step(Slot{0, first + i}, first + i);
    } else {
      each_held([&](int k) {
        const int i = thread() + k * threads();
        if (i < count) step(Slot{k, first + i}, first + i);
      });
    }
  }
  template <class F>
  FCCL_DEVICE void by_lane(int lane, F&& work) {
    if (is_lane(lane)) work();
  }
  template <class Load>
  FCCL_DEVICE auto prefetch(int first, int count, const Load& load) {
    if constexpr (kStreamed) {
      return LoadedLate<Load>(load);
    } else {
      LoadedEarly<decltype(load(0))> loaded;
      each_held([&](int k) {
        const int i = thread() + k * threads();
        if (i < count) loaded.values[k] = load(first + i);
      });
      return loaded;
    }
  }
  // The row that a later step reads again; `rows` is where it may stand until then.
  template <class RowsT>
  FCCL_DEVICE auto kept_row(const RowsT& rows, int) {
    if constexpr (kStreamed) {
      return StoredRow<RowsT>(rows);
    } else {
      return Lanes<Pack>();
    }
  }
  FCCL_DEVICE Squares squares(int) { return Squares(); }
  FCCL_DEVICE float* unit_sums() {
    FCCL_SHARED float sums[kMaxUnits];
    return sums;
  }

  // ---- sums over a row
  // Total of the tree over `packs` packs.
  FCCL_DEVICE float row_sum(const Squares& squares, int packs, int) {
    if constexpr (kStreamed) {
      meet_in_row();
      return stored_sum(packs);
    } else {
      FCCL_SHARED float group_sums[2][kHeldPacks * 32];
      float* groups = group_sums[turn_];
      turn_ ^= 1;
      each_held([&](int k) {
        const float sum = group_tree(squares[k]);
        if (lane() == 0) groups[k * (threads() / 32) + thread() / 32] = sum;
      });
      meet_in_row();
      return group_sum(groups);
    }
  }
  // Sums of the units that start at pack `first`, `count` packs of them, to sums[0 ..].
  FCCL_DEVICE void sum_units(const Squares& squares, int first, int count, int, int packs_per_unit,
                             float* sums) {
    if constexpr (kStreamed) {
      meet_in_row();
      stored_units(Squares::stored() + first, count, packs_per_unit, sums);
      barrier_.meet();
    } else {  // a row that fits has units of at most a group
      each_held([&](int k) {
        const int i = thread() + k * threads();
        const float sum = group_tree(squares[k], packs_per_unit);
        if (i < count && i % packs_per_unit == 0) sums[i / packs_per_unit] = sum;
      });
      meet_in_row();
    }
  }
  FCCL_DEVICE float finish_units(const float* sums, int units) {
    meet_in_row();
    const int i = 2 * lane();
    return group_tree(add_once(i < units ? sums[i] : 0.0f, i + 1 < units ? sums[i + 1] : 0.0f));
  }
  // Did any lane fail, as the last sum over the row found?
  FCCL_DEVICE bool row_failed() const { return row_failed_; }

  // Between two rows of one block, where row_sum and no other sum was used.
  FCCL_DEVICE void end_row(bool more) {
    loads_of_row_end();
    if (kStreamed && more) barrier_.meet();
  }
  // Cooperative: nobody goes on before all are here.
  FCCL_DEVICE void meet() { barrier_.meet(); }

  // ---- failure
  FCCL_DEVICE bool failed() const { return failed_; }
  FCCL_DEVICE bool any_failed() { return barrier_.any(failed_); }
  FCCL_DEVICE void set_failed(int report) {
    failed_ = true;
    report_ = static_cast<ReportWord>(report);
  }
  FCCL_DEVICE int report() const { return report_; }

  // ---- waits
  // Polls `ready`; no clock and nothing else is looked at in 1024 rounds. Then `stop` is asked,
  // with the time waited since its first call; all but kGoOn fails and ends the wait.
  template <class Ready, class Stop>
  FCCL_DEVICE bool wait(Doorbell&, Ready&& ready, Stop&& stop) {
    constexpr uint32_t kRounds = 1024;
    // A lane that failed waits for nothing more; with one pack of a row it leaves before the next.
    if constexpr (kHeldPacks > 1 || kStreamed) {
      if (failed_) return false;
    }
    uint32_t rounds = 0;
    uint64_t start = 0;
    while (!ready()) {
      pause_between_polls();
      if (++rounds % kRounds != 0) [[likely]]
        continue;
      const uint64_t now = now_ns();
      if (start == 0) start = now;
      const int found = stop(now - start);
      if (found == kGoOn) continue;
      set_failed(found);
      return false;
    }
    return true;
  }

  // GPU ranks poll: nobody sleeps on a doorbell.
  FCCL_DEVICE static void ring_peers(const ExchangeArgs&, int) {}
  FCCL_DEVICE static void ring_peer(const ExchangeArgs&, int) {}
  // Before the first arrival of a tile: the stores of the whole block come first.
  FCCL_DEVICE void arrive_begin() { barrier_.meet_after_stores(); }
  FCCL_DEVICE void chaos() {}
  // Kernels that follow in the stream may be set up beside this one.
  FCCL_DEVICE void let_later_kernels_start() { start_later_kernels(); }

 private:
  FCCL_DEVICE static int thread() { return thread_index(); }
  FCCL_DEVICE static int threads() { return thread_count(); }
  FCCL_DEVICE static int lane() { return thread_index() & 31; }
  FCCL_DEVICE void meet_in_row() { row_failed_ = barrier_.any(failed_); }

  FCCL_DEVICE static float group_sum(const float* groups) {
    const int count = kHeldPacks * (threads() / 32);
    if constexpr (kHeldPacks == 1) {
      return group_tree(lane() < count ? groups[lane()] : 0.0f);
    } else {
      static_assert(kHeldPacks == 1 || kHeldPacks == 2 || kHeldPacks == 4);  // at most 64 groups
      const int i = 2 * lane();
      return group_tree(
          add_once(i < count ? groups[i] : 0.0f, i + 1 < count ? groups[i + 1] : 0.0f));
    }
  }

  // Five levels of the tree at a time, each into the place behind the level below.
  FCCL_DEVICE float stored_sum(int count) {
    const float* from = Squares::stored();
    float* to = Squares::stored() + count;
    for (;;) {
      const int groups = (count + 31) / 32;
      for (int g = thread() / 32; g < groups; g += threads() / 32) {
        const int i = g * 32 + lane();
        const float sum = group_tree(i < count ? from[i] : 0.0f);
        if (lane() == 0) to[g] = sum;
      }
      barrier_.meet();
      if (groups == 1) return to[0];
      from = to;
      to += groups;
      count = groups;
    }
  }
  // A group of lanes per unit: at most 32 groups of 32 packs.
  FCCL_DEVICE static void stored_units(const float* from, int count, int packs_per_unit,
                                       float* sums) {
    const int groups = (packs_per_unit + 31) / 32;
    for (int u = thread() / 32; u * packs_per_unit < count; u += threads() / 32) {
      float mine = 0.0f;
      for (int g = 0; g < groups; ++g) {
        const int i = g * 32 + lane();
        const int at = u * packs_per_unit + i;
        const float sum = group_tree(i < packs_per_unit && at < count ? from[at] : 0.0f);
        if (lane() == g) mine = sum;
      }
      const float sum = group_tree(mine);
      if (lane() == 0) sums[u] = sum;
    }
  }

  Barrier barrier_;
  int turn_ = 0;
  bool failed_ = false;
  bool row_failed_ = false;
  ReportWord report_ = kNothing;
};

}  // namespace fccl::FCCL_TARGET
