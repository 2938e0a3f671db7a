#include "backend/cuda/memory.h"

#include <fcntl.h>

#include <atomic>
#include <cstring>
#include <mutex>

namespace fccl {
namespace {

Status no_memory(const Status& status, uint64_t bytes, const CudaDevice& device) {
  if (status.code() != Code::OutOfResources) return status;
  return error(Code::OutOfResources,
               "%llu bytes for a window on GPU %d: %s; free memory, or ask for a smaller workspace "
               "(config.max_tokens, FCCL_WORKSPACE_BYTES)",
               static_cast<unsigned long long>(bytes),
               device.ordinal(),
               status.text().c_str());
}

// An address range with memory behind it. Undoes as many steps as were done.
class MappedRange {
 public:
  explicit MappedRange(const CudaDevice& device) : device_(device) {}
  ~MappedRange() {
    const DeviceScope scope(device_);
    if (mapped_) static_cast<void>(device_.api().cuMemUnmap_(at_, bytes_));
    if (at_ != 0) static_cast<void>(device_.api().cuMemAddressFree_(at_, bytes_));
  }
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  Status map(CUmemGenericAllocationHandle memory, uint64_t bytes) {
    bytes_ = bytes;
    FCCL_DRIVER_TRY(device_.api().cuMemAddressReserve_(&at_, bytes, device_.granule(), 0, 0),
                    "cuMemAddressReserve");
    FCCL_DRIVER_TRY(device_.api().cuMemMap_(at_, bytes, 0, memory, 0), "cuMemMap");
    mapped_ = true;
    return allow(device_);
  }
  // Once for each device: ranks that share it ask for the same, each in a thread of its own.
  Status allow(const CudaDevice& other) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t bit = uint64_t{1} << other.ordinal() % 64;
    if ((allowed_ & bit) != 0) return {};
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {other.ordinal()}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    FCCL_DRIVER_TRY(device_.api().cuMemSetAccess_(at_, bytes_, &access, 1), "cuMemSetAccess");
    allowed_ |= bit;
    return {};
  }
  char* ptr() const { return reinterpret_cast<char*>(at_); }

 private:
  const CudaDevice& device_;
  CUdeviceptr at_ = 0;
  uint64_t bytes_ = 0;
  bool mapped_ = false;
  mutable std::mutex mutex_;
  mutable uint64_t allowed_ = 0;  // bit per device
};

class FdAllocation : public Allocation {
 public:
  explicit FdAllocation(const CudaDevice& on) : device(on), range(on) {}
  ~FdAllocation() override {
    // The range goes after this; the pages live as long as somebody maps them.
    if (created) static_cast<void>(device.api().cuMemRelease_(handle));
  }
  const CudaDevice& device;
  CUmemGenericAllocationHandle handle = 0;
  bool created = false;
  MappedRange range;
};

class ImportedFd : public Mapping {
 public:
  explicit ImportedFd(const CudaDevice& device) : range(device) {}
  MappedRange range;
};

std::atomic<uint64_t> unfreed_bytes{0};

class IpcAllocation : public Allocation {
 public:
  explicit IpcAllocation(const CudaDevice& on) : device(on) {}
  ~IpcAllocation() override {
    if (ptr == nullptr) return;
    if (exported) {
      const uint64_t all = unfreed_bytes.fetch_add(bytes) + bytes;
      FCCL_LOG(Info,
               kLogMemory,
               "%llu bytes that were exported by IPC stay allocated (%llu in all)",
               static_cast<unsigned long long>(bytes),
               static_cast<unsigned long long>(all));
      return;
    }
    const DeviceScope scope(device);
    static_cast<void>(cudaFree(ptr));
  }
  const CudaDevice& device;
  mutable std::atomic<bool> exported{false};
};

class ImportedIpc : public Mapping {
 public:
  explicit ImportedIpc(const CudaDevice& on) : device(on) {}
  ~ImportedIpc() override {
    if (ptr == nullptr) return;
    const DeviceScope scope(device);
    static_cast<void>(cudaIpcCloseMemHandle(ptr));
  }
  const CudaDevice& device;
};

class LocalMapping : public Mapping {
 public:
  explicit LocalMapping(std::shared_ptr<Allocation> memory) : memory_(std::move(memory)) {
    ptr = memory_->ptr;
  }

 private:
  std::shared_ptr<Allocation> memory_;
};

Result<std::shared_ptr<Allocation>> allocate_fd(const CudaDevice& device, uint64_t bytes) {
  auto memory = std::make_shared<FdAllocation>(device);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device.ordinal()}};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const Status created = driver_status(
      device.api().cuMemCreate_(&memory->handle, bytes, &properties, 0), "cuMemCreate");
  if (!created.ok()) return no_memory(created, bytes, device);
  memory->created = true;
  FCCL_TRY(memory->range.map(memory->handle, bytes));
  memory->ptr = memory->range.ptr();
  memory->bytes = bytes;
  return std::shared_ptr<Allocation>(std::move(memory));
}

Result<std::shared_ptr<Allocation>> allocate_ipc(const CudaDevice& device, uint64_t bytes) {
  auto memory = std::make_shared<IpcAllocation>(device);
  void* at = nullptr;
  const Status made = cuda_status(cudaMalloc(&at, bytes), "cudaMalloc");
  if (!made.ok()) return no_memory(made, bytes, device);
  memory->ptr = static_cast<char*>(at);
  memory->bytes = bytes;
  return std::shared_ptr<Allocation>(std::move(memory));
}

