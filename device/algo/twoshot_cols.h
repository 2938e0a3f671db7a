// Two-shot, each rank owns columns: for few tokens, when a rank would own no row. The owner of some
// columns sums them for every row, adds the residual, rounds, and sends them to all together with
// the sums of squares of its units; everybody finishes the tree and normalises. Two hops, 2
// (ranks-1)/ranks times the tensor on the wire.
//
// Columns are owned in units (types/units.h), so the split changes no bit of the norm. A slot of
// the second hop holds, for each row, the owner's packs and then its unit sums, four to a pack. The
// owner sends to itself too: the lane that normalises a pack is not the lane that summed it.
// Closed: every unit that arrives was made from something of every rank.
#pragma once
#include "device/algo/steps.h"

namespace fccl::FCCL_TARGET {

template <template <int> class Protocol, int kRanks, class Epilogue>
class TwoshotCols {
 public:
  static constexpr int kRankCount = kRanks;  // 0: any
  using T = typename Epilogue::Type;

  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Exchange<kRanks> exchange(a.ex);
    if (!exchange.enter()) return;
    exchange.push_header(blk);
    exchange.begin(blk);
    if (exchange.check_headers(blk)) TwoshotCols(blk, a, exchange).run_phases();
    exchange.close(blk);
  }

 private:
  struct Columns {
    int first;  // pack
    int packs;
    int unit;  // first unit
    int units;
  };

  FCCL_DEVICE TwoshotCols(Block& blk, const KernelArgs& a, Exchange<kRanks>& exchange)
      : blk_(blk),
        a_(a),
        scatter_(exchange, 0, Hop::Scatter),
        gather_(exchange, 1, Hop::Gather),
        epilogue_(a),
        input_(input_rows<Epilogue>(a)),
        units_(units_of_row(a.hidden, a.packs, kElements<T>)),
        slots_(column_slots(units_, a.ex.ranks)) {}

  FCCL_DEVICE Columns columns_of(int owner) const {
    const Share share = share_of(units_.count, a_.ex.ranks, owner);
    const int first = share.first * units_.packs_per_unit;
    const int end = (share.first + share.count) * units_.packs_per_unit;
    return {first, (end < a_.packs ? end : a_.packs) - first, share.first, share.count};
  }
  FCCL_DEVICE int owner_at(int i) const {
    return a_.ex.rank + i < a_.ex.ranks ? a_.ex.rank + i : a_.ex.rank + i - a_.ex.ranks;
  }
  FCCL_DEVICE uint32_t scatter_at(int row, int p) const { return pack_index(row, slots_.packs, p); }
  FCCL_DEVICE uint32_t gather_at(int row, int p) const {
    return pack_index(row, slots_.packs + slots_.sum_packs, p);
  }

  template <class F>
  FCCL_DEVICE bool each_tile(F&& f) {
    const int size = a_.ex.tile_rows;
    const int tiles = (a_.rows + size - 1) / size;
    for (int tile = blk_.id(); tile < tiles; tile += blk_.count()) {
      const int first = tile * size;
      if (!f(tile, first, first + size < a_.rows ? first + size : a_.rows)) return false;
    }
    return true;
  }

  FCCL_DEVICE void run_phases() {
    each_tile([&](int tile, int first, int last) {
      for (int row = first; row < last; ++row) push_columns(row);
      scatter_.publish(blk_, tile);
      return true;
    });
    auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
    auto squares = blk_.squares(a_.packs);
    float* sums = blk_.unit_sums();
    const Columns own = columns_of(a_.ex.rank);
    const bool reduced = each_tile([&](int tile, int first, int last) {
      if (!scatter_.acquire(blk_, tile, first)) return false;
      for (int row = first; row < last; ++row)
        if (!reduce_columns(own, row, squares, sums)) return false;
      gather_.publish(blk_, tile);
      return true;
    });
    if (!reduced) return;
    each_tile([&](int tile, int first, int last) {
      if (!gather_.acquire(blk_, tile, first)) return false;
      for (int row = first; row < last; ++row)
        if (!norm_row(row, kept, sums)) return false;
      return true;
    });
  }

