// Two-shot, each rank owns rows: the owner gets its rows from all, sums them, adds the residual and
// sends the rounded result to all; everybody normalises what it gets. Two hops, 2 (ranks-1)/ranks
// times the tensor on the wire.
//
// Owner o's rows are fcclRowRange(total_rows, ranks, o); this launch takes chunk_rows of each range
// from chunk_first on. With a row-sharded residual the owner alone reads and writes the residual
// rows, and sends norm_out instead of h, so that the others only copy. Three phases per block, each
// over tiles in increasing order: push all, own rows, rows of the others. The first never waits;
// the second waits for the first of others, the third for the second: with a resident grid nobody
// waits in a circle. Closed: whoever gets a row of owner o gets something of every rank through it,
// and every launch has at least one row.
//
// One row for CPU ranks that share CPUs (kLastReduces): its owner is the last rank to arrive.
#pragma once
#include "device/algo/steps.h"
#include "device/protocol/roll_call.h"

namespace fccl::FCCL_TARGET {

template <template <int> class Protocol, int kRanks, class Epilogue>
class TwoshotRows {
 public:
  static constexpr int kRankCount = kRanks;  // 0: any
  using T = typename Epilogue::Type;

  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Exchange<kRanks> exchange(a.ex);
    if (!exchange.enter()) return;
    exchange.push_header(blk);
    exchange.begin(blk);
    if (exchange.check_headers(blk)) TwoshotRows(blk, a, exchange).run_phases();
    exchange.close(blk);
  }

 private:
  struct Range {
    int64_t first;  // row of the tensor
    int rows;  // in this launch
    int64_t before;  // owner's rows in front of `first`
  };

  FCCL_DEVICE TwoshotRows(Block& blk, const KernelArgs& a, Exchange<kRanks>& exchange)
      : blk_(blk),
        a_(a),
        exchange_(exchange),
        scatter_(exchange, 0, last_reduces(a) ? Hop::Gather : Hop::Scatter),
        gather_(exchange, 1, Hop::Gather),
        epilogue_(a),
        input_(input_rows<Epilogue>(a)) {}

  FCCL_DEVICE Range range_of(int owner) const {
    const int64_t base = a_.total_rows / a_.ex.ranks;
    const int64_t extra = a_.total_rows % a_.ex.ranks;
    const int64_t first = owner * base + (owner < extra ? owner : extra);
    const int64_t left = base + (owner < extra ? 1 : 0) - a_.chunk_first;
    const int rows = left <= 0 ? 0 : left < a_.chunk_rows ? static_cast<int>(left) : a_.chunk_rows;
    return {first + a_.chunk_first, rows, a_.chunk_first};
  }
  FCCL_DEVICE int owner_at(int i) const {
    return a_.ex.rank + i < a_.ex.ranks ? a_.ex.rank + i : a_.ex.rank + i - a_.ex.ranks;
  }

  // f(tile, first, last) for this block's tiles of an owner's rows.
  template <class F>
  FCCL_DEVICE bool each_tile(const Range& range, F&& f) {
    const int size = a_.ex.tile_rows;
    const int tiles = (range.rows + size - 1) / size;
    for (int tile = blk_.id(); tile < tiles; tile += blk_.count()) {
      const int first = tile * size;
      const int last = first + size < range.rows ? first + size : range.rows;
      if (!f(tile, first, last)) return false;
    }
    return true;
  }

  // Of targets whose readers pull: any rank must find every part.
  static constexpr bool kRollCalls =
      kReadersPull && Epilogue::kNorm && Protocol<kRanks>::kind == ProtocolKind::Flags;
  FCCL_DEVICE static bool last_reduces(const KernelArgs& a) {
    return kRollCalls && (a.flags & kLastReduces) != 0;
  }

  FCCL_DEVICE void run_phases() {
    if constexpr (kRollCalls) {
      if (last_reduces(a_)) {
        if (blk_.id() == 0) run_one_row();
        return;
      }
    }
    if constexpr (Epilogue::kNorm) {
      if (epilogue_.sharded()) return run_phases_as<true>();
    }
    run_phases_as<false>();
  }

  // kSharded: the residual is row-sharded; known at compile time, for steps without a branch.
  template <bool kSharded>
  FCCL_DEVICE void run_phases_as() {
    each_rank<kRanks>(a_.ex, 1, [&](int i) { push_to_owner(i, range_of(owner_at(i))); });
    auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
    auto squares = blk_.squares(a_.packs);
    const Range own = range_of(a_.ex.rank);
    const bool ok = each_tile(own, [&](int tile, int first, int last) {
      if (!scatter_.acquire_own(blk_, tile, first)) return false;
      for (int row = first; row < last; ++row)
        if (!own_row<kSharded>(own, row, kept, squares)) return false;
      gather_.publish(blk_, tile);
      return true;
    });
    if (!ok) return;
    bool all = true;
    each_rank<kRanks>(a_.ex, 1, [&](int i) {
      all = all && copy_rows<kSharded>(owner_at(i), range_of(owner_at(i)), kept, squares);
    });
  }

