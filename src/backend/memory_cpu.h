// CPU windows: plain memory between threads, sealed memfds between processes. Nothing has a name in
// any file system, so nothing is left behind however the process ends.
#pragma once
#include <memory>

#include "backend/backend.h"

namespace fccl {

constexpr uint64_t kCpuGranule = 4096;

Result<std::shared_ptr<Allocation>> allocate_plain(uint64_t bytes, bool huge_pages);
Result<std::shared_ptr<Allocation>> allocate_memfd(uint64_t bytes, bool huge_pages);
// InvalidArgument if the allocation is no memfd.
Result<Export> export_memfd(const Allocation& memory);
// Refuses a descriptor that is not a memfd of exactly `bytes`, sealed against shrinking: a peer
// that could truncate it could kill this process with SIGBUS.
Result<std::unique_ptr<Mapping>> import_memfd(Export& from, uint64_t bytes);

}  // namespace fccl
