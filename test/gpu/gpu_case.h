// One fused launch on GPU ranks: the same case, inputs and expected bits as on the CPU
// (harness/kernel_case.h), with the caller's buffers in device memory.
#pragma once
#include <atomic>
#include <memory>

#include "gpu/gpu_world.h"
#include "harness/kernel_case.h"

namespace fccl::test {

// A host buffer and its image on a device, at the same alignment.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Buffer content, int64_t rows);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  Tensor tensor() const { return {memory_ + kAround + offset_, stride_}; }
  const char* data() const { return tensor().ptr; }
  // What is wrong if the rows should hold `want` now, or "".
  std::string difference(const Matrix& want, const char* name);

 private:
  static constexpr size_t kAround = 64;  // bytes around the tensor that are copied with it
  Buffer host_;
  char* memory_ = nullptr;  // 256-byte aligned
  size_t offset_ = 0;  // of the tensor behind kAround
  size_t bytes_ = 0;  // of the tensor
  int64_t stride_ = 0;
};

// A case on all ranks: buffers first, then launches (all ranks, no waiting), then the check.
class GpuCase {
 public:
  // `packs_per_thread`: 1, 2, 4, or 0 for the streamed instance.
  GpuCase(GpuWorld& world, const KernelCase& c, int packs_per_thread);
  ~GpuCase();

  void launch(int rank);
  // What is wrong on a rank, or "".
  std::string check(int rank);
  std::string text() const;
  bool launched() const { return launched_.load(); }

 private:
  struct RankState;
  std::unique_ptr<RankState> make_rank(int rank) const;

  GpuWorld& world_;
  KernelCase case_;
  KernelProblem problem_;
  CudaKernel kernel_;
  std::atomic<bool> launched_{false};
  std::vector<std::unique_ptr<RankState>> rank_;
};

}  // namespace fccl::test
