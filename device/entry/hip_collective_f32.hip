// The plain collectives of one type.
#define FCCL_HIP_PACKS 0
#include "device/entry/hip_instances.h"

namespace fccl::FCCL_TARGET {
HipKernel find_collective_f32(const KernelId& id) {
  return find_collective_of_type<F32>(id);
}
}  // namespace fccl::FCCL_TARGET
