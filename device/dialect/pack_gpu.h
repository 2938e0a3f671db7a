// Pack and Floats on a GPU: registers, element by element. Included by pack_cuda.h and pack_hip.h
// behind the words that differ: one operation in fp32 rounded once (add_once, multiply_once,
// divide_once, fused_multiply_add), the bits of a float, and the conversions of two elements. The
// pack is aligned to 16 bytes, else every load and store of one falls apart into four.
#pragma once

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
  FCCL_UNROLL for (int i = 0; i < 4; ++i) p.w[i] = smaller_word(p.w[i], kLargestSent);
  return p;
}
FCCL_DEVICE bool arrived(const Pack& p) {
  return larger_word(larger_word(p.w[0], p.w[1]), larger_word(p.w[2], p.w[3])) != kSentinel;
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
  return each_float(a, b, [](float x, float y) { return add_once(x, y); });
}
template <int N>
FCCL_DEVICE Floats<N> operator*(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) { return multiply_once(x, y); });
}
template <int N>
FCCL_DEVICE Floats<N> operator/(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) { return divide_once(x, y); });
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
    const float same = float_of_bits(float_bits(x) & float_bits(y));
    const float ordered = y > x ? y : y == x ? same : x;
    return y != y ? y : x != x ? x : ordered;
  });
}
template <int N>
FCCL_DEVICE Floats<N> smaller(const Floats<N>& a, const Floats<N>& b) {
  return each_float(a, b, [](float x, float y) {
    const float same = float_of_bits(float_bits(x) | float_bits(y));
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
      r.v[i] = float_of_bits(p.w[i]);
    } else if constexpr (T::kind == TypeKind::BF16) {
      r.v[2 * i] = float_of_bits(p.w[i] << 16);
      r.v[2 * i + 1] = float_of_bits(p.w[i] & 0xFFFF0000u);
    } else {
      widen_f16(p.w[i], r.v[2 * i], r.v[2 * i + 1]);
    }
  }
  return r;
}
// Rounded to nearest even once; a NaN becomes the canonical one.
template <class T>
FCCL_DEVICE Pack to_pack(const Floats<kElements<T>>& x) {
  Pack p;
  FCCL_UNROLL for (int i = 0; i < 4; ++i) {
    if constexpr (T::kind == TypeKind::F32) {
      p.w[i] = x.v[i] != x.v[i] ? 0x7FFFFFFFu : float_bits(x.v[i]);
    } else if constexpr (T::kind == TypeKind::BF16) {
      p.w[i] = narrow_bf16(x.v[2 * i], x.v[2 * i + 1]);
    } else {
      p.w[i] = narrow_f16(x.v[2 * i], x.v[2 * i + 1]);
    }
  }
  return p;
}

// The first levels of the tree of squares: fma(x1, x1, x0 * x0) for each pair, then neighbours.
template <int N>
FCCL_DEVICE float pack_squares(const Floats<N>& x) {
  float pair[N / 2];
  FCCL_UNROLL for (int i = 0; i < N / 2; ++i) pair[i] =
      fused_multiply_add(x.v[2 * i + 1], x.v[2 * i + 1], multiply_once(x.v[2 * i], x.v[2 * i]));
  FCCL_UNROLL for (int width = N / 4; width > 0; width /= 2) {
    FCCL_UNROLL for (int i = 0; i < width; ++i) pair[i] = add_once(pair[2 * i], pair[2 * i + 1]);
  }
  return pair[0];
}

}  // namespace fccl::FCCL_TARGET
