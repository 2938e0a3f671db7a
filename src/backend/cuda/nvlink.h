// Links between GPUs as NVML tells them, by dlopen (a host without it has no links to tell). Asked
// once per process and device; makes no CUDA context.
#pragma once
#include "topology/facts.h"

namespace fccl {

// Fills links and fabric of the device with `device->pci`. Why there is nothing to tell, or "".
std::string add_links(DeviceFacts* device);

}  // namespace fccl
