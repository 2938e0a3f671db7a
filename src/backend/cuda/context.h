// One rank's use of one GPU, from init to destroy.
#pragma once
#include "backend/cuda/device.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/stream_order.h"

namespace fccl {

class CudaContext : public DeviceContext {
 public:
  static Result<std::unique_ptr<DeviceContext>> open(const OpenArgs& args);
  ~CudaContext() override;

  uint64_t granule() const override { return device_.granule(); }
  Result<std::shared_ptr<Allocation>> allocate(uint64_t bytes, uint32_t memory_kind) override;
  Result<Export> export_memory(const Allocation& memory, uint32_t memory_kind) override;
  Result<std::unique_ptr<Mapping>> import_memory(Export& from, uint64_t bytes,
                                                 uint32_t memory_kind) override;
  Result<std::unique_ptr<Mapping>> map_local(const std::shared_ptr<Allocation>& memory) override;
  Status fill(void* to, int byte, uint64_t bytes) override;
  Status copy_in(void* to, const void* from, uint64_t bytes) override;
  Status copy_out(void* to, const void* from, uint64_t bytes) override;
  Result<std::shared_ptr<HostWords>> host_words() override;

  Status prepare(int ranks, int ranks_on_device) override;
  LaunchLimits limits() const override { return device_.kernels().limits(); }
  LaunchShape shape_of(const Launch& launch) const override;
  bool has_kernel(const KernelId& id, int ranks) const override;
  Status check_stream(void* stream) override;
  Status launch(const Launch& launch, void* stream) override;
  Status set_limit(Control* control, uint64_t ns) override;
  uint32_t peek_status(const Control* control) override;
  void wake(Control*) override {}  // kernels poll the host's word
  Status drain(const Limit& limit) override;
  void retire(std::vector<std::shared_ptr<void>> kept) override;

 private:
  CudaContext(CudaDevice& device, const Config& config);
  Status copy(void* to, const void* from, uint64_t bytes);
  void stop_using();
  int sharers() const;
  Status launch_here(const Launch& launch, cudaStream_t stream);

  CudaDevice& device_;
  const bool pdl_;
  StreamOrder order_;
  HostWords* words_ = nullptr;  // owned by the communicator
  Control* control_ = nullptr;  // of the own window, from the first launch on
  int ranks_on_device_ = 1;
  bool uses_ = false;  // counted in device_.users()
  bool retired_ = false;
};

}  // namespace fccl
