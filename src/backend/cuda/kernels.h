// The kernels of one device: loaded before anything is captured, how many of their blocks fit, and
// what of its layout (cuda_shape) a launch may have here. The layout is a local choice: ranks may
// run different grids.
//
// HOW MANY BLOCKS. A grid must be resident as a whole (PROTOCOL section 3). A communicator that is
// alone on the device takes what cuda_shape says. As soon as several communicators of this process,
// or several ranks, share the device, each takes its share of the blocks that fit, in blocks of at
// most half an SM in every resource, so that a kernel of one never keeps out those of another.
#pragma once
#include <map>
#include <mutex>
#include <unordered_map>

#include "backend/cuda/device.h"
#include "device/entry/cuda_entry.h"

namespace fccl {

class KernelBook {
 public:
  explicit KernelBook(const CudaDevice& device) : device_(device) {}

  // Loads what a communicator of `ranks` may launch, and `others`. Once per device and count.
  Status load(int ranks);
  // `sharers`: communicators and ranks that share the device.
  Result<CudaShape> shape_of(const Launch& launch, int sharers);
  LaunchLimits limits() const;

 private:
  struct Loaded {
    int static_shared = 0;
    std::map<std::pair<int, size_t>, int> per_sm;  // by threads and shared bytes
  };
  Status load_one(const void* entry, bool streams);
  // Blocks of one SM.
  Result<int> resident(const void* entry, int threads, size_t shared);
  Result<int> most_blocks(const CudaShape& shape, int sharers);

  const CudaDevice& device_;
  std::mutex mutex_;
  std::unordered_map<const void*, Loaded> loaded_;
  uint32_t ranks_loaded_ = 0;  // bit per count
};

}  // namespace fccl
