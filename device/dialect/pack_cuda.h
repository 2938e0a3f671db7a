// Pack and Floats on CUDA: registers. The pack is aligned to 16 bytes, else every load and store of
// one falls apart into four. Compiled with -fmad=false; the intrinsics below say which roundings
// happen. cvt.rn of a NaN gives the canonical NaN of bf16 and f16; f32 selects it.
#pragma once
#include "device/dialect/target_cuda.h"
#include "device/types/number.h"

namespace fccl::FCCL_TARGET {

struct alignas(16) Pack {
  uint32_t w[4];
};

// N fp32 values of one pack.
template <int N>
struct Floats {
  float v[N];
};

FCCL_DEVICE Pack zero_pack() {
  return {{0, 0, 0, 0}};
}
FCCL_DEVICE Pack sentinel_pack() {
  return {{kSentinel, kSentinel, kSentinel, kSentinel}};
}
// What may be sent: no word equal to the sentinel. It only turns one NaN into another.
FCCL_DEVICE Pack without_sentinel(Pack p) {
  FCCL_UNROLL for (int i = 0; i < 4; ++i) p.w[i] = min(p.w[i], kLargestSent);
  return p;
}
FCCL_DEVICE bool arrived(const Pack& p) {
  return max(max(p.w[0], p.w[1]), max(p.w[2], p.w[3])) != kSentinel;
}
FCCL_DEVICE void pack_to_words(const Pack& p, uint32_t (&words)[4]) {
  FCCL_UNROLL for (int i = 0; i < 4; ++i) words[i] = p.w[i];
}
FCCL_DEVICE Pack pack_of_words(const uint32_t (&words)[4]) {
  return {{words[0], words[1], words[2], words[3]}};
}

// ---- fp32 arithmetic, element by element
template <int N, class F>
FCCL_DEVICE Floats<N> each_float(const Floats<N>& a, const Floats<N>& b, F&& f) {
  Floats<N> r;
  FCCL_UNROLL for (int i = 0; i < N; ++i) r.v[i] = f(a.v[i], b.v[i]);
  return r;
}
template <int N>
FCCL_DEVICE Floats<N> operator+(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) { return __fadd_rn(x, y); });
}
template <int N>
FCCL_DEVICE Floats<N> operator*(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) { return __fmul_rn(x, y); });
}
template <int N>
FCCL_DEVICE Floats<N> operator/(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) { return __fdiv_rn(x, y); });
}
template <int N>
FCCL_DEVICE Floats<N> all_floats(float x) {
  Floats<N> r;
  FCCL_UNROLL for (int i = 0; i < N; ++i) r.v[i] = x;
  return r;
}
// Larger and smaller of two: NaN if either is, +0 above -0.
template <int N>
FCCL_DEVICE Floats<N> larger(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) {
    const float same = __uint_as_float(__float_as_uint(x) & __float_as_uint(y));
    const float ordered = y > x ? y : y == x ? same : x;
    return y != y ? y : x != x ? x : ordered;
  });
}
template <int N>
FCCL_DEVICE Floats<N> smaller(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) {
    const float same = __uint_as_float(__float_as_uint(x) | __float_as_uint(y));
    const float ordered = y < x ? y : y == x ? same : x;
    return y != y ? y : x != x ? x : ordered;
  });
}

// ---- pack <-> fp32
template <class T>
FCCL_DEVICE Floats<kElements<T>> to_floats(const Pack& p) {
  Floats<kElements<T>> r;
  FCCL_UNROLL for (int i = 0; i < 4; ++i) {
    if constexpr (T::kind == TypeKind::F32) {
      r.v[i] = __uint_as_float(p.w[i]);
    } else if constexpr (T::kind == TypeKind::BF16) {
      r.v[2 * i] = __uint_as_float(p.w[i] << 16);
      r.v[2 * i + 1] = __uint_as_float(p.w[i] & 0xFFFF0000u);
    } else {
      asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, "
          "high;}"
          : "=f"(r.v[2 * i]), "=f"(r.v[2 * i + 1])
          : "r"(p.w[i]));
    }
  }
  return r;
}
template <class T>
FCCL_DEVICE Pack to_pack(const Floats<kElements<T>>& x) {
  Pack p;
  FCCL_UNROLL for (int i = 0; i < 4; ++i) {
    if constexpr (T::kind == TypeKind::F32) {
      p.w[i] = x.v[i] != x.v[i] ? 0x7FFFFFFFu : __float_as_uint(x.v[i]);
    } else if constexpr (T::kind == TypeKind::BF16) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p.w[i]) : "f"(x.v[2 * i + 1]), "f"(x.v[2 * i]));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p.w[i]) : "f"(x.v[2 * i + 1]), "f"(x.v[2 * i]));
    }
  }
  return p;
}

// The first levels of the tree of squares: fma(x1, x1, x0 * x0) for each pair, then neighbours.
template <int N>
FCCL_DEVICE float pack_squares(const Floats<N>& x) {
  float pair[N / 2];
  FCCL_UNROLL for (int i = 0; i < N / 2; ++i) pair[i] =
      __fmaf_rn(x.v[2 * i + 1], x.v[2 * i + 1], __fmul_rn(x.v[2 * i], x.v[2 * i]));
  FCCL_UNROLL for (int width = N / 4; width > 0; width /= 2) {
    FCCL_UNROLL for (int i = 0; i < width; ++i) pair[i] = __fadd_rn(pair[2 * i], pair[2 * i + 1]);
  }
  return pair[0];
}

FCCL_DEVICE uint32_t float_bits(float x) {
  return __float_as_uint(x);
}
FCCL_DEVICE float float_of_bits(uint32_t u) {
  return __uint_as_float(u);
}
// 1 / sqrt, rounded once.
FCCL_DEVICE float inverse_sqrt(float x) {
  return __frsqrt_rn(x);
}
FCCL_DEVICE float fused_multiply_add(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}

}  // namespace fccl::FCCL_TARGET
