// What the plain reductions do with a pack: fold in rank order in fp32, one rounding. Avg divides the
// sum by the number of ranks before the rounding. Max and Min give NaN if any input is NaN, and order
// +0 above -0.
#pragma once
#include "device/types/rows.h"

namespace fccl::FCCL_TARGET {

template <class T>
class Reduce {
 public:
  using Type = T;
  static constexpr bool kNorm = false;
  static constexpr bool kWhole = false;
  static constexpr int N = kElements<T>;
  enum Op : int32_t { Sum = 0, Prod = 1, Max = 2, Min = 3, Avg = 4 };  // NCCL's numbers

  FCCL_DEVICE explicit Reduce(const KernelArgs& a)
      : a_(a), out_(a.norm_out, a.hidden, a.total_rows - 1, a.last_hidden) {}

  FCCL_DEVICE Floats<N> fold(Floats<N> sum, Floats<N> x) const {
    switch (a_.op) {
      case Prod:
        return sum * x;
      case Max:
        return larger(sum, x);
      case Min:
        return smaller(sum, x);
      default:
        return sum + x;
    }
  }
  FCCL_DEVICE Pack load_residual(int64_t, int) const { return zero_pack(); }
  FCCL_DEVICE Pack combine(int64_t, int, Floats<N> sum, Pack) const {
    if (a_.op == Avg) sum = sum / all_floats<N>(static_cast<float>(a_.ex.ranks));
    return to_pack<T>(sum);
  }
  FCCL_DEVICE void keep(int64_t row, int pack, Pack h) const { out_.store(row, pack, h); }
  FCCL_DEVICE const Rows<T, false>& kept_rows() const { return out_; }
  FCCL_DEVICE bool sharded() const { return false; }

 private:
  const KernelArgs& a_;
  const Rows<T, false> out_;
};

}  // namespace fccl::FCCL_TARGET
