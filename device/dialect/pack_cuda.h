// Arithmetic of the CUDA target. Compiled with -fmad=false; the intrinsics below say which
// roundings happen. cvt.rn of a NaN gives the canonical NaN of bf16 and f16; f32 selects it
// (pack_gpu.h).
#pragma once
#include "device/dialect/target_cuda.h"
#include "device/types/number.h"

namespace fccl::FCCL_TARGET {

FCCL_DEVICE uint32_t smaller_word(uint32_t a, uint32_t b) {
  return min(a, b);
}
FCCL_DEVICE uint32_t larger_word(uint32_t a, uint32_t b) {
  return max(a, b);
}

FCCL_DEVICE float add_once(float x, float y) {
  return __fadd_rn(x, y);
}
FCCL_DEVICE float multiply_once(float x, float y) {
  return __fmul_rn(x, y);
}
FCCL_DEVICE float divide_once(float x, float y) {
  return __fdiv_rn(x, y);
}
FCCL_DEVICE float fused_multiply_add(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
// 1 / sqrt, rounded once.
FCCL_DEVICE float inverse_sqrt(float x) {
  return __frsqrt_rn(x);
}
FCCL_DEVICE uint32_t float_bits(float x) {
  return __float_as_uint(x);
}
FCCL_DEVICE float float_of_bits(uint32_t u) {
  return __uint_as_float(u);
}

// Two elements of a word, the low one first.
FCCL_DEVICE void widen_f16(uint32_t word, float& low, float& high) {
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
      : "=f"(low), "=f"(high)
      : "r"(word));
}
FCCL_DEVICE uint32_t narrow_bf16(float low, float high) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
FCCL_DEVICE uint32_t narrow_f16(float low, float high) {
  uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

}  // namespace fccl::FCCL_TARGET

#include "device/dialect/pack_gpu.h"
