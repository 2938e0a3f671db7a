// One GPU as this process uses it: its primary context (retained at the first open and kept), its
// numbers, the pages of host words, its kernels. One object per device, never freed, shared by all
// communicators; safe from any thread.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/driver.h"

namespace fccl {

class KernelBook;

class CudaDevice {
 public:
  // Makes the device's primary context.
  static Result<CudaDevice*> open(int ordinal);

  int ordinal() const { return ordinal_; }
  CUdevice handle() const { return handle_; }
  const Driver& api() const { return *driver_; }
  uint64_t granule() const { return granule_; }
  int sm_count() const { return sm_count_; }
  int arch() const { return arch_; }
  // Threads, registers and shared memory of one SM, and the most shared memory of one block.
  int sm_threads() const { return sm_threads_; }
  int block_shared_bytes() const { return block_shared_bytes_; }
  KernelBook& kernels() { return *kernels_; }
  // For copies: it waits for nobody, nobody waits for it. One for all, since streams beyond those
  // that the hardware keeps apart (CUDA_DEVICE_MAX_CONNECTIONS) make ranks of one device wait for
  // each other.
  cudaStream_t stream() const { return stream_; }

  // Communicators of this process whose kernels may wait for a peer here now.
  std::atomic<int>& users() { return users_; }

  // Zeroed, mapped to every device; given back to the page when the last user lets go.
  Result<std::shared_ptr<HostWords>> host_words();

 private:
  explicit CudaDevice(int ordinal);
  Status start();
  Status read_numbers();
  friend class DeviceScope;

  const int ordinal_;
  const Driver* driver_ = nullptr;
  CUdevice handle_ = 0;
  CUcontext context_ = nullptr;
  cudaStream_t stream_ = nullptr;
  uint64_t granule_ = 0;
  int sm_count_ = 0, arch_ = 0, sm_threads_ = 0, block_shared_bytes_ = 0;
  std::unique_ptr<KernelBook> kernels_;
  std::atomic<int> users_{0};
  std::mutex mutex_;
  std::vector<HostWords*> free_words_;
};

// The device's context is current while this lives.
class DeviceScope {
 public:
  explicit DeviceScope(const CudaDevice& device,
                       ContextScope::Kind kind = ContextScope::kUnsafeBesideCapture)
      : scope_(device.api(), device.context_, kind) {}
  const Status& status() const { return scope_.status(); }

 private:
  ContextScope scope_;
};

// What is known of a device without a context: everything that goes into RankFacts.
Status describe_device(int ordinal, RankFacts* facts);
// Launch limits without a context: those of kernels that fit as well as ours do.
LaunchLimits expected_limits_of(int ordinal);

}  // namespace fccl