  // Whoever reduces hands the scale of the norm over too: the others need one pass.
  FCCL_DEVICE void run_one_row() {
    const auto input = input_.row(0);
    const auto out = scatter_.sender_to_all(1);
    blk_.each_pack(0, a_.packs, [&](Slot, int p) { out.put(p, input.load(p)); });
    const RollCall<kRanks> roll_call(exchange_);
    const auto line = epilogue_.row(0, 0);
    if (roll_call.arrive(blk_)) {
      auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
      auto squares = blk_.squares(a_.packs);
      sum_own_row<false>(Range{0, 1, 0}, 0, kept, squares);
      const float scale = epilogue_.scale(blk_.row_sum(squares, a_.packs, kElements<T>));
      roll_call.tell_made(scale);
      blk_.each_pack(
          0, a_.packs, [&](Slot s, int p) { line.finish(p, kept[s], scale, line.load_weight(p)); });
    } else {
      const int owner = roll_call.wait_until_made(blk_);
      if (owner < 0) return;
      const float scale = roll_call.scale();
      const auto& in = gather_.reader();
      blk_.each_pack(0, a_.packs, [&](Slot, int p) {
        Pack h;
        in.receive(blk_, owner, p, 0, h);
        line.keep(p, h);
        line.finish(p, h, scale, line.load_weight(p));
      });
    }
  }

  FCCL_DEVICE void push_to_owner(int i, const Range& range) {
    each_tile(range, [&](int tile, int first, int last) {
      for (int row = first; row < last; ++row) {
        const uint32_t at = pack_index(row, a_.packs);
        const auto input = input_.row(range.first + row);
        const auto out = scatter_.sender(i);
        blk_.each_pack(0, a_.packs, [&](Slot, int p) { out.put(at + p, input.load(p)); });
      }
      scatter_.publish_to(blk_, i, tile);
      return true;
    });
  }

  template <bool kSharded>
  FCCL_DEVICE auto own_line(const Range& range, int row) const {
    const int64_t whole = range.first + row;
    return epilogue_.row(whole, kSharded ? range.before + row : whole);
  }

  // A lane that fails here keeps it to itself until the sum over the row.
  template <bool kSharded, class Kept, class SquaresT>
  FCCL_DEVICE void sum_own_row(const Range& range, int row, Kept& kept, SquaresT& squares) {
    const uint32_t at = pack_index(row, a_.packs);
    const int64_t whole = range.first + row;
    const auto line = own_line<kSharded>(range, row);
    const auto input = input_.row(whole);
    const auto& in = scatter_.reader();
    const auto out = gather_.sender_to_all(1);
    kept.start(whole);
    blk_.each_pack(0, a_.packs, [&](Slot s, int p) {
      auto sum = all_floats<kElements<T>>(0.0f);
      if (!fold_ranks<kRanks, T>(blk_, a_.ex, in, at + p, row, input.load(p), line, sum)) return;
      const Pack h = line.combine(p, sum, line.load_residual(p));
      if constexpr (Epilogue::kNorm) {
        kept[s] = h;
        squares.set(s, to_floats<T>(h));
      }
      in.release_all(at + p);
      if constexpr (!kSharded) out.put(at + p, h);
      line.keep(p, h);
    });
  }

  template <bool kSharded, class Kept, class SquaresT>
  FCCL_DEVICE bool own_row(const Range& range, int row, Kept& kept, SquaresT& squares) {
    sum_own_row<kSharded>(range, row, kept, squares);
    if constexpr (Epilogue::kNorm) {
      const uint32_t at = pack_index(row, a_.packs);
      const auto line = own_line<kSharded>(range, row);
      const auto out = gather_.sender_to_all(1);
      const float total = blk_.row_sum(squares, a_.packs, kElements<T>);
      if (blk_.row_failed()) return false;
      const float scale = epilogue_.scale(total);
      blk_.each_pack(0, a_.packs, [&](Slot s, int p) {
        const Pack norm = line.finish(p, kept[s], scale, line.load_weight(p));
        if constexpr (kSharded) out.put(at + p, norm);
      });
      blk_.end_row(true);
      return true;
    } else {
      return !blk_.any_failed();
    }
  }

  template <bool kSharded, class Kept, class SquaresT>
  FCCL_DEVICE bool copy_rows(int owner, const Range& range, Kept& kept, SquaresT& squares) {
    return each_tile(range, [&](int tile, int first, int last) {
      if (!gather_.acquire_from(blk_, owner, tile, first)) return false;
      for (int row = first; row < last; ++row)
        if (!copy_row<kSharded>(owner, range.first + row, row, kept, squares)) return false;
      return true;
    });
  }

  template <bool kSharded, class Kept, class SquaresT>
  FCCL_DEVICE bool copy_row(int owner, int64_t whole, int row, Kept& kept, SquaresT& squares) {
    const uint32_t at = pack_index(row, a_.packs);
    const auto line = epilogue_.row(whole, whole);
    const auto& in = gather_.reader();
    kept.start(whole);
    blk_.each_pack(0, a_.packs, [&](Slot s, int p) {
      Pack h;
      if (!in.receive(blk_, owner, at + p, row, h)) return;
      in.release(owner, at + p);
      if constexpr (kSharded) {
        line.store_norm(p, h);
      } else {
        if constexpr (Epilogue::kNorm) {
          squares.set(s, to_floats<T>(h));
          kept[s] = h;
        }
        line.keep(p, h);
      }
    });
    if constexpr (Epilogue::kNorm && !kSharded) {
      const float total = blk_.row_sum(squares, a_.packs, kElements<T>);
      if (blk_.row_failed()) return false;
      const float scale = epilogue_.scale(total);
      blk_.each_pack(
          0, a_.packs, [&](Slot s, int p) { line.finish(p, kept[s], scale, line.load_weight(p)); });
      blk_.end_row(true);
      return true;
    }
    return !blk_.any_failed();
  }

  Block& blk_;
  const KernelArgs& a_;
  const Exchange<kRanks>& exchange_;
  const Protocol<kRanks> scatter_;
  const Protocol<kRanks> gather_;
  const Epilogue epilogue_;
  const Rows<T, Epilogue::kWhole> input_;
};

}  // namespace fccl::FCCL_TARGET
