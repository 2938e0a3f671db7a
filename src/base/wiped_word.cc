#include "base/wiped_word.h"

#include <sys/mman.h>

#include <new>

namespace fccl {

std::atomic<uint64_t>* make_wiped_word() {
  const size_t bytes = sizeof(std::atomic<uint64_t>);
  void* page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, bytes, MADV_WIPEONFORK) == 0) return new (page) std::atomic<uint64_t>(0);
  ::munmap(page, bytes);
  return nullptr;
}

}  // namespace fccl
