// Pack and Floats on the CPU: Highway vectors, static dispatch (the level is the compile flags). A
// pack is one vector, of 128 bits or, where packs are wide, as long as the level's; its elements in
// fp32 are one or two vectors, whatever the level offers.
//
// Rounding is to nearest, ties to even, by our own integer arithmetic for bf16 (Highway truncates)
// and for f16 where the level has no conversion instruction. A NaN is stored as the canonical one.
#pragma once
#include <hwy/highway.h>

#include <cstring>

#include "device/dialect/target_cpu.h"
#include "device/types/number.h"

namespace fccl::FCCL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

// These hide the general ones: 16 bytes, or those of a wide pack.
constexpr int kPackBytes = FCCL_PACK_BYTES;
constexpr int kPackWords = kPackBytes / 4;
template <class T>
constexpr int kElements = kPackBytes / T::bytes;
constexpr int kHalves = kPackBytes / 2;  // 16-bit elements of a pack

using WordTag = hn::FixedTag<uint32_t, kPackWords>;
using HalfTag = hn::FixedTag<uint16_t, kHalves>;
using Words = hn::Vec<WordTag>;

struct Pack {
  Words words;
};

template <int N>
using FloatTag = hn::CappedTag<float, N>;
template <int N>
constexpr int kFloatLanes = static_cast<int>(hn::MaxLanes(FloatTag<N>()));

// N fp32 values in kVectors registers.
template <int N>
struct Floats {
  static constexpr int kLanes = kFloatLanes<N>;
  static constexpr int kVectors = N / kLanes;
  using Tag = hn::CappedTag<float, N>;
  using Bits = hn::RebindToUnsigned<Tag>;
  hn::Vec<Tag> v[kVectors];
};

FCCL_DEVICE Pack zero_pack() {
  return {hn::Zero(WordTag())};
}
FCCL_DEVICE Pack sentinel_pack() {
  return {hn::Set(WordTag(), kSentinel)};
}
// What may be sent: no word equal to the sentinel. It only turns one NaN into another.
FCCL_DEVICE Pack without_sentinel(Pack p) {
  return {hn::Min(p.words, hn::Set(WordTag(), kLargestSent))};
}
FCCL_DEVICE bool arrived(Pack p) {
  return hn::AllFalse(WordTag(), hn::Eq(p.words, hn::Set(WordTag(), kSentinel)));
}
FCCL_DEVICE void pack_to_words(Pack p, uint32_t (&words)[kPackWords]) {
  hn::StoreU(p.words, WordTag(), words);
}
FCCL_DEVICE Pack pack_of_words(const uint32_t (&words)[kPackWords]) {
  return {hn::LoadU(WordTag(), words)};
}

// ---- fp32 arithmetic, element by element
#define FCCL_EACH_VECTOR(body)                    \
  Floats<N> r;                                    \
  for (int i = 0; i < Floats<N>::kVectors; ++i) { \
    body                                          \
  }                                               \
  return r;

template <int N>
FCCL_DEVICE Floats<N> operator+(Floats<N> a, Floats<N> b) {
  FCCL_EACH_VECTOR(r.v[i] = hn::Add(a.v[i], b.v[i]);)
}
template <int N>
FCCL_DEVICE Floats<N> operator*(Floats<N> a, Floats<N> b) {
  FCCL_EACH_VECTOR(r.v[i] = hn::Mul(a.v[i], b.v[i]);)
}
template <int N>
FCCL_DEVICE Floats<N> operator/(Floats<N> a, Floats<N> b) {
  FCCL_EACH_VECTOR(r.v[i] = hn::Div(a.v[i], b.v[i]);)
}
template <int N>
FCCL_DEVICE Floats<N> all_floats(float x) {
  FCCL_EACH_VECTOR(r.v[i] = hn::Set(typename Floats<N>::Tag(), x);)
}
// Larger and smaller of two: NaN if either is, +0 above -0.
template <int N>
FCCL_DEVICE Floats<N> larger(Floats<N> a, Floats<N> b) {
  FCCL_EACH_VECTOR(
      const auto same = hn::And(a.v[i], b.v[i]);
      const auto ordered = hn::IfThenElse(
          hn::Gt(b.v[i], a.v[i]), b.v[i], hn::IfThenElse(hn::Eq(a.v[i], b.v[i]), same, a.v[i]));
      r.v[i] = hn::IfThenElse(
          hn::IsNaN(b.v[i]), b.v[i], hn::IfThenElse(hn::IsNaN(a.v[i]), a.v[i], ordered));)
}
template <int N>
FCCL_DEVICE Floats<N> smaller(Floats<N> a, Floats<N> b) {
  FCCL_EACH_VECTOR(
      const auto same = hn::Or(a.v[i], b.v[i]);
      const auto ordered = hn::IfThenElse(
          hn::Lt(b.v[i], a.v[i]), b.v[i], hn::IfThenElse(hn::Eq(a.v[i], b.v[i]), same, a.v[i]));
      r.v[i] = hn::IfThenElse(
          hn::IsNaN(b.v[i]), b.v[i], hn::IfThenElse(hn::IsNaN(a.v[i]), a.v[i], ordered));)
}
#undef FCCL_EACH_VECTOR

