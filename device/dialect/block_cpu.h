// The execution context on the CPU: one host thread is one block, a step is a loop over the packs
// of a row, and a value that crosses two steps lives in the launch's scratch, one element per pack.
#pragma once
#include "device/dialect/memory_cpu.h"
#include "device/entry/cpu_entry.h"
#include "device/types/units.h"

namespace fccl::FCCL_TARGET {

struct Slot {
  int pack;
};

template <class T>
class Lanes {
 public:
  explicit Lanes(T* values) : values_(values) {}
  T& operator[](Slot s) const { return values_[s.pack]; }
  void start(int64_t) const {}

 private:
  T* values_;
};

#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
constexpr bool kFusedMultiplyAdd = true;
#else
constexpr bool kFusedMultiplyAdd = false;  // Highway's MulAdd would round twice
#endif

// Squares of one row: the first level of the tree, fma(x1, x1, x0 * x0), stored for each pair.
class Squares {
 public:
  explicit Squares(float* pairs) : pairs_(pairs) {}

  template <int N>
  FCCL_DEVICE void set(Slot s, Floats<N> x) const {
    float* to = pairs_ + s.pack * (N / 2);
    if constexpr (kFusedMultiplyAdd) {
      using Tag = typename Floats<N>::Tag;
      for (int i = 0; i < Floats<N>::kVectors; ++i) {
        const auto odd = hn::DupOdd(x.v[i]);
        const auto pairs = hn::MulAdd(odd, odd, hn::Mul(x.v[i], x.v[i]));
        hn::StoreU(hn::LowerHalf(hn::ConcatEven(Tag(), pairs, pairs)),
                   hn::Half<Tag>(),
                   to + i * Floats<N>::kLanes / 2);
      }
    } else {
      float e[N];
      for (int i = 0; i < Floats<N>::kVectors; ++i)
        hn::StoreU(x.v[i], typename Floats<N>::Tag(), e + i * Floats<N>::kLanes);
      for (int i = 0; i < N / 2; ++i)
        to[i] = __builtin_fmaf(e[2 * i + 1], e[2 * i + 1], e[2 * i] * e[2 * i]);
    }
  }
  float* pairs() const { return pairs_; }

 private:
  float* pairs_;
};

// One level of the tree in place: x[i] = x[2i] + x[2i+1], an absent element is +0.
FCCL_DEVICE int add_neighbours(float* x, int count) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const int half = (count + 1) / 2;
  int i = 0;
  if constexpr (HWY_TARGET != HWY_EMU128) {
    for (; 2 * (i + lanes) <= count; i += lanes) {
      const auto low = hn::LoadU(d, x + 2 * i);
      const auto high = hn::LoadU(d, x + 2 * i + lanes);
      hn::StoreU(hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)), d, x + i);
    }
  }
  if (count & 1) x[count] = 0.0f;
  for (; i < half; ++i) x[i] = x[2 * i] + x[2 * i + 1];
  return half;
}

// `levels` of the tree over `count` values; the results stand at the front.
FCCL_DEVICE void add_levels(float* x, int count, int levels) {
  for (int level = 0; level < levels; ++level) count = add_neighbours(x, count);
}

class Block {
 public:
  static constexpr bool kOneRowTiles =
      false;  // a tile may hold several rows, pushed before any wait
  static constexpr bool kHasCheckedMode = true;

  // What a block has to report of a failure: whoever saw it first tells. kGoOn: none.
  enum Report { kGoOn = -1, kNothing, kTellPeers, kWriteRecord };

  explicit Block(const CpuLaunch& launch)
      : id_(launch.block),
        count_(launch.blocks),
        free_(launch.scratch),
        spins_(launch.spins),
        yields_(launch.yields),
        chaos_(launch.chaos) {}

  int id() const { return id_; }
  int count() const { return count_; }

  // ---- steps
  template <class F>
  FCCL_DEVICE void each_pack(int first, int count, F&& step) {
    for (int p = first; p < first + count; ++p) step(Slot{p}, p);
  }
  FCCL_DEVICE bool is_lane(int) const { return true; }
  FCCL_DEVICE void keep_places(uint64_t) const {}
  // One lane does it; a GPU spreads different lanes' work over threads.
  template <class F>
  FCCL_DEVICE void by_lane(int, F&& work) {
    work();
  }
  template <class F>
  FCCL_DEVICE auto prefetch(int, int, F load) {
    return [load](Slot, int pack) { return load(pack); };
  }
  template <class T>
  FCCL_DEVICE Lanes<T> lanes(int packs) {
    return Lanes<T>(reinterpret_cast<T*>(take(static_cast<size_t>(packs) * sizeof(T))));
  }
  // The row that a later step reads again. (A GPU may let it stand in `rows`.)
  template <class RowsT>
  FCCL_DEVICE Lanes<Pack> kept_row(const RowsT&, int packs) {
    return lanes<Pack>(packs);
  }
  FCCL_DEVICE Squares squares(int packs) {
    return Squares(reinterpret_cast<float*>(take(static_cast<size_t>(packs) * kPackBytes + 64)));
  }
  FCCL_DEVICE float* unit_sums() { return reinterpret_cast<float*>(take(kMaxUnits * 4 + 64)); }

