// The fused kernels of one type, 2 pack(s) of a row per thread.
#define FCCL_HIP_PACKS 2
#include "device/entry/hip_instances.h"

namespace fccl::FCCL_TARGET {
HipKernel find_norm_f32(const KernelId& id, int ranks) {
  return find_held_norm<F32>(id, ranks);
}
}  // namespace fccl::FCCL_TARGET
