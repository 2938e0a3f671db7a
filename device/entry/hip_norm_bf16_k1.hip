// The fused kernels of one type, 1 pack(s) of a row per thread.
#define FCCL_HIP_PACKS 1
#include "device/entry/hip_instances.h"

namespace fccl::FCCL_TARGET {
HipKernel find_norm_bf16(const KernelId& id, int ranks) {
  return find_held_norm<BF16>(id, ranks);
}
}  // namespace fccl::FCCL_TARGET
