// See number.h. A finite value x lies at integer multiples of a power of two, its unit in the last
// place; x / unit is exact in double, so one nearbyint() is one correct rounding.
#include "harness/number.h"

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

namespace fccl::test {
namespace {

struct Format {
  int precision;  // bits of the significand, the hidden one included
  int min_exponent;  // of the smallest normal number
  int max_exponent;
};

constexpr Format format_of(TypeKind type) {
  return type == TypeKind::F32   ? Format{24, -126, 127}
         : type == TypeKind::F16 ? Format{11, -14, 15}
                                 : Format{8, -126, 127};
}

// Exponent of the unit in the last place of a finite value.
int unit_exponent(const Format& format, double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const int top =
      value == 0 || exponent - 1 < format.min_exponent ? format.min_exponent : exponent - 1;
  return top - (format.precision - 1);
}

float decode_16(const Format& format, uint32_t bits) {
  const int fraction_bits = format.precision - 1;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1u);
  const int exponent = static_cast<int>((bits & 0x7FFFu) >> fraction_bits);
  const int special = format.max_exponent - format.min_exponent + 2;
  double value = 0;
  if (exponent == special) {
    value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, format.min_exponent - fraction_bits);
  } else {
    value = std::ldexp(fraction + (1u << fraction_bits),
                       exponent - 1 + format.min_exponent - fraction_bits);
  }
  return static_cast<float>((bits & 0x8000u) != 0 ? -value : value);
}

struct Table {
  explicit Table(TypeKind type) {
    for (uint32_t bits = 0; bits < 65536; ++bits) values[bits] = decode_16(format_of(type), bits);
  }
  float values[65536];
};

}  // namespace

const char* type_name(TypeKind type) {
  return type == TypeKind::F32 ? "f32" : type == TypeKind::F16 ? "f16" : "bf16";
}

float value_of(TypeKind type, uint32_t bits) {
  if (type == TypeKind::F32) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static const Table f16(TypeKind::F16);
  static const Table bf16(TypeKind::BF16);
  return (type == TypeKind::F16 ? f16 : bf16).values[bits & 0xFFFFu];
}

uint32_t rounded_bits(TypeKind type, double value) {
  const Format format = format_of(type);
  const bool wide = type == TypeKind::F32;
  if (std::isnan(value)) return wide ? 0x7FFFFFFFu : 0x7FFFu;
  const uint32_t sign = std::signbit(value) ? (wide ? 0x80000000u : 0x8000u) : 0u;
  const int fraction_bits = format.precision - 1;
  const uint32_t infinity = static_cast<uint32_t>(format.max_exponent - format.min_exponent + 2)
                            << fraction_bits;
  if (std::isinf(value)) return sign | infinity;
  const double magnitude = std::fabs(value);
  const int unit = unit_exponent(format, magnitude);
  const double steps = std::nearbyint(std::ldexp(magnitude, -unit));
  // The hidden bit of a normal number carries into the exponent field.
  const uint64_t exponent = static_cast<uint64_t>(unit + fraction_bits - format.min_exponent);
  const uint64_t bits = (exponent << fraction_bits) + static_cast<uint64_t>(steps);
  return sign | (bits >= infinity ? infinity : static_cast<uint32_t>(bits));
}

bool is_nan(TypeKind type, uint32_t bits) {
  return std::isnan(value_of(type, bits));
}

double unit_of(TypeKind type, double value) {
  return std::ldexp(1.0, unit_exponent(format_of(type), value));
}

double ulps_apart(TypeKind type, float got, double exact) {
  if (std::isnan(got) && std::isnan(exact)) return 0;
  // Beyond the largest finite number by half a unit: the format's answer is infinity.
  const float nearest = value_of(type, rounded_bits(type, exact));
  if (std::isinf(got) && got == nearest) return 0;
  if (!std::isfinite(got) || !std::isfinite(exact)) return std::numeric_limits<double>::infinity();
  return std::fabs(static_cast<double>(got) - exact) / unit_of(type, exact);
}

uint64_t mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t x = 0x243F6A8885A308D3u;
  for (const uint64_t word : {a, b, c, d}) {
    x = (x ^ word) * 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
  }
  return x;
}

double unit_interval(uint64_t word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

}  // namespace fccl::test