// ---- scalar conversions, for the slow paths and levels without instructions
FCCL_DEVICE uint16_t f16_bits(float value) {
  uint32_t u;
  std::memcpy(&u, &value, 4);
  const uint32_t sign = (u >> 16) & 0x8000u;
  u &= 0x7FFFFFFFu;
  if (u > 0x7F800000u) return 0x7FFFu;
  if (u >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds to 65536 or more
  if (u < 0x38800000u) {  // below 2^-14: subnormal, in units of 2^-24
    if (u < 0x33000000u) return static_cast<uint16_t>(sign);  // below 2^-25
    const uint32_t mantissa = (u & 0x7FFFFFu) | 0x800000u;
    const uint32_t shift = 126u - (u >> 23);  // 14 to 24
    const uint32_t kept = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1u);
    const uint32_t half = 1u << (shift - 1u);
    return static_cast<uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1u)))));
  }
  const uint32_t rounded = u + 0xFFFu + ((u >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}
FCCL_DEVICE float f16_value(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  uint32_t mantissa = bits & 0x3FFu;
  uint32_t u;
  if (exponent == 31) {
    u = sign | 0x7F800000u | (mantissa << 13);
  } else if (exponent == 0) {
    float f = static_cast<float>(mantissa) * 0x1p-24f;
    std::memcpy(&u, &f, 4);
    u |= sign;
  } else {
    u = sign | ((exponent + 112u) << 23) | (mantissa << 13);
  }
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

// ---- pack <-> fp32
// The 16-bit elements of one fp32 vector: a whole pack where a vector has eight lanes, half of one
// where it has four.
template <int kVectors>
struct Halves;
template <>
struct Halves<1> {
  using Part = HalfTag;
  static FCCL_DEVICE auto get(hn::Vec<HalfTag> all, int) { return all; }
  static FCCL_DEVICE auto join(const hn::Vec<Part>* parts) { return parts[0]; }
};
template <>
struct Halves<2> {
  using Part = hn::Half<HalfTag>;
  static FCCL_DEVICE auto get(hn::Vec<HalfTag> all, int i) {
    return i == 0 ? hn::LowerHalf(Part(), all) : hn::UpperHalf(Part(), all);
  }
  static FCCL_DEVICE auto join(const hn::Vec<Part>* parts) {
    return hn::Combine(HalfTag(), parts[1], parts[0]);
  }
};

// The two 16-bit types differ in the conversion of one vector only.
template <class One>
struct ConvertHalf {
  using Vectors = Floats<kHalves>;
  using Parts = Halves<Vectors::kVectors>;
  static FCCL_DEVICE Vectors widen(Pack p) {
    Vectors r;
    const auto all = hn::BitCast(HalfTag(), p.words);
    for (int i = 0; i < Vectors::kVectors; ++i) r.v[i] = One::widen(Parts::get(all, i));
    return r;
  }
  static FCCL_DEVICE Pack narrow(Vectors x) {
    hn::Vec<typename Parts::Part> parts[Vectors::kVectors];
    for (int i = 0; i < Vectors::kVectors; ++i) parts[i] = One::narrow(x.v[i]);
    return {hn::BitCast(WordTag(), Parts::join(parts))};
  }
};
using HalfVector = Floats<kHalves>::Tag;
using HalfPart = Halves<Floats<kHalves>::kVectors>::Part;

struct OneBF16 {
  static FCCL_DEVICE hn::Vec<HalfVector> widen(hn::Vec<HalfPart> half) {
    const Floats<kHalves>::Bits d;
    return hn::BitCast(HalfVector(), hn::ShiftLeft<16>(hn::PromoteTo(d, half)));
  }
  static FCCL_DEVICE hn::Vec<HalfPart> narrow(hn::Vec<HalfVector> x) {
    const Floats<kHalves>::Bits d;
    const auto u = hn::BitCast(d, x);
    const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(u, hn::Set(d, 0x7FFFu)), odd));
    const auto kept = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), hn::Set(d, 0x7FFFu), rounded);
    return hn::DemoteTo(HalfPart(), hn::BitCast(hn::RebindToSigned<Floats<kHalves>::Bits>(), kept));
  }
};