Result<std::unique_ptr<Mapping>> import_fd(const CudaDevice& device, Export& from, uint64_t bytes) {
  if (!from.fd.valid())
    return error(Code::RemoteError, "the peer sent no descriptor of its window");
  auto mapping = std::make_unique<ImportedFd>(device);
  CUmemGenericAllocationHandle handle = 0;
  FCCL_DRIVER_TRY(device.api().cuMemImportFromShareableHandle_(
                      &handle,
                      reinterpret_cast<void*>(static_cast<uintptr_t>(from.fd.get())),
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  "cuMemImportFromShareableHandle");
  from.fd.reset();
  // Mapping more than there is fails; the mapping keeps the pages when the handle is gone.
  const Status mapped = mapping->range.map(handle, bytes);
  static_cast<void>(device.api().cuMemRelease_(handle));
  FCCL_TRY(mapped);
  mapping->ptr = mapping->range.ptr();
  return std::unique_ptr<Mapping>(std::move(mapping));
}

Result<std::unique_ptr<Mapping>> import_ipc(const CudaDevice& device, const Export& from,
                                            uint64_t bytes) {
  cudaIpcMemHandle_t handle;
  static_assert(sizeof handle <= sizeof from.handle);
  std::memcpy(&handle, from.handle, sizeof handle);
  auto mapping = std::make_unique<ImportedIpc>(device);
  void* at = nullptr;
  FCCL_CUDA_TRY(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess),
                "cudaIpcOpenMemHandle");
  mapping->ptr = static_cast<char*>(at);
  CUdeviceptr base = 0;
  size_t size = 0;
  FCCL_DRIVER_TRY(
      device.api().cuMemGetAddressRange_(&base, &size, reinterpret_cast<CUdeviceptr>(at)),
      "cuMemGetAddressRange");
  if (base != reinterpret_cast<CUdeviceptr>(at) || size < bytes)
    return error(Code::RemoteError,
                 "the peer's IPC handle stands for %zu bytes, not %llu",
                 size,
                 static_cast<unsigned long long>(bytes));
  return std::unique_ptr<Mapping>(std::move(mapping));
}

Status refuse_unreachable(const CudaDevice& from, const CudaDevice& to) {
  int reachable = 0;
  FCCL_CUDA_TRY(cudaDeviceCanAccessPeer(&reachable, from.ordinal(), to.ordinal()),
                "cudaDeviceCanAccessPeer");
  if (reachable != 0) return {};
  return error(Code::Unsupported,
               "GPU %d cannot reach the memory of GPU %d (cudaDeviceCanAccessPeer)",
               from.ordinal(),
               to.ordinal());
}

}  // namespace

Result<std::shared_ptr<Allocation>> allocate_device(const CudaDevice& device, uint64_t bytes,
                                                    uint32_t memory_kind) {
  const DeviceScope scope(device);
  FCCL_TRY(scope.status());
  bytes = round_up(bytes, device.granule());
  return memory_kind == kMemoryDeviceIpc ? allocate_ipc(device, bytes) : allocate_fd(device, bytes);
}

Result<Export> export_device(const Allocation& memory) {
  Export out;
  if (const auto* fd = dynamic_cast<const FdAllocation*>(&memory)) {
    const DeviceScope scope(fd->device);
    FCCL_TRY(scope.status());
    int descriptor = -1;
    FCCL_DRIVER_TRY(fd->device.api().cuMemExportToShareableHandle_(
                        &descriptor, fd->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                    "cuMemExportToShareableHandle");
    out.fd.reset(descriptor);
    if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return errno_error("descriptor of a window");
    return out;
  }
  const auto* ipc = dynamic_cast<const IpcAllocation*>(&memory);
  if (ipc == nullptr) return error(Code::InternalError, "memory of another backend");
  const DeviceScope scope(ipc->device);
  FCCL_TRY(scope.status());
  cudaIpcMemHandle_t handle;
  FCCL_CUDA_TRY(cudaIpcGetMemHandle(&handle, ipc->ptr), "cudaIpcGetMemHandle");
  std::memcpy(out.handle, &handle, sizeof handle);
  ipc->exported = true;
  return out;
}

Result<std::unique_ptr<Mapping>> import_device(const CudaDevice& device, Export& from,
                                               uint64_t bytes, uint32_t memory_kind) {
  const DeviceScope scope(device);
  FCCL_TRY(scope.status());
  return memory_kind == kMemoryDeviceIpc ? import_ipc(device, from, bytes)
                                         : import_fd(device, from, bytes);
}

Result<std::unique_ptr<Mapping>> map_local_device(const CudaDevice& device,
                                                  const std::shared_ptr<Allocation>& memory) {
  const DeviceScope scope(device);
  FCCL_TRY(scope.status());
  const auto* fd = dynamic_cast<const FdAllocation*>(memory.get());
  const auto* ipc = dynamic_cast<const IpcAllocation*>(memory.get());
  if (fd == nullptr && ipc == nullptr)
    return error(Code::InternalError, "memory of another backend");
  const CudaDevice& owner = fd != nullptr ? fd->device : ipc->device;
  if (&owner != &device) {
    FCCL_TRY(refuse_unreachable(device, owner));
    if (fd == nullptr)
      return error(Code::Unsupported,
                   "threads of one process on two GPUs need memory that is mapped per allocation "
                   "(cuMemCreate), which GPU %d does not have",
                   owner.ordinal());
    FCCL_TRY(fd->range.allow(device));
  }
  return std::unique_ptr<Mapping>(std::make_unique<LocalMapping>(memory));
}

}  // namespace fccl
