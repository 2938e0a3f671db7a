// Shapes of a block that the kernels of all GPUs are made for, and the hosts that launch them.
#pragma once
#include <cstddef>

namespace fccl {

// Threads of a block that streams long rows.
constexpr int kStreamThreads = 512;
constexpr int kMostHeldPacks = 4;

// More packs, and more ranks to poll, take more registers than 1024 threads can have.
constexpr int held_max_threads(int packs, int ranks) {
  return packs == 1 && ranks <= 2 ? 1024 : 512;
}

// Dynamic shared memory of an instance that streams: a float per pack, and those of the levels
// above.
constexpr size_t stream_shared_bytes(int packs) {
  size_t floats = 0;
  int count = packs;
  do {
    floats += static_cast<size_t>(count);
    count = (count + 31) / 32;
  } while (count > 1);
  return (floats + 1) * sizeof(float);
}

}  // namespace fccl