struct OneF16 {
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64  // levels with conversion instructions
  using Float16 = hn::Rebind<hwy::float16_t, HalfVector>;
  static FCCL_DEVICE hn::Vec<HalfVector> widen(hn::Vec<HalfPart> half) {
    return hn::PromoteTo(HalfVector(), hn::BitCast(Float16(), half));
  }
  static FCCL_DEVICE hn::Vec<HalfPart> narrow(hn::Vec<HalfVector> x) {
    const auto bits = hn::BitCast(HalfPart(), hn::DemoteTo(Float16(), x));
    const auto magnitude = hn::And(bits, hn::Set(HalfPart(), 0x7FFFu));
    const auto nan = hn::Gt(magnitude, hn::Set(HalfPart(), 0x7C00u));
    return hn::IfThenElse(nan, hn::Set(HalfPart(), 0x7FFFu), bits);
  }
#else
  static constexpr int kLanes = Floats<kHalves>::kLanes;
  static FCCL_DEVICE hn::Vec<HalfVector> widen(hn::Vec<HalfPart> half) {
    uint16_t bits[kLanes];
    float x[kLanes];
    hn::StoreU(half, HalfPart(), bits);
    for (int i = 0; i < kLanes; ++i) x[i] = f16_value(bits[i]);
    return hn::LoadU(HalfVector(), x);
  }
  static FCCL_DEVICE hn::Vec<HalfPart> narrow(hn::Vec<HalfVector> v) {
    uint16_t bits[kLanes];
    float x[kLanes];
    hn::StoreU(v, HalfVector(), x);
    for (int i = 0; i < kLanes; ++i) bits[i] = f16_bits(x[i]);
    return hn::LoadU(HalfPart(), bits);
  }
#endif
};

struct ConvertF32 {
  using Vectors = Floats<kPackWords>;
  static_assert(Vectors::kVectors == 1);
  static FCCL_DEVICE Vectors widen(Pack p) { return {{hn::BitCast(Vectors::Tag(), p.words)}}; }
  static FCCL_DEVICE Pack narrow(Vectors x) {
    const auto nan = hn::BitCast(Vectors::Tag(), hn::Set(Vectors::Bits(), 0x7FFFFFFFu));
    return {hn::BitCast(WordTag(), hn::IfThenElse(hn::IsNaN(x.v[0]), nan, x.v[0]))};
  }
};

template <class T>
struct ConvertOf;
template <>
struct ConvertOf<F32> {
  using Type = ConvertF32;
};
template <>
struct ConvertOf<F16> {
  using Type = ConvertHalf<OneF16>;
};
template <>
struct ConvertOf<BF16> {
  using Type = ConvertHalf<OneBF16>;
};

template <class T>
FCCL_DEVICE auto to_floats(Pack p) {
  return ConvertOf<T>::Type::widen(p);
}
template <class T>
FCCL_DEVICE Pack to_pack(Floats<kElements<T>> x) {
  return ConvertOf<T>::Type::narrow(x);
}

// Elements p*N .. of an fp32 row, for weights that are fp32 whatever the tensor is.
template <int N>
FCCL_DEVICE Floats<N> load_floats(const float* x) {
  Floats<N> r;
  for (int i = 0; i < Floats<N>::kVectors; ++i)
    r.v[i] = hn::LoadU(typename Floats<N>::Tag(), x + i * Floats<N>::kLanes);
  return r;
}

}  // namespace fccl::FCCL_TARGET
