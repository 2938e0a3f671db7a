// Ranks of the CUDA kernels without a communicator: a window per rank, armed as the protocol says,
// a stream and host words per rank, rank r on device r % devices. All launches are issued from the
// calling thread; a kernel ends by itself after limit_ms, and so does every wait here.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device/entry/cuda_entry.h"
#include "device/layout/workspace.h"

namespace fccl::test {

// Ends the program with the place: nothing sensible can follow a failed CUDA call.
void check_cuda(cudaError_t result, const char* what, const char* file, int line);
#define CHECK_CUDA(call) ::fccl::test::check_cuda((call), #call, __FILE__, __LINE__)

struct GpuOptions {
  int ranks = 2;
  int devices = 1;
  uint64_t slot_bytes = 1 << 16;  // that one sender may push in one launch
  uint64_t start_epoch = 1;
  int64_t limit_ms = 4000;
};

// How one kernel is launched.
struct GpuShape {
  int blocks = 1;
  int threads = 512;
  int packs = 1;  // per thread; 0: any row
  bool dependent = false;  // programmatic dependent launch
};

class GpuWorld {
 public:
  explicit GpuWorld(const GpuOptions& options);
  ~GpuWorld();
  GpuWorld(const GpuWorld&) = delete;
  GpuWorld& operator=(const GpuWorld&) = delete;

  int ranks() const { return options_.ranks; }
  int device(int rank) const { return rank % options_.devices; }
  int ranks_per_device() const { return (ranks() + options_.devices - 1) / options_.devices; }
  // May kernels be dependent launches? Not where ranks share a device, as in the product, unless
  // FCCL_TEST_SHARED_PDL says so: then each takes half as many blocks, and its successor fits too.
  bool dependents_fit() const;
  cudaStream_t stream(int rank) const { return rank_[static_cast<size_t>(rank)].stream; }
  FailureRecord& record(int rank) { return *rank_[static_cast<size_t>(rank)].record; }
  uint32_t& host_abort(int rank) { return *rank_[static_cast<size_t>(rank)].abort; }
  const WorkspaceLayout& layout() const { return layout_; }

  ExchangeArgs exchange(int rank, const KernelId& id) const;
  // Blocks of `kernel` that may run at once on a device, shared between its ranks, halved.
  int most_blocks(const CudaKernel& kernel, int threads, size_t shared) const;
  void launch(int rank, const CudaKernel& kernel, const KernelArgs& args, const GpuShape& shape);
  // Waits for all ranks; false after `seconds`.
  bool wait(double seconds);

  Control control(int rank) const;
  void set_limit(int rank, int64_t ms);
  void poison(int rank);  // its line, as who closes a communicator does
  // What is not as it should be after `exchanges` launches that all ended well, or "".
  std::string not_at_rest(uint64_t exchanges) const;

 private:
  struct Rank {
    char* window = nullptr;
    cudaStream_t stream = nullptr;
    FailureRecord* record = nullptr;
    uint32_t* abort = nullptr;
  };
  void arm(Rank& rank) const;

  GpuOptions options_;
  WorkspaceLayout layout_;
  std::vector<Rank> rank_;
};

// Ends the program if a tile of the launch had no pad.
void check_pads(const KernelId& id, const KernelArgs& args);

// Devices that reach each other, at most `most`.
int usable_devices(int most);

// The launch of a row of `packs` by an instance: threads for `held` packs each.
GpuShape shape_of(const CudaKernel& kernel, int row_packs);

}  // namespace fccl::test
