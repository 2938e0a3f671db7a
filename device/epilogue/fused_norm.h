// What the fused call does with the sum of a pack, in the order that fixes the bits:
//   s = sum in rank order, fp32      ("as unfused": rounded to T here)
//   h = s + residual + bias, fp32, rounded once to T     -> residual_out
//   r = 1/sqrt(fma(S, fl(1/hidden), eps)), S the tree sum of squares of the ROUNDED h
//   norm_out = (h * r) * w, rounded once to T
// kPlain: rows are whole packs, the weight has the tensor's type, and nothing optional is there but
// residual and residual_out (row-sharded or not).
#pragma once
#include "device/types/rows.h"

namespace fccl::FCCL_TARGET {

// One row of the call, by value: a step over packs keeps it in registers.
template <class T, bool kPlain>
class FusedRow {
 public:
  static constexpr int N = kElements<T>;
  using RowT = Row<T, kPlain>;

  // `row` of the tensors, `local` of the residual that this rank has.
  FCCL_DEVICE FusedRow(const KernelArgs& a, int64_t row, int64_t local)
      : a_(&a),
        residual_(a.residual, local, a.hidden),
        residual_out_(a.residual_out, local, a.hidden),
        norm_out_(a.norm_out, row, a.hidden),
        sum_out_(a.allreduce_out, row, a.hidden) {}

  FCCL_DEVICE uint64_t places() const {
    return residual_.place() | residual_out_.place() | norm_out_.place() | float_bits(a_->eps) |
           float_bits(a_->inv_hidden);
  }

  FCCL_DEVICE Pack load_residual(int pack) const {
    return a_->residual.ptr != nullptr ? residual_.load(pack) : zero_pack();
  }
  // As it is kept until the row's scale is known: in few registers where it has the tensor's type.
  FCCL_DEVICE auto load_weight(int pack) const {
    if constexpr (kPlain) {
      return load_user<T, kPlain>(a_->weight, pack, a_->hidden);
    } else {
      const Floats<N> w = load_vector(a_->weight, pack, kWeightF32);
      return a_->flags & kWeightPlusOne ? all_floats<N>(1.0f) + w : w;
    }
  }
  FCCL_DEVICE Floats<N> fold(Floats<N> sum, Floats<N> x) const { return sum + x; }
  // The rounded h.
  FCCL_DEVICE Pack combine(int pack, Floats<N> sum, Pack residual) const {
    if constexpr (!kPlain) {
      if (a_->flags & kRoundSum) sum = to_floats<T>(to_pack<T>(sum));
      if (a_->allreduce_out.ptr != nullptr) sum_out_.store(pack, to_pack<T>(sum));
    }
    if (a_->residual.ptr != nullptr) sum = sum + to_floats<T>(residual);
    if constexpr (!kPlain) {
      if (a_->bias != nullptr) sum = sum + load_vector(a_->bias, pack, kBiasF32);
    }
    return to_pack<T>(sum);
  }
  FCCL_DEVICE void keep(int pack, Pack h) const {
    if (a_->residual_out.ptr != nullptr) residual_out_.store(pack, h);
  }
  template <class Weight>
  FCCL_DEVICE Pack finish(int pack, Pack h, float scale, const Weight& weight) const {
    const Pack out = to_pack<T>((to_floats<T>(h) * all_floats<N>(scale)) * floats_of(weight));
    norm_out_.store(pack, out);
    return out;
  }
  FCCL_DEVICE void store_norm(int pack, Pack out) const { norm_out_.store(pack, out); }

 private:
  FCCL_DEVICE static Floats<N> floats_of(const Pack& weight) { return to_floats<T>(weight); }
  FCCL_DEVICE static Floats<N> floats_of(const Floats<N>& weight) { return weight; }
  FCCL_DEVICE Floats<N> load_vector(const char* vector, int pack, uint32_t f32) const {
    if constexpr (!kPlain) {
      if (a_->flags & f32) return load_user_f32<T, kPlain>(vector, pack, a_->hidden);
    }
    return to_floats<T>(load_user<T, kPlain>(vector, pack, a_->hidden));
  }

  const KernelArgs* a_;
  RowT residual_;
  RowT residual_out_;
  RowT norm_out_;
  RowT sum_out_;
};

template <class T, bool kPlain>
class FusedNorm {
 public:
  using Type = T;
  static constexpr bool kNorm = true;
  static constexpr bool kWhole = kPlain;
  static constexpr int N = kElements<T>;

  FCCL_DEVICE explicit FusedNorm(const KernelArgs& a)
      : a_(a), norm_out_(a.norm_out, a.hidden, -1, a.hidden) {}

  FCCL_DEVICE FusedRow<T, kPlain> row(int64_t row, int64_t local) const { return {a_, row, local}; }
  FCCL_DEVICE float scale(float squares) const {
    return inverse_sqrt(fused_multiply_add(squares, a_.inv_hidden, a_.eps));
  }
  FCCL_DEVICE const Rows<T, kPlain>& kept_rows() const {
    return norm_out_;
  }  // free until the row is finished
  FCCL_DEVICE bool sharded() const { return (a_.flags & kResidualSharded) != 0; }

 private:
  const KernelArgs& a_;
  const Rows<T, kPlain> norm_out_;
};

}  // namespace fccl::FCCL_TARGET
