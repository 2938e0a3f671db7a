// Windows of GPU ranks. First choice: physical memory by cuMemCreate, shared between processes as a
// descriptor and between threads by granting access to the other device on the same addresses
// (never by cudaDeviceEnablePeerAccess, which changes the whole process). Second choice: cudaMalloc
// with IPC handles; such memory, once exported, is not freed before the process ends, because an
// importer that still stores into it cannot be told from one that is done. It is counted.
#pragma once
#include "backend/cuda/device.h"

namespace fccl {

Result<std::shared_ptr<Allocation>> allocate_device(const CudaDevice& device, uint64_t bytes,
                                                    uint32_t memory_kind);
Result<Export> export_device(const Allocation& memory);
Result<std::unique_ptr<Mapping>> import_device(const CudaDevice& device, Export& from,
                                               uint64_t bytes, uint32_t memory_kind);
Result<std::unique_ptr<Mapping>> map_local_device(const CudaDevice& device,
                                                  const std::shared_ptr<Allocation>& memory);

}  // namespace fccl
