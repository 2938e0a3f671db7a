// Which of the compiled levels of the CPU kernels may run here. v3 and v4 also ask for AES and
// PCLMUL, which Highway's targets of those levels assume. The compiler's run-time checks include
// the system's part (saved registers).
#include "topology/detect.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fccl {

#if defined(__x86_64__)
// What __builtin_cpu_supports cannot name in every compiler.
static bool has_f16c_movbe_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  const bool f16c = (c >> 29 & 1) != 0, movbe = (c >> 22 & 1) != 0;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) == 0) return false;
  return f16c && movbe && (c >> 5 & 1) != 0;
}

CpuLevel detect_cpu_level() {
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") &&
                  __builtin_cpu_supports("popcnt");
  if (!v2) return CpuLevel::Scalar;
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul") &&
                  has_f16c_movbe_lzcnt();
  if (!v3) return CpuLevel::V2;
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512cd");
  return v4 ? CpuLevel::V4 : CpuLevel::V3;
}
#elif defined(__aarch64__)
CpuLevel detect_cpu_level() {
  return CpuLevel::Neon;
}  // part of the architecture
#else
CpuLevel detect_cpu_level() {
  return CpuLevel::Scalar;
}
#endif

Result<CpuLevel> cpu_level_of(const Config& config) {
  const CpuLevel found = detect_cpu_level();
  if (config.cpu_level.empty()) return found;
  CpuLevel asked = CpuLevel::Scalar;
  bool known = false;
  for (CpuLevel level :
       {CpuLevel::Scalar, CpuLevel::Neon, CpuLevel::V2, CpuLevel::V3, CpuLevel::V4}) {
    if (config.cpu_level == cpu_level_name(level)) {
      asked = level;
      known = true;
    }
  }
#if defined(__aarch64__)
  known = known && asked <= CpuLevel::Neon;
#else
  known = known && asked != CpuLevel::Neon;
#endif
  if (!known) {
    return error(Code::InvalidArgument,
                 "FCCL_CPU_LEVEL=%.32s is no level of this architecture; this CPU has %s",
                 config.cpu_level.c_str(),
                 cpu_level_name(found));
  }
  return asked < found ? asked : found;
}

}  // namespace fccl