  FCCL_DEVICE void push_columns(int row) {
    each_rank<kRanks>(a_.ex, 1, [&](int i) {
      const Columns columns = columns_of(owner_at(i));
      const auto input = input_.row(row);
      const auto out = scatter_.sender(i);
      blk_.each_pack(columns.first, columns.packs, [&](Slot, int p) {
        out.put(scatter_at(row, p - columns.first), input.load(p));
      });
    });
    blk_.chaos();
  }

  template <class SquaresT>
  FCCL_DEVICE bool reduce_columns(const Columns& own, int row, SquaresT& squares, float* sums) {
    const auto line = epilogue_.row(row, row);
    const auto input = input_.row(row);
    const auto& in = scatter_.reader();
    const auto out = gather_.sender_to_all(0);
    blk_.each_pack(own.first, own.packs, [&](Slot s, int p) {
      const uint32_t at = scatter_at(row, p - own.first);
      auto sum = all_floats<kElements<T>>(0.0f);
      if (!fold_ranks<kRanks, T>(blk_, a_.ex, in, at, row, input.load(p), line, sum)) return;
      const Pack h = line.combine(p, sum, line.load_residual(p));
      squares.set(s, to_floats<T>(h));
      in.release_all(at);
      out.put(gather_at(row, p - own.first), h);
    });
    blk_.sum_units(squares, own.first, own.packs, kElements<T>, units_.packs_per_unit, sums);
    if (blk_.row_failed()) return false;
    blk_.each_pack(0, (own.units + 3) / 4, [&](Slot, int j) {
      uint32_t words[4] = {};
      for (int k = 0; k < 4; ++k)
        if (4 * j + k < own.units) words[k] = float_bits(sums[4 * j + k]);
      out.put(gather_at(row, slots_.packs + j), pack_of_words(words));
    });
    blk_.meet();
    return true;
  }

  template <class Kept>
  FCCL_DEVICE bool norm_row(int row, Kept& kept, float* sums) {
    kept.start(row);
    const auto line = epilogue_.row(row, row);
    const auto& in = gather_.reader();
    const auto weight = blk_.prefetch(0, a_.packs, [line](int p) { return line.load_weight(p); });
    auto take = [&](Slot s, int p, int owner, int first) {
      const uint32_t at = gather_at(row, p - first);
      Pack h;
      if (!in.receive(blk_, owner, at, row, h)) return;
      in.release(owner, at);
      kept[s] = h;
      line.keep(p, h);
    };
    if constexpr (Block::kOneRowTiles) {  // all packs of the row at once, whoever owns them
      blk_.each_pack(0, a_.packs, [&](Slot s, int p) {
        const int owner = owner_of_share(p / units_.packs_per_unit, units_.count, a_.ex.ranks);
        take(s, p, owner, columns_of(owner).first);
      });
    } else {
      for (int owner = 0; owner < a_.ex.ranks; ++owner) {
        const Columns columns = columns_of(owner);
        blk_.each_pack(
            columns.first, columns.packs, [&](Slot s, int p) { take(s, p, owner, columns.first); });
      }
    }
    blk_.each_pack(0, slots_.sum_packs * a_.ex.ranks, [&](Slot, int j) {
      const int owner = j / slots_.sum_packs;
      const int part = j % slots_.sum_packs;
      const Columns columns = columns_of(owner);
      if (4 * part >= columns.units) return;
      const uint32_t at = gather_at(row, slots_.packs + part);
      Pack got;
      if (!in.receive(blk_, owner, at, row, got)) return;
      in.release(owner, at);
      uint32_t words[4];
      pack_to_words(got, words);
      for (int k = 0; k < 4; ++k)
        if (4 * part + k < columns.units)
          sums[columns.unit + 4 * part + k] = float_of_bits(words[k]);
    });
    const float total = blk_.finish_units(sums, units_.count);
    if (blk_.row_failed()) return false;
    const float scale = epilogue_.scale(total);
    blk_.each_pack(
        0, a_.packs, [&](Slot s, int p) { line.finish(p, kept[s], scale, weight(s, p)); });
    blk_.meet();
    return true;
  }

  Block& blk_;
  const KernelArgs& a_;
  const Protocol<kRanks> scatter_;
  const Protocol<kRanks> gather_;
  const Epilogue epilogue_;
  const Rows<T, Epilogue::kWhole> input_;
  const Units units_;
  const ColumnSlots slots_;
};

}  // namespace fccl::FCCL_TARGET
