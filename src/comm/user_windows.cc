#include "comm/user_windows.h"

namespace fccl {

Result<void*> UserMemory::allocate(DeviceContext& context, uint64_t bytes, uint32_t memory_kind) {
  if (bytes == 0) return error(Code::InvalidArgument, "bytes is 0");
  FCCL_TRY_ASSIGN(memory, context.allocate(bytes, memory_kind));
  void* ptr = memory->ptr;
  allocations_[ptr] = memory;
  return ptr;
}

Status UserMemory::free(void* ptr) {
  if (ptr == nullptr) return {};
  if (allocations_.erase(ptr) == 0)
    return error(Code::InvalidArgument, "ptr does not come from fcclMemAlloc of this communicator");
  return {};
}

Result<fcclWindow_t> UserMemory::register_window(const WindowArgs& base, void* ptr, uint64_t bytes,
                                                 const Limit& limit) {
  const auto it = allocations_.find(ptr);
  Status mine;
  if (it == allocations_.end())
    mine = error(Code::InvalidArgument, "ptr does not come from fcclMemAlloc of this communicator");
  else if (bytes == 0 || bytes > it->second->bytes)
    mine = error(Code::InvalidArgument,
                 "bytes is %llu; the allocation has %llu",
                 static_cast<unsigned long long>(bytes),
                 static_cast<unsigned long long>(it->second->bytes));
  // The vote comes first, so that a wrong pointer on one rank does not leave the others waiting.
  FCCL_TRY(base.group->vote(mine, limit, "window.register"));
  WindowArgs args = base;
  args.own = it->second;
  FCCL_TRY_ASSIGN(window, make_window(args, limit));
  windows_[++last_] = window;
  return reinterpret_cast<fcclWindow_t>(last_);
}

Result<void*> UserMemory::peer(fcclWindow_t window, int rank, int ranks) const {
  const auto it = windows_.find(reinterpret_cast<uintptr_t>(window));
  if (it == windows_.end())
    return error(Code::InvalidArgument, "window is not registered with this communicator");
  if (rank < 0 || rank >= ranks)
    return error(Code::InvalidArgument, "peer is %d; allowed: 0 to %d", rank, ranks - 1);
  return static_cast<void*>(it->second->at(rank));
}

Status UserMemory::deregister(fcclWindow_t window) {
  if (windows_.erase(reinterpret_cast<uintptr_t>(window)) == 0)
    return error(Code::InvalidArgument, "window is not registered with this communicator");
  return {};
}

uint64_t UserMemory::window_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, window] : windows_) bytes += window->bytes();
  return bytes;
}

}  // namespace fccl
