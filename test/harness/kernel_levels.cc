// See kernel_levels.h. A level is built if the build system says FCCL_HAVE_CPU_<level>.
#include "harness/kernel_levels.h"

#include "topology/detect.h"

namespace fccl {

#define FCCL_DECLARE_LEVEL(level)                           \
  namespace level {                                         \
  CpuKernel find_cpu_kernel(const KernelId& id, int ranks); \
  }
#if defined(FCCL_HAVE_CPU_scalar)
FCCL_DECLARE_LEVEL(scalar)
#endif
#if defined(FCCL_HAVE_CPU_neon)
FCCL_DECLARE_LEVEL(neon)
#endif
#if defined(FCCL_HAVE_CPU_v2)
FCCL_DECLARE_LEVEL(v2)
#endif
#if defined(FCCL_HAVE_CPU_v3)
FCCL_DECLARE_LEVEL(v3)
#endif
#if defined(FCCL_HAVE_CPU_v4)
FCCL_DECLARE_LEVEL(v4)
#endif
#undef FCCL_DECLARE_LEVEL

namespace test {

const std::vector<KernelLevel>& kernel_levels() {
  static const std::vector<KernelLevel> levels = [] {
    std::vector<KernelLevel> found;
    [[maybe_unused]] const CpuLevel best = detect_cpu_level();
#if defined(FCCL_HAVE_CPU_scalar)
    found.push_back({"scalar", scalar::find_cpu_kernel});
#endif
#if defined(FCCL_HAVE_CPU_neon)
    if (best >= CpuLevel::Neon) found.push_back({"neon", neon::find_cpu_kernel});
#endif
#if defined(FCCL_HAVE_CPU_v2)
    if (best >= CpuLevel::V2) found.push_back({"v2", v2::find_cpu_kernel});
#endif
#if defined(FCCL_HAVE_CPU_v3)
    if (best >= CpuLevel::V3) found.push_back({"v3", v3::find_cpu_kernel});
#endif
#if defined(FCCL_HAVE_CPU_v4)
    if (best >= CpuLevel::V4) found.push_back({"v4", v4::find_cpu_kernel});
#endif
    return found;
  }();
  return levels;
}

}  // namespace test
}  // namespace fccl
