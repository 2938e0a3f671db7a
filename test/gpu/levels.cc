// The CPU kernels of this program: one level, which every host of a GPU of today has.
#include "harness/kernel_levels.h"

namespace fccl {
namespace v3 {
CpuKernel find_cpu_kernel(const KernelId& id, int ranks);
}

namespace test {

const std::vector<KernelLevel>& kernel_levels() {
  static const std::vector<KernelLevel> levels{{"v3", v3::find_cpu_kernel}};
  return levels;
}

}  // namespace test
}  // namespace fccl
