// The plain collectives of one type, at one instruction-set level.
#include "device/entry/cpu_instances.h"

namespace fccl::FCCL_TARGET {
CpuKernel find_collective_bf16(const KernelId& id, int ranks) {
  return find_collective_of_type<BF16>(id, ranks);
}
}  // namespace fccl::FCCL_TARGET
