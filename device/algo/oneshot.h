// One-shot: every rank pushes its rows to every peer, and each rank reduces all rows itself. One
// hop, (ranks - 1) times the tensor on the wire: best while latency counts.
//
// A tile is the rows that are pushed before any of them is waited for; where tiles are rows, a
// block pushes its next row before it waits for this one. Closed: a rank leaves after it has
// received every row of every rank (with no rows, in checked mode, every header).
//
// LATER KERNELS. What follows in the stream as a dependent launch (programmatic dependent launch of
// CUDA) is set up when all blocks of this one have said so. A block says so when it has received
// its last row: then it waits for nobody any more, and what is set up beside it holds its SMs for
// the rest of a row, not for as long as a peer may take. So a kernel of another communicator that a
// peer waits for is kept out for a moment at most. It begins with places of its own
// (keep_places) and waits for the end of this kernel before it touches memory. With kEarlyTrigger
// a block says so as soon as its last row is pushed: whoever asks for that answers for what
// follows.
#pragma once
#include "device/algo/steps.h"

namespace fccl::FCCL_TARGET {

template <template <int> class Protocol, int kRanks, class Epilogue>
class Oneshot {
 public:
  static constexpr int kRankCount = kRanks;  // 0: any
  using T = typename Epilogue::Type;
  // Where every pack is waited for by itself. An arrival stands for a tile, and pads are few.
  static constexpr bool kTilesAreRows =
      Block::kOneRowTiles && Protocol<kRanks>::kind != ProtocolKind::Flags;

  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Exchange<kRanks> exchange(a.ex);
    if constexpr (kTilesAreRows) {
      if (!Oneshot(blk, a, exchange).run_rows()) return;
    } else {
      if (!exchange.enter()) return;
      Oneshot(blk, a, exchange).run_tiles();
    }
    exchange.close(blk);
  }

 private:
  FCCL_DEVICE Oneshot(Block& blk, const KernelArgs& a, Exchange<kRanks>& exchange)
      : blk_(blk),
        a_(a),
        exchange_(exchange),
        hop_(exchange, 0, Hop::Gather),
        epilogue_(a),
        input_(input_rows<Epilogue>(a)) {}

  // A tile is one row. Where the first one lies is known before anything is read, and its input is
  // on its way before the control line is. The own row is loaded again when it is its turn: it need
  // not be held while the next one is pushed. False: the communicator has failed, nothing was
  // begun.
  FCCL_DEVICE bool run_rows() {
    const int own = blk_.id();
    auto input = input_.row(own);
    auto line = epilogue_.row(own, own);
    blk_.keep_places(input.place() | line.places() | hop_.places() |
                     static_cast<uint32_t>(a_.rows) | static_cast<uint32_t>(a_.packs));
    wait_for_earlier_kernels();
    const auto first = prefetch_input(input, own);
    if (!exchange_.read_line()) return false;
    if (own < a_.rows) push(own, first);
    if (own < a_.rows || a_.rows == 0) exchange_.push_header(blk_);
    exchange_.begin(blk_);
    if (!exchange_.check_headers(blk_) || own >= a_.rows) return true;
    auto kept = blk_.kept_row(epilogue_.kept_rows(), a_.packs);
    auto squares = blk_.squares(a_.packs);
    int row = own;
    for (int next = row + blk_.count(); next < a_.rows; next = row + blk_.count()) {
      push(next, prefetch_input(input_.row(next), next));
      hop_.publish(blk_, row);
      if (!hop_.acquire(blk_, row, row) ||
          !reduce<false>(row, line, prefetch_input(input, row), kept, squares))
        return true;
      row = next;
      input = input_.row(row);
      line = epilogue_.row(row, row);
    }
    if (a_.flags & kEarlyTrigger) blk_.let_later_kernels_start();
    hop_.publish(blk_, row);
    if (hop_.acquire(blk_, row, row))
      static_cast<void>(reduce<true>(row, line, prefetch_input(input, row), kept, squares));
    return true;
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
      for (int row = first; row < last; ++row) push(row, prefetch_input(input_.row(row), row));
      hop_.publish(blk_, tile);
      if (!hop_.acquire(blk_, tile, first)) return;
      for (int row = first; row < last; ++row)
        if (!reduce<false>(
                row, epilogue_.row(row, row), prefetch_input(input_.row(row), row), kept, squares))
          return;
    }
  }

  FCCL_DEVICE auto prefetch_input(const Row<T, Epilogue::kWhole>& input, int row) const {
    return blk_.prefetch(0, row < a_.rows ? a_.packs : 0, [input](int p) { return input.load(p); });
  }

  template <class Mine>
  FCCL_DEVICE void push(int row, const Mine& mine) {
    const uint32_t at = pack_index(row, a_.packs);
    if (rank_count<kRanks>(a_.ex) == 1) return;  // nobody to send to, and no staging
    const auto out = hop_.sender_to_all(1);
    blk_.each_pack(0, a_.packs, [&](Slot s, int p) { out.put(at + p, mine(s, p)); });
    blk_.chaos();
  }

  // Sum, residual, norm of one row. kLast: of this block, where that is known; code of its own, so
  // that nothing is computed there for a row that follows. False on all lanes after a failure.
  template <bool kLast, class Line, class Mine, class Kept, class SquaresT>
  FCCL_DEVICE bool reduce(int row, const Line& line, const Mine& mine, Kept& kept,
                          SquaresT& squares) {
    kept.start(row);
    const auto residual =
        blk_.prefetch(0, a_.packs, [line](int p) { return line.load_residual(p); });
    if constexpr (Epilogue::kNorm) {
      const auto weight = blk_.prefetch(0, a_.packs, [line](int p) { return line.load_weight(p); });
      receive(row, line, mine, residual, kept, squares);
      if constexpr (kLast) blk_.let_later_kernels_start();
      const float total = blk_.row_sum(squares, a_.packs, kElements<T>);
      if (blk_.row_failed()) [[unlikely]]
        return false;
      const float scale = epilogue_.scale(total);
      blk_.each_pack(
          0, a_.packs, [&](Slot s, int p) { line.finish(p, kept[s], scale, weight(s, p)); });
      blk_.end_row(!kLast);
    } else {
      receive(row, line, mine, residual, kept, squares);
      if constexpr (kLast) blk_.let_later_kernels_start();
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
