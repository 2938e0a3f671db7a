#include "backend/memory_cpu.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "topology/detect.h"

namespace fccl {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

class Mapped : public Allocation {
 public:
  ~Mapped() override {
    if (ptr != nullptr) munmap(ptr, bytes);
  }
  UniqueFd fd;  // invalid: plain memory
};

class ImportedMemfd : public Mapping {
 public:
  ~ImportedMemfd() override {
    if (ptr != nullptr) munmap(ptr, bytes);
  }
  uint64_t bytes = 0;
};

Status out_of_memory(uint64_t bytes, const char* step, int code) {
  char text[128];
  return error(
      Code::OutOfResources,
      "%s of %llu bytes for a window: %s; free memory, raise the memory limit of the "
      "container, or ask for a smaller workspace (config.max_tokens, FCCL_WORKSPACE_BYTES)",
      step,
      static_cast<unsigned long long>(bytes),
      strerror_r(code, text, sizeof text));
}

// Places the pages near this thread before they are touched; both are preferences.
void prefer(void* memory, uint64_t bytes, bool huge_pages) {
  if (huge_pages) madvise(memory, bytes, MADV_HUGEPAGE);
  const Status placed = bind_memory(memory, bytes, numa_node_of_current_thread());
  if (!placed.ok()) FCCL_LOG(Info, kLogMemory, "%s", placed.text().c_str());
}

Result<std::shared_ptr<Allocation>> map_fd(UniqueFd fd, uint64_t bytes, bool huge_pages) {
  auto memory = std::make_shared<Mapped>();
  const int flags = fd.valid() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd.get(), 0);
  if (at == MAP_FAILED) return out_of_memory(bytes, "mmap", errno);
  memory->ptr = static_cast<char*>(at);
  memory->bytes = bytes;
  prefer(at, bytes, huge_pages);
  // Reserves the pages now: a later shortage would be a SIGBUS in the middle of a call.
  if (fd.valid() && fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0)
    return out_of_memory(bytes, "fallocate", errno);
  memory->fd = std::move(fd);
  return std::shared_ptr<Allocation>(std::move(memory));
}

}  // namespace

Result<std::shared_ptr<Allocation>> allocate_plain(uint64_t bytes, bool huge_pages) {
  return map_fd(UniqueFd(), round_up(bytes, kCpuGranule), huge_pages);
}

Result<std::shared_ptr<Allocation>> allocate_memfd(uint64_t bytes, bool huge_pages) {
  bytes = round_up(bytes, kCpuGranule);
  UniqueFd fd(memfd_create("fccl-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return errno_error("memfd_create for a window");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return out_of_memory(bytes, "ftruncate", errno);
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    return errno_error("sealing the memfd of a window");
  return map_fd(std::move(fd), bytes, huge_pages);
}

Result<Export> export_memfd(const Allocation& memory) {
  const auto* mapped = dynamic_cast<const Mapped*>(&memory);
  if (mapped == nullptr || !mapped->fd.valid())
    return error(Code::InvalidArgument, "this memory has no descriptor to share");
  Export out;
  out.fd.reset(fcntl(mapped->fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!out.fd.valid()) return errno_error("dup of a window's descriptor");
  return out;
}

Result<std::unique_ptr<Mapping>> import_memfd(Export& from, uint64_t bytes) {
  if (!from.fd.valid())
    return error(Code::RemoteError, "the peer sent no descriptor of its window");
  bytes = round_up(bytes, kCpuGranule);
  const int seals = fcntl(from.fd.get(), F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(from.fd.get(), &info) != 0 ||
      !S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) != bytes)
    return error(Code::RemoteError,
                 "the peer's descriptor is no sealed memfd of %llu bytes",
                 static_cast<unsigned long long>(bytes));
  auto mapping = std::make_unique<ImportedMemfd>();
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, from.fd.get(), 0);
  if (at == MAP_FAILED) return out_of_memory(bytes, "mmap of a peer's window", errno);
  mapping->ptr = static_cast<char*>(at);
  mapping->bytes = bytes;
  return std::unique_ptr<Mapping>(std::move(mapping));
}

}  // namespace fccl
