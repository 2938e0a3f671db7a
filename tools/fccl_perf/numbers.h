// The three element types as numbers: exact widening, one rounding to nearest even from double, and
// distances in ulps. The check uses nothing of the library, so these are written out here.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <fccl/fccl.h>

namespace perf {

inline float widen_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline float widen_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float value = std::ldexp(static_cast<float>(fraction), -24);
  return sign != 0 ? -value : value;
}

// `value` rounded once to a format with `fraction_bits` and smallest normal exponent `least`;
// largest finite exponent `most`. Overflow gives infinity.
inline double round_to(double value, int fraction_bits, int least, int most) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m * 2^exponent with 0.5 <= |m| < 1
  const int ulp = (exponent - 1 < least ? least : exponent - 1) - fraction_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -ulp)), ulp);
  const double limit = std::ldexp(2.0 - std::ldexp(1.0, -fraction_bits), most);
  return std::fabs(rounded) > limit ? std::copysign(HUGE_VAL, value) : rounded;
}

struct NumberFormat {
  int fraction_bits;
  int least;
  int most;
};

inline NumberFormat number_format(int datatype) {
  if (datatype == fcclFloat32) return {23, -126, 127};
  if (datatype == fcclFloat16) return {10, -14, 15};
  return {7, -126, 127};
}

inline double round_to_type(double value, int datatype) {
  if (datatype == fcclFloat32) return static_cast<double>(static_cast<float>(value));
  const NumberFormat format = number_format(datatype);
  return round_to(value, format.fraction_bits, format.least, format.most);
}

// Stores `value`, which must be representable (or NaN, stored as the canonical one).
inline void store_number(void* base, int64_t index, int datatype, double value) {
  if (datatype == fcclFloat32) {
    const uint32_t bits =
        std::isnan(value) ? 0x7fffffffu : std::bit_cast<uint32_t>(static_cast<float>(value));
    std::memcpy(static_cast<char*>(base) + index * 4, &bits, 4);
    return;
  }
  uint16_t bits = 0x7fff;
  if (!std::isnan(value)) {
    if (datatype == fcclBfloat16) {
      bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
    } else {
      const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
      const double size = std::fabs(value);
      if (std::isinf(size)) {
        bits = 0x7c00;
      } else if (size < std::ldexp(1.0, -14)) {
        bits = static_cast<uint16_t>(std::ldexp(size, 24));
      } else {
        const int exponent = std::ilogb(size);
        bits = static_cast<uint16_t>(((exponent + 15) << 10) |
                                     (static_cast<int>(std::ldexp(size, 10 - exponent)) & 0x3ff));
      }
      bits = static_cast<uint16_t>(bits | sign);
    }
  }
  std::memcpy(static_cast<char*>(base) + index * 2, &bits, 2);
}

inline uint32_t load_bits(const void* base, int64_t index, int datatype) {
  if (datatype == fcclFloat32) {
    uint32_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(base) + index * 4, 4);
    return bits;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(base) + index * 2, 2);
  return bits;
}

inline double bits_to_number(uint32_t bits, int datatype) {
  if (datatype == fcclFloat32) return std::bit_cast<float>(bits);
  const auto half = static_cast<uint16_t>(bits);
  return datatype == fcclFloat16 ? widen_f16(half) : widen_bf16(half);
}

// Distance of `actual`, a number of the type, from the real number `truth`, in units of the last
// place of truth. Infinite if only one of them is infinite, or signs of infinities differ.
inline double ulp_distance(double actual, double truth, int datatype) {
  if (actual == truth) return 0;
  if (!std::isfinite(actual) || !std::isfinite(truth)) return HUGE_VAL;
  const NumberFormat format = number_format(datatype);
  const int exponent = truth == 0 ? format.least : std::max(std::ilogb(truth), format.least);
  return std::fabs(actual - truth) / std::ldexp(1.0, exponent - format.fraction_bits);
}

}  // namespace perf
