// One-shot: every rank pushes its rows to every peer, and each rank reduces all rows itself. One
// hop, (ranks - 1) times the tensor on the wire: best while latency counts.
//
// A tile is the rows that are pushed before any of them is waited for; where tiles are rows, a
// block pushes its next row before it waits for this one. Closed: a rank leaves after it has
// received every row of every rank (with no rows, in checked mode, every header).
#pragma once
#include "device/algo/steps.h"

namespace fccl::FCCL_TARGET {

template <template <int> class Protocol, int kRanks, class Epilogue>
class Oneshot {
 public:
  using T = typename Epilogue::Type;
  // Where every pack is waited for by itself. An arrival stands for a tile, and pads are few.
  static constexpr bool kTilesAreRows =
      Block::kOneRowTiles && Protocol<kRanks>::kind != ProtocolKind::Flags;

  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    if constexpr (kTilesAreRows) {
      const auto input = input_rows<Epilogue>(a);
      const auto first =
          prefetch_row(blk, a, input, blk.id());  // on its way before the control line is
      Exchange<kRanks> exchange(a.ex);
      if (!exchange.usable()) return;
      Oneshot(blk, a, exchange).run_rows(first);
      exchange.close(blk);
    } else {
      Exchange<kRanks> exchange(a.ex);
      if (!exchange.usable()) return;
      Oneshot(blk, a, exchange).run_tiles();
      exchange.close(blk);
    }
  }

 private:
  FCCL_DEVICE Oneshot(Block& blk, const KernelArgs& a, Exchange<kRanks>& exchange)
      : blk_(blk),
        a_(a),
        exchange_(exchange),
        hop_(exchange, 0, Hop::Gather),
        epilogue_(a),
        input_(input_rows<Epilogue>(a)) {}

  // A tile is one row. The own row is loaded again when it is its turn: it need not be held while
  // the next one is pushed.
  template <class Mine>
  FCCL_DEVICE void run_rows(const Mine& first) {
    if (blk_.id() < a_.rows) push(blk_.id(), first);
    if (blk_.id() < a_.rows || a_.rows == 0) exchange_.push_header(blk_);
    exchange_.begin(blk_);
    if (!exchange_.check_headers(blk_)) return;
    auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
    auto squares = blk_.squares(a_.packs);
    for (int row = blk_.id(); row < a_.rows; row += blk_.count()) {
      const int next = row + blk_.count();
      const bool last = next >= a_.rows;
      if (!last) push(next, prefetch_input(next));
      if (last && (a_.flags & kEarlyTrigger)) blk_.let_later_kernels_start();
      hop_.publish(blk_, row);
      if (!hop_.acquire(blk_, row, row) || !reduce(row, prefetch_input(row), kept, squares, last))
        return;
    }
  }

  FCCL_DEVICE void run_tiles() {
    exchange_.push_header(blk_);
    exchange_.begin(blk_);
    if (!exchange_.check_headers(blk_)) return;
    auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
    auto squares = blk_.squares(a_.packs);
    const int tile_rows = a_.ex.tile_rows;
    const int tiles = (a_.rows + tile_rows - 1) / tile_rows;
    for (int tile = blk_.id(); tile < tiles; tile += blk_.count()) {
      const int first = tile * tile_rows;
      const int last = first + tile_rows < a_.rows ? first + tile_rows : a_.rows;
      for (int row = first; row < last; ++row) push(row, prefetch_input(row));
      hop_.publish(blk_, tile);
      if (!hop_.acquire(blk_, tile, first)) return;
      const bool more = tile + blk_.count() < tiles;
      for (int row = first; row < last; ++row)
        if (!reduce(row, prefetch_input(row), kept, squares, !more && row + 1 == last)) return;
    }
  }

  FCCL_DEVICE static auto prefetch_row(Block& blk, const KernelArgs& a,
                                       const Rows<T, Epilogue::kWhole>& rows, int row) {
    const auto input = rows.row(row);
    return blk.prefetch(0, row < a.rows ? a.packs : 0, [input](int p) { return input.load(p); });
  }
  FCCL_DEVICE auto prefetch_input(int row) const { return prefetch_row(blk_, a_, input_, row); }

  template <class Mine>
  FCCL_DEVICE void push(int row, const Mine& mine) {
    const uint32_t at = pack_index(row, a_.packs);
    if (rank_count<kRanks>(a_.ex) == 1) return;  // nobody to send to, and no staging
    const auto out = hop_.sender_to_all(1);
    blk_.each_pack(0, a_.packs, [&](Slot s, int p) { out.put(at + p, mine(s, p)); });
    blk_.chaos();
  }

  // Sum, residual, norm of one row. False on all lanes after a failure.
  template <class Mine, class Kept, class SquaresT>
  FCCL_DEVICE bool reduce(int row, const Mine& mine, Kept& kept, SquaresT& squares, bool last) {
    const auto line = epilogue_.row(row, row);
    kept.start(row);
    const auto residual =
        blk_.prefetch(0, a_.packs, [line](int p) { return line.load_residual(p); });
    if constexpr (Epilogue::kNorm) {
      const auto weight = blk_.prefetch(0, a_.packs, [line](int p) { return line.load_weight(p); });
      receive(row, line, mine, residual, kept, squares);
      const float total = blk_.row_sum(squares, a_.packs, kElements<T>);
      if (blk_.row_failed()) [[unlikely]]
        return false;
      const float scale = epilogue_.scale(total);
      blk_.each_pack(
          0, a_.packs, [&](Slot s, int p) { line.finish(p, kept[s], scale, weight(s, p)); });
      blk_.end_row(!last);
    } else {
      receive(row, line, mine, residual, kept, squares);
      if (blk_.any_failed()) return false;
    }
    return true;
  }

  template <class Line, class Mine, class Residual, class Kept, class SquaresT>
  FCCL_DEVICE void receive(int row, const Line& line, const Mine& mine, const Residual& residual,
                           Kept& kept, SquaresT& squares) {
    const uint32_t at = pack_index(row, a_.packs);
    const auto& in = hop_.reader();
    blk_.each_pack(0, a_.packs, [&](Slot s, int p) {
      auto sum = all_floats<kElements<T>>(0.0f);
      if (!fold_ranks<kRanks, T>(blk_, a_.ex, in, at + p, row, mine(s, p), line, sum)) return;
      const Pack h = line.combine(p, sum, residual(s, p));
      line.keep(p, h);
      if constexpr (Epilogue::kNorm) {
        kept[s] = h;
        squares.set(s, to_floats<T>(h));
      }
      in.release_all(at + p);
    });
  }

  Block& blk_;
  const KernelArgs& a_;
  Exchange<kRanks>& exchange_;
  const Protocol<kRanks> hop_;
  const Epilogue epilogue_;
  const Rows<T, Epilogue::kWhole> input_;
};

}  // namespace fccl::FCCL_TARGET
