#include "backend/cuda/context.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "backend/cuda/memory.h"

namespace fccl {
namespace {

constexpr int64_t kRetireMs =
    300;  // launches of a failed communicator leave at their first slow look

}  // namespace

CudaContext::CudaContext(CudaDevice& device, const Config& config)
    : device_(device), pdl_(config.pdl != 0), order_(device, config.graph_mixing != 0) {}

CudaContext::~CudaContext() {
  if (!retired_) stop_using();
}

Result<std::unique_ptr<DeviceContext>> CudaContext::open(const OpenArgs& args) {
  free_garbage();
  FCCL_TRY_ASSIGN(device, CudaDevice::open(args.device));
  return std::unique_ptr<DeviceContext>(new CudaContext(*device, *args.config));
}

// ---------------------------------------------------------------- memory

Result<std::shared_ptr<Allocation>> CudaContext::allocate(uint64_t bytes, uint32_t memory_kind) {
  free_garbage();
  return allocate_device(device_, bytes, memory_kind);
}

Result<Export> CudaContext::export_memory(const Allocation& memory, uint32_t) {
  return export_device(memory);
}

Result<std::unique_ptr<Mapping>> CudaContext::import_memory(Export& from, uint64_t bytes,
                                                            uint32_t memory_kind) {
  return import_device(device_, from, bytes, memory_kind);
}

Result<std::unique_ptr<Mapping>> CudaContext::map_local(const std::shared_ptr<Allocation>& memory) {
  return map_local_device(device_, memory);
}

Status CudaContext::fill(void* to, int byte, uint64_t bytes) {
  const DeviceScope scope(device_);
  FCCL_TRY(scope.status());
  FCCL_CUDA_TRY(cudaMemsetAsync(to, byte, bytes, device_.stream()), "clearing a window");
  return cuda_status(cudaStreamSynchronize(device_.stream()), "clearing a window");
}

Status CudaContext::copy(void* to, const void* from, uint64_t bytes) {
  const DeviceScope scope(device_);
  FCCL_TRY(scope.status());
  FCCL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, device_.stream()),
                "copying to or from a window");
  return cuda_status(cudaStreamSynchronize(device_.stream()), "copying to or from a window");
}
Status CudaContext::copy_in(void* to, const void* from, uint64_t bytes) {
  return copy(to, from, bytes);
}
Status CudaContext::copy_out(void* to, const void* from, uint64_t bytes) {
  return copy(to, from, bytes);
}

Result<std::shared_ptr<HostWords>> CudaContext::host_words() {
  FCCL_TRY_ASSIGN(words, device_.host_words());
  words_ = words.get();
  return words;
}

// ---------------------------------------------------------------- kernels

Status CudaContext::prepare(int ranks, int ranks_on_device) {
  ranks_on_device_ = ranks_on_device;
  // A rank alone waits for nobody: its kernels end, and need no room beside others.
  if (ranks > 1 && !std::exchange(uses_, true)) device_.users().fetch_add(1);
  const DeviceScope scope(device_);
  FCCL_TRY(scope.status());
  return device_.kernels().load(ranks);
}

void CudaContext::stop_using() {
  if (std::exchange(uses_, false)) device_.users().fetch_sub(1);
}

int CudaContext::sharers() const {
  return std::max(ranks_on_device_, device_.users().load(std::memory_order_relaxed));
}

LaunchShape CudaContext::shape_of(const Launch& launch) const {
  const DeviceScope scope(device_);
  auto found = device_.kernels().shape_of(launch, sharers());
  LaunchShape shape;
  if (!found.ok()) return shape;
  shape.blocks = found->blocks;
  shape.threads = found->threads;
  shape.packs_per_thread = found->kernel.packs;
  return shape;
}

bool CudaContext::has_kernel(const KernelId& id, int ranks) const {
  return find_cuda_kernel(id, ranks, 1, 0).entry != nullptr;
}

Status CudaContext::check_stream(void* stream) {
  if (ranks_on_device_ <= 1 || !is_legacy_stream(static_cast<cudaStream_t>(stream))) return {};
  return error(
      Code::InvalidArgument,
      "ranks that share a GPU need a non-blocking stream each; the default stream would let "
      "them wait for each other");
}

Status CudaContext::launch(const Launch& launch, void* stream) {
  const DeviceScope scope(device_, ContextScope::kLaunch);
  FCCL_TRY(scope.status());
  return launch_here(launch, static_cast<cudaStream_t>(stream));
}

Status CudaContext::launch_here(const Launch& launch, cudaStream_t stream) {
  if (!tiles_have_pads(launch.id, launch.args))
    return error(Code::InternalError,
                 "a launch of %d rows in tiles of %d has more tiles than there are flags",
                 launch.args.rows,
                 launch.args.ex.tile_rows);
  FCCL_TRY_ASSIGN(shape, device_.kernels().shape_of(launch, sharers()));
  FCCL_TRY_ASSIGN(before, order_.before(stream));
  KernelArgs args = launch.args;
  control_ = reinterpret_cast<Control*>(args.ex.window[0]);
  const bool dependent = pdl_ && before.dependent && ranks_on_device_ <= 1;
  if (launch.early_trigger && dependent) args.flags |= kEarlyTrigger;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = dependent ? 1 : 0;
  void* arguments[] = {&args};
  FCCL_CUDA_TRY(cudaLaunchKernelExC(&config, shape.kernel.entry, arguments),
                "launching a kernel (is the stream one of the communicator's GPU?)");
  return order_.after(stream);
}

// ---------------------------------------------------------------- health

Status CudaContext::set_limit(Control* control, uint64_t ns) {
  return copy_in(&control->limit_ns, &ns, sizeof ns);
}

uint32_t CudaContext::peek_status(const Control*) {
  if (words_ == nullptr) return 0;
  if (__atomic_load_n(&words_->record.complete, __ATOMIC_ACQUIRE) != 0)
    return status_word(static_cast<Failure>(words_->record.failure), words_->record.peer);
  const uint32_t told = __atomic_load_n(&words_->abort, __ATOMIC_ACQUIRE);
  return failure_of(told) == Failure::Left ? 0 : told;
}

Status CudaContext::drain(const Limit& limit) {
  for (int64_t wait_us = 20;; wait_us = std::min<int64_t>(wait_us * 2, 1000)) {
    {
      const DeviceScope scope(device_);
      FCCL_TRY(scope.status());
      FCCL_TRY_ASSIGN(ended, order_.ended());
      if (ended) return {};
    }
    if (limit.aborted()) return error(Code::Aborted, "aborted while waiting for launches to end");
    if (limit.deadline.expired())
      return error(Code::Timeout,
                   "launches have not ended after %lld ms",
                   static_cast<long long>(limit.deadline.elapsed_ms()));
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
  }
}

void CudaContext::retire(std::vector<std::shared_ptr<void>> kept) {
  if (std::exchange(retired_, true)) return;
  if (words_ != nullptr) {  // ends waits of what is queued or replayed later
    uint32_t none = 0;
    __atomic_compare_exchange_n(&words_->abort,
                                &none,
                                status_word(Failure::Aborted, 0),
                                false,
                                __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
  }
  const Status ended = drain(Limit{Deadline::after_ms(kRetireMs), nullptr});
  if (ended.ok() && order_.captured_any()) {
    const uint64_t closed = kPoisonedLine;  // replays leave at entry
    static_cast<void>(copy_in(&control_->line, &closed, sizeof closed));
  }
  stop_using();
  if (!ended.ok()) {
    keep_for_good(std::move(kept));
    return;
  }
  order_.end(std::move(kept));
  free_garbage();
}

}  // namespace fccl
