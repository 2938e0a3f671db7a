// One-shot: every rank pushes its rows to every peer, and each rank reduces all rows itself. One hop,
// (ranks - 1) times the tensor on the wire: best while latency counts.
//
// A tile is the rows that are pushed before any of them is waited for. Closed: a rank leaves after it
// has received every row of every rank (with no rows, in checked mode, every header).
#pragma once
#include "device/algo/steps.h"

namespace fccl::FCCL_TARGET {

template <template <int> class Protocol, int kRanks, class Epilogue>
class Oneshot {
 public:
  using T = typename Epilogue::Type;
  // Where every pack is waited for by itself. An arrival stands for a tile, and pads are few.
  static constexpr bool kTilesAreRows = Block::kOneRowTiles && Protocol<kRanks>::kind != ProtocolKind::Flags;

  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Exchange<kRanks> exchange(a.ex);
    Oneshot kernel(blk, a, exchange);
    if constexpr (kTilesAreRows) {
      kernel.run_rows();
    } else {
      kernel.run_tiles();
    }
    exchange.close(blk);
  }

 private:
  FCCL_DEVICE Oneshot(Block& blk, const KernelArgs& a, Exchange<kRanks>& exchange)
      : blk_(blk), a_(a), exchange_(exchange), hop_(exchange, 0, Hop::Gather), epilogue_(a),
        input_(input_rows<Epilogue>(a)) {}

  // A tile is one row. The first input is on its way while the control line is; the header follows the
  // first push; the ticket is taken right after the barrier of the last row.
  FCCL_DEVICE void run_rows() {
    auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
    auto squares = blk_.squares(a_.packs);
    for (int row = blk_.id(); row < a_.rows; row += blk_.count()) {
      const auto mine = prefetch_input(row);
      if (!exchange_.usable()) return;
      push(row, mine);
      if (row == 0) exchange_.push_header(blk_);
      const bool last = row + blk_.count() >= a_.rows;
      if (last && (a_.flags & kEarlyTrigger)) blk_.let_later_kernels_start();
      if (row == blk_.id() && !exchange_.check_headers(blk_)) return;
      hop_.publish(blk_, row);
      if (!hop_.acquire(blk_, row, row) || !reduce(row, mine, kept, squares, last)) return;
    }
    if (blk_.id() >= a_.rows) run_without_rows();
  }

  FCCL_DEVICE void run_without_rows() {
    if (!exchange_.usable()) return;
    if (a_.rows == 0) exchange_.push_header(blk_);
    if (exchange_.check_headers(blk_)) exchange_.finish(blk_);
  }

  FCCL_DEVICE void run_tiles() {
    if (!exchange_.usable()) return;
    exchange_.push_header(blk_);
    if (!exchange_.check_headers(blk_)) return;
    auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
    auto squares = blk_.squares(a_.packs);
    const int tile_rows = a_.ex.tile_rows;
    const int tiles = (a_.rows + tile_rows - 1) / tile_rows;
    bool finished = false;
    for (int tile = blk_.id(); tile < tiles; tile += blk_.count()) {
      const int first = tile * tile_rows;
      const int last = first + tile_rows < a_.rows ? first + tile_rows : a_.rows;
      finished = tile + blk_.count() >= tiles;
      for (int row = first; row < last; ++row) push(row, prefetch_input(row));
      hop_.publish(blk_, tile);
      if (!hop_.acquire(blk_, tile, first)) return;
      for (int row = first; row < last; ++row)
        if (!reduce(row, prefetch_input(row), kept, squares, finished && row + 1 == last)) return;
    }
    if (!finished) exchange_.finish(blk_);  // a block without rows
  }

  FCCL_DEVICE auto prefetch_input(int row) {
    const auto input = input_.row(row);
    return blk_.prefetch(0, a_.packs, [input](int p) { return input.load(p); });
  }

  template <class Mine>
  FCCL_DEVICE void push(int row, const Mine& mine) {
    const int64_t at = static_cast<int64_t>(row) * a_.packs;
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
    const auto residual = blk_.prefetch(0, a_.packs, [line](int p) { return line.load_residual(p); });
    if constexpr (Epilogue::kNorm) {
      const auto weight = blk_.prefetch(0, a_.packs, [line](int p) { return line.load_weight(p); });
      receive(row, line, mine, residual, kept, squares);
      const float total = blk_.row_sum(squares, a_.packs, kElements<T>, [&] {
        if (last) exchange_.finish(blk_);
      });
      if (blk_.row_failed()) return false;
      const float scale = epilogue_.scale(total);
      blk_.each_pack(0, a_.packs,
                     [&](Slot s, int p) { line.finish(p, kept[s], scale, weight(s, p)); });
      blk_.end_row(!last);
    } else {
      receive(row, line, mine, residual, kept, squares);
      if (blk_.any_failed()) return false;
      if (last) exchange_.finish(blk_);
    }
    return true;
  }

  template <class Line, class Mine, class Residual, class Kept, class SquaresT>
  FCCL_DEVICE void receive(int row, const Line& line, const Mine& mine, const Residual& residual, Kept& kept,
                           SquaresT& squares) {
    const int64_t at = static_cast<int64_t>(row) * a_.packs;
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
