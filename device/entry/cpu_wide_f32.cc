// Kernels of one type in wide packs, at one instruction-set level.
#include "device/entry/cpu_wide_instances.h"

#if FCCL_WIDE_PACK_BYTES > 16
namespace fccl::FCCL_TARGET {
FCCL_WIDE_KERNELS(F32)
}  // namespace fccl::FCCL_TARGET
#endif
