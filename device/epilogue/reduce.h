// What the plain reductions do with a pack: fold in rank order in fp32, one rounding. Avg divides
// the sum by the number of ranks before the rounding. Max and Min give NaN if any input is NaN, and
// order +0 above -0.
#pragma once
#include "device/types/rows.h"

namespace fccl::FCCL_TARGET {

enum ReduceOp : int32_t {
  kSumOp = 0,
  kProdOp = 1,
  kMaxOp = 2,
  kMinOp = 3,
  kAvgOp = 4
};  // NCCL's numbers

// One row of the call, by value.
template <class T>
class ReduceRow {
 public:
  static constexpr int N = kElements<T>;
  FCCL_DEVICE ReduceRow(Row<T, false> out, int op, int ranks) : out_(out), op_(op), ranks_(ranks) {}

  FCCL_DEVICE uint64_t places() const { return out_.place(); }

  FCCL_DEVICE Floats<N> fold(Floats<N> sum, Floats<N> x) const {
    switch (op_) {
      case kProdOp:
        return sum * x;
      case kMaxOp:
        return larger(sum, x);
      case kMinOp:
        return smaller(sum, x);
      default:
        return sum + x;
    }
  }
  FCCL_DEVICE Pack load_residual(int) const { return zero_pack(); }
  FCCL_DEVICE Pack combine(int, Floats<N> sum, Pack) const {
    if (op_ == kAvgOp) sum = sum / all_floats<N>(static_cast<float>(ranks_));
    return to_pack<T>(sum);
  }
  FCCL_DEVICE void keep(int pack, Pack h) const { out_.store(pack, h); }

 private:
  Row<T, false> out_;
  int op_;
  int ranks_;
};

template <class T>
class Reduce {
 public:
  using Type = T;
  static constexpr bool kNorm = false;
  static constexpr bool kWhole = false;
  static constexpr int N = kElements<T>;

  FCCL_DEVICE explicit Reduce(const KernelArgs& a)
      : a_(a), out_(a.norm_out, a.hidden, a.total_rows - 1, a.last_hidden) {}

  FCCL_DEVICE ReduceRow<T> row(int64_t row, int64_t) const {
    return {out_.row(row), a_.op, a_.ex.ranks};
  }
  FCCL_DEVICE const Rows<T, false>& kept_rows() const { return out_; }
  FCCL_DEVICE bool sharded() const { return false; }

 private:
  const KernelArgs& a_;
  const Rows<T, false> out_;
};

}  // namespace fccl::FCCL_TARGET
