// Arithmetic of the HIP target. Compiled with -ffp-contract=off and without fast math: +, * and /
// round once each, subnormals live (the kernel's default mode). The conversions to bf16 are integer
// arithmetic on every GPU, so that gfx950, which has an instruction for them, gives the bits of
// gfx942, which has none; a NaN becomes the canonical one by selection.
#pragma once
#include "device/dialect/target_hip.h"
#include "device/types/number.h"

namespace fccl::FCCL_TARGET {

FCCL_DEVICE uint32_t smaller_word(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}
FCCL_DEVICE uint32_t larger_word(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

FCCL_DEVICE float add_once(float x, float y) {
  return x + y;
}
FCCL_DEVICE float multiply_once(float x, float y) {
  return x * y;
}
FCCL_DEVICE float divide_once(float x, float y) {
  return x / y;
}
FCCL_DEVICE float fused_multiply_add(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
// 1 / sqrt, rounded once: the fp64 quotient is exact enough that its rounding is the only one (no
// fp32 value differs from the correctly rounded result).
FCCL_DEVICE float inverse_sqrt(float x) {
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
}
FCCL_DEVICE uint32_t float_bits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
FCCL_DEVICE float float_of_bits(uint32_t u) {
  return __builtin_bit_cast(float, u);
}

// Two elements of a word, the low one first.
FCCL_DEVICE float float_of_f16(uint32_t half) {
  return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<uint16_t>(half)));
}
FCCL_DEVICE void widen_f16(uint32_t word, float& low, float& high) {
  low = float_of_f16(word & 0xFFFFu);
  high = float_of_f16(word >> 16);
}
// In the upper half of the word; the lower one is of no meaning.
FCCL_DEVICE uint32_t rounded_bf16(float x) {
  const uint32_t u = float_bits(x);
  return x != x ? 0x7FFFFFFFu : u + 0x7FFFu + (u >> 16 & 1u);
}
FCCL_DEVICE uint32_t narrow_bf16(float low, float high) {
  return rounded_bf16(low) >> 16 | (rounded_bf16(high) & 0xFFFF0000u);
}
FCCL_DEVICE uint32_t rounded_f16(float x) {
  const uint32_t bits = __builtin_bit_cast(uint16_t, static_cast<_Float16>(x));
  return x != x ? 0x7FFFu : bits;
}
FCCL_DEVICE uint32_t narrow_f16(float low, float high) {
  return rounded_f16(low) | rounded_f16(high) << 16;
}

}  // namespace fccl::FCCL_TARGET

#include "device/dialect/pack_gpu.h"
