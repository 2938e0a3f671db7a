// The floating-point environment of a kernel: that of the caller is saved, set to the IEEE default
// (round to nearest, subnormals live, no traps) and restored.
#pragma once
#include <cstdint>

#include "device/dialect/target_cpu.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fccl::FCCL_TARGET {

class DefaultRounding {
 public:
#if defined(__x86_64__)
  DefaultRounding() : saved_(_mm_getcsr()) {
    _mm_setcsr(0x1F80);
  }
  ~DefaultRounding() {
    _mm_setcsr(saved_);
  }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  DefaultRounding() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
  }
  ~DefaultRounding() {
    asm volatile("msr fpcr, %0" ::"r"(saved_));
  }

 private:
  uint64_t saved_;
#endif
};

}  // namespace fccl::FCCL_TARGET
