// A word that the kernel sets back to 0 in a child after fork, so that a process knows itself by
// what it wrote there: its id does not do, a child in a namespace of its own may get the parent's.
#pragma once
#include <atomic>
#include <cstdint>

namespace fccl {

// A new one, never freed; null where the kernel cannot do that.
std::atomic<uint64_t>* make_wiped_word();

}  // namespace fccl
