// The table of one level's CPU kernels, found by the backend as fccl::<level>::find_cpu_kernel.
#include "device/entry/cpu_instances.h"

namespace fccl::FCCL_TARGET {

CpuKernel find_cpu_kernel(const KernelId& id, int ranks) {
  const bool norm = id.op == OpKind::FusedNorm;
  switch (id.type) {
    case TypeKind::F32:
      return norm ? find_norm_f32(id, ranks) : find_collective_f32(id, ranks);
    case TypeKind::F16:
      return norm ? find_norm_f16(id, ranks) : find_collective_f16(id, ranks);
    case TypeKind::BF16:
      return norm ? find_norm_bf16(id, ranks) : find_collective_bf16(id, ranks);
  }
  return nullptr;
}

}  // namespace fccl::FCCL_TARGET
