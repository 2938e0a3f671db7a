// The fused kernels of one type, rows of any length.
#define FCCL_HIP_PACKS 0
#include "device/entry/hip_instances.h"

namespace fccl::FCCL_TARGET {
HipKernel find_norm_f32(const KernelId& id, int ranks) {
  return find_streamed_norm<F32>(id, ranks);
}
}  // namespace fccl::FCCL_TARGET