  // ---- sums over a row
  // Total of the tree over `packs` packs of `elements`.
  FCCL_DEVICE float row_sum(Squares squares, int packs, int elements) {
    const int pairs = packs * elements / 2;
    add_levels(squares.pairs(), pairs, log2_ceil(pairs));
    return squares.pairs()[0];
  }
  // Sums of the units that start at pack `first`, `count` packs of them, to sums[0 ..].
  FCCL_DEVICE void sum_units(Squares squares, int first, int count, int elements,
                             int packs_per_unit, float* sums) {
    if (count <= 0) return;
    float* x = squares.pairs() + first * (elements / 2);
    const int pairs = count * elements / 2;
    add_levels(x, pairs, log2_ceil(packs_per_unit * elements / 2));
    const int units = (count + packs_per_unit - 1) / packs_per_unit;
    for (int i = 0; i < units; ++i) sums[i] = x[i];
  }
  FCCL_DEVICE float finish_units(float* sums, int units) {
    add_levels(sums, units, log2_ceil(units));
    return sums[0];
  }

  // Between two rows: a GPU block meets before shared sums are written again.
  FCCL_DEVICE void end_row(bool) {}
  FCCL_DEVICE void meet() {}
  bool row_failed() const { return failed_; }  // as the last sum over the row found
  FCCL_DEVICE void let_later_kernels_start() {}

  // ---- failure
  bool failed() const { return failed_; }
  bool any_failed() { return failed_; }
  void set_failed(int report) {
    failed_ = true;
    report_ = report;
  }
  int report() const { return report_; }

  // ---- waits
  // Polls `ready`; then sleeps on the own doorbell. `stop` is asked in the slow path, with the time
  // waited so far; all but kGoOn fails and ends the wait.
  template <class Ready, class Stop>
  FCCL_DEVICE bool wait(Doorbell& bell, Ready&& ready, Stop&& stop) {
    if (failed_) return false;
    if (ready()) return true;
    return wait_slow(bell, ready, stop);
  }

  // Wakes peers that sleep on what this rank has stored.
  FCCL_DEVICE static void ring_peers(const ExchangeArgs& ex, int ranks) {
    stores_before_looks();
    for (int i = 1; i < ranks; ++i) ring(reinterpret_cast<Control*>(ex.window[i])->doorbell);
  }
  FCCL_DEVICE static void ring_peer(const ExchangeArgs& ex, int i) {
    if (i == 0) return;
    stores_before_looks();
    ring(reinterpret_cast<Control*>(ex.window[i])->doorbell);
  }
  // Before the first arrival of a tile: all stores of earlier steps are performed for the peers.
  FCCL_DEVICE void arrive_begin() { chaos(); }

  // A place where the chaos seed may delay this block.
  FCCL_DEVICE void chaos() {
    if (chaos_ == 0) return;
    chaos_ ^= chaos_ << 13;
    chaos_ ^= chaos_ >> 17;
    chaos_ ^= chaos_ << 5;
    if (chaos_ % 8 != 0) return;
    timespec pause{0, static_cast<long>(chaos_ >> 8) % 200000};
    nanosleep(&pause, nullptr);
  }

 private:
  char* take(size_t bytes) {
    char* at = free_;
    free_ += round_up_64(bytes);
    return at;
  }
  static constexpr size_t round_up_64(size_t bytes) { return (bytes + 63) / 64 * 64; }

  template <class Ready, class Stop>
  [[gnu::noinline]] bool wait_slow(Doorbell& bell, Ready& ready, Stop& stop) {
    chaos();
    for (uint32_t spin = 1; spin <= spins_; ++spin) {
      relax();
      if (ready()) return true;
    }
    // Who else wants the CPU is not known. A program that keeps it to the end of its time slice
    // gets it once, not at each of the yields: that took seconds, in which no abort was seen.
    constexpr uint64_t kYieldNs = 1000000;
    const uint64_t start = now_ns();
    for (uint32_t i = 0; i < yields_ && now_ns() - start < kYieldNs; ++i) {
      give_way();
      if (ready()) return true;
    }
    constexpr uint64_t kSliceNs =
        20000000;  // an abort or a dead peer is seen after this at the latest
    fetch_add(&bell.sleepers, 1u);
    bool done = false;
    for (;;) {
      const uint32_t count = __atomic_load_n(&bell.count, __ATOMIC_SEQ_CST);
      done = ready();
      if (done) break;
      const int found = stop(now_ns() - start);
      if (found != kGoOn) {
        set_failed(found);
        break;
      }
      sleep_on(bell, count, kSliceNs);
    }
    fetch_add(&bell.sleepers, static_cast<uint32_t>(-1));
    return done;
  }

  int id_;
  int count_;
  char* free_;
  uint32_t spins_;
  uint32_t yields_;
  uint32_t chaos_;
  bool failed_ = false;
  int report_ = kNothing;
};

}  // namespace fccl::FCCL_TARGET
