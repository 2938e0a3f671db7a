// The fused kernels of one type, at one instruction-set level.
#include "device/entry/cpu_instances.h"

namespace fccl::FCCL_TARGET {
CpuKernel find_norm_f32(const KernelId& id, int ranks) {
  return find_norm_of_type<F32>(id, ranks);
}
}  // namespace fccl::FCCL_TARGET
