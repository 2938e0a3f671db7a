// What the fused call does with the sum of a pack, in the order that fixes the bits:
//   s = sum in rank order, fp32      ("as unfused": rounded to T here)
//   h = s + residual + bias, fp32, rounded once to T     -> residual_out
//   r = 1/sqrt(fma(S, fl(1/hidden), eps)), S the tree sum of squares of the ROUNDED h
//   norm_out = (h * r) * w, rounded once to T
// kPlain: rows are whole packs, the weight has the tensor's type, and nothing optional is there but
// residual and residual_out.
#pragma once
#include "device/types/rows.h"

namespace fccl::FCCL_TARGET {

template <class T, bool kPlain>
class FusedNorm {
 public:
  using Type = T;
  static constexpr bool kNorm = true;
  static constexpr bool kWhole = kPlain;
  static constexpr int N = kElements<T>;

  FCCL_DEVICE explicit FusedNorm(const KernelArgs& a)
      : a_(a), residual_(rows(a.residual)), residual_out_(rows(a.residual_out)),
        norm_out_(rows(a.norm_out)), allreduce_out_(rows(a.allreduce_out)) {}

  FCCL_DEVICE Floats<N> fold(Floats<N> sum, Floats<N> x) const { return sum + x; }

  FCCL_DEVICE Pack load_residual(int64_t row, int pack) const {
    return residual_.present() ? residual_.load(row, pack) : zero_pack();
  }
  // As it is kept until the row's scale is known: in few registers where it has the tensor's type.
  FCCL_DEVICE auto load_weight(int pack) const {
    if constexpr (kPlain) {
      return load_user<T, kPlain>(a_.weight, pack, a_.hidden);
    } else {
      const Floats<N> w = load_vector(a_.weight, pack, kWeightF32);
      return a_.flags & kWeightPlusOne ? all_floats<N>(1.0f) + w : w;
    }
  }

  // The rounded h.
  FCCL_DEVICE Pack combine(int64_t row, int pack, Floats<N> sum, Pack residual) const {
    if constexpr (!kPlain) {
      if (a_.flags & kRoundSum) sum = to_floats<T>(to_pack<T>(sum));
      if (allreduce_out_.present()) allreduce_out_.store(row, pack, to_pack<T>(sum));
    }
    if (residual_.present()) sum = sum + to_floats<T>(residual);
    if constexpr (!kPlain) {
      if (a_.bias != nullptr) sum = sum + load_vector(a_.bias, pack, kBiasF32);
    }
    return to_pack<T>(sum);
  }
  FCCL_DEVICE void keep(int64_t row, int pack, Pack h) const {
    if (residual_out_.present()) residual_out_.store(row, pack, h);
  }
  FCCL_DEVICE float scale(float squares) const {
    return inverse_sqrt(fused_multiply_add(squares, a_.inv_hidden, a_.eps));
  }
  template <class Weight>
  FCCL_DEVICE Pack finish(int64_t row, int pack, Pack h, float scale, const Weight& weight) const {
    const Pack out = to_pack<T>((to_floats<T>(h) * all_floats<N>(scale)) * floats_of(weight));
    norm_out_.store(row, pack, out);
    return out;
  }
  FCCL_DEVICE void store_norm(int64_t row, int pack, Pack out) const { norm_out_.store(row, pack, out); }
  FCCL_DEVICE const Rows<T, kPlain>& kept_rows() const { return norm_out_; }  // free until the row is finished
  FCCL_DEVICE bool sharded() const { return !kPlain && (a_.flags & kResidualSharded); }

 private:
  FCCL_DEVICE Rows<T, kPlain> rows(const Tensor& tensor) const {
    return Rows<T, kPlain>(tensor, a_.hidden, -1, a_.hidden);
  }
  FCCL_DEVICE static Floats<N> floats_of(const Pack& weight) { return to_floats<T>(weight); }
  FCCL_DEVICE static Floats<N> floats_of(const Floats<N>& weight) { return weight; }
  FCCL_DEVICE Floats<N> load_vector(const char* vector, int pack, uint32_t f32) const {
    if constexpr (!kPlain) {
      if (a_.flags & f32) return load_user_f32<T, kPlain>(vector, pack, a_.hidden);
    }
    return to_floats<T>(load_user<T, kPlain>(vector, pack, a_.hidden));
  }

  const KernelArgs& a_;
  const Rows<T, kPlain> residual_;
  const Rows<T, kPlain> residual_out_;
  const Rows<T, kPlain> norm_out_;
  const Rows<T, kPlain> allreduce_out_;
};

}  // namespace fccl::FCCL_TARGET
