// Memory of the caller's that belongs to a communicator: fcclMemAlloc, and windows over it that
// peers map. Freed by the caller or with the communicator.
#pragma once
#include <fccl/fccl.h>

#include <map>
#include <memory>

#include "backend/backend.h"
#include "memory/windows.h"

namespace fccl {

class UserMemory {
 public:
  Result<void*> allocate(DeviceContext& context, uint64_t bytes, uint32_t memory_kind);
  Status free(void* ptr);
  // Collective; every rank gives memory of fcclMemAlloc, of one size.
  Result<fcclWindow_t> register_window(const WindowArgs& args, void* ptr, uint64_t bytes,
                                       const Limit& limit);
  Result<void*> peer(fcclWindow_t window, int rank, int ranks) const;
  Status deregister(fcclWindow_t window);
  uint64_t window_bytes() const;

 private:
  std::map<void*, std::shared_ptr<Allocation>> allocations_;
  std::map<uintptr_t, std::shared_ptr<Window>> windows_;
  uintptr_t last_ = 0;
};

}  // namespace fccl
