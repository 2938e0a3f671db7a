#include "backend/cuda/device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>

#include "backend/cuda/kernels.h"
#include "backend/cuda/nvlink.h"

namespace fccl {
namespace {

constexpr size_t kWordsStride = 512;  // no two ranks' words in one line
static_assert(sizeof(HostWords) <= kWordsStride);
constexpr size_t kPageBytes = 8192;

Result<int> attribute(cudaDeviceAttr which, int ordinal, const char* what) {
  int value = 0;
  FCCL_CUDA_TRY(cudaDeviceGetAttribute(&value, which, ordinal), what);
  return value;
}

Result<bool> driver_attribute(const Driver& api, CUdevice_attribute which, CUdevice device,
                              const char* what) {
  int value = 0;
  FCCL_DRIVER_TRY(api.cuDeviceGetAttribute_(&value, which, device), what);
  return value != 0;
}

Result<uint32_t> memory_kinds_of(int ordinal) {
  FCCL_TRY_ASSIGN(api, driver());
  CUdevice device = 0;
  FCCL_DRIVER_TRY(api->cuDeviceGet_(&device, ordinal), "cuDeviceGet");
  FCCL_TRY_ASSIGN(mapped,
                  driver_attribute(*api,
                                   CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                   device,
                                   "is virtual memory managed"));
  FCCL_TRY_ASSIGN(shared,
                  driver_attribute(*api,
                                   CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                                   device,
                                   "are descriptors supported"));
  uint32_t kinds = kMemoryPointer | kMemoryDeviceIpc;
  if (mapped && shared) kinds |= kMemoryDeviceFd;
  return kinds;
}

}  // namespace

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal) {}

Result<CudaDevice*> CudaDevice::open(int ordinal) {
  static std::mutex mutex;
  static auto* const opened = new std::map<int, CudaDevice*>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto known = opened->find(ordinal);
  if (known != opened->end()) return known->second;
  std::unique_ptr<CudaDevice> device(new CudaDevice(ordinal));
  FCCL_TRY(device->start());
  return opened->emplace(ordinal, device.release()).first->second;
}

Status CudaDevice::start() {
  FCCL_TRY_ASSIGN(table, driver());
  driver_ = table;
  FCCL_DRIVER_TRY(driver_->cuDeviceGet_(&handle_, ordinal_), "cuDeviceGet");
  FCCL_DRIVER_TRY(driver_->cuDevicePrimaryCtxRetain_(&context_, handle_),
                  "making the context of the GPU");
  FCCL_TRY(read_numbers());
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {ordinal_}};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  size_t granule = 0;
  if (driver_->cuMemGetAllocationGranularity_(
          &granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS)
    granule = size_t{2} << 20;
  granule_ = granule;
  kernels_ = std::make_unique<KernelBook>(*this);
  const DeviceScope scope(*this);
  FCCL_TRY(scope.status());
  return cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                     "cudaStreamCreateWithFlags");
}

Status CudaDevice::read_numbers() {
  const auto read = [&](cudaDeviceAttr which, const char* what, int* to) -> Status {
    FCCL_TRY_ASSIGN(value, attribute(which, ordinal_, what));
    *to = value;
    return {};
  };
  int major = 0, minor = 0;
  FCCL_TRY(read(cudaDevAttrComputeCapabilityMajor, "compute capability", &major));
  FCCL_TRY(read(cudaDevAttrComputeCapabilityMinor, "compute capability", &minor));
  arch_ = major * 100 + minor * 10;
  FCCL_TRY(read(cudaDevAttrMultiProcessorCount, "number of SMs", &sm_count_));
  FCCL_TRY(read(cudaDevAttrMaxThreadsPerMultiProcessor, "threads of an SM", &sm_threads_));
  return read(
      cudaDevAttrMaxSharedMemoryPerBlockOptin, "shared memory of a block", &block_shared_bytes_);
}

Result<std::shared_ptr<HostWords>> CudaDevice::host_words() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_words_.empty()) {
    const DeviceScope scope(*this);
    FCCL_TRY(scope.status());
    void* page = nullptr;
    // Never freed: freeing would wait for every kernel of the device.
    FCCL_CUDA_TRY(cudaHostAlloc(&page, kPageBytes, cudaHostAllocMapped | cudaHostAllocPortable),
                  "host memory for failure records");
    for (size_t at = 0; at + kWordsStride <= kPageBytes; at += kWordsStride)
      free_words_.push_back(reinterpret_cast<HostWords*>(static_cast<char*>(page) + at));
  }
  HostWords* words = free_words_.back();
  free_words_.pop_back();
  std::memset(static_cast<void*>(words), 0, sizeof *words);
  return std::shared_ptr<HostWords>(words, [this](HostWords* done) {
    const std::lock_guard<std::mutex> again(mutex_);
    free_words_.push_back(done);
  });
}

Status describe_device(int ordinal, RankFacts* facts) {
  int count = 0;
  FCCL_CUDA_TRY(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (ordinal < 0 || ordinal >= count)
    return error(Code::InvalidArgument,
                 "config.device is ordinal %d; this process sees %d GPU(s)",
                 ordinal,
                 count);
  cudaDeviceProp properties;
  FCCL_CUDA_TRY(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  FCCL_TRY_ASSIGN(kinds, memory_kinds_of(ordinal));
  DeviceFacts& device = facts->device;
  std::memcpy(device.uuid, &properties.uuid, sizeof device.uuid);
  device.pci = pci_address(static_cast<uint32_t>(properties.pciDomainID),
                           static_cast<uint32_t>(properties.pciBusID),
                           static_cast<uint32_t>(properties.pciDeviceID),
                           0);
  device.memory_bytes = properties.totalGlobalMem;
  device.arch = static_cast<uint32_t>(properties.major * 100 + properties.minor * 10);
  device.sm_count = static_cast<uint32_t>(properties.multiProcessorCount);
  std::memcpy(
      device.name, properties.name, std::min(std::strlen(properties.name), sizeof device.name - 1));
  const std::string why = add_links(&device);
  if (!why.empty()) FCCL_LOG(Info, kLogTopology, "links of %s: %s", device.name, why.c_str());
  facts->has_device = 1;
  facts->backends |= kBackendCuda;
  facts->memory_kinds |= kinds;
  return {};
}

LaunchLimits expected_limits_of(int ordinal) {
  LaunchLimits limits;
  limits.max_threads = 1024;
  auto sms = attribute(cudaDevAttrMultiProcessorCount, ordinal, "number of SMs");
  auto major = attribute(cudaDevAttrComputeCapabilityMajor, ordinal, "compute capability");
  auto minor = attribute(cudaDevAttrComputeCapabilityMinor, ordinal, "compute capability");
  if (!sms.ok() || !major.ok() || !minor.ok()) return limits;
  limits.sm_count = *sms;
  limits.max_blocks = *sms;
  limits.arch = *major * 100 + *minor * 10;
  return limits;
}

}  // namespace fccl
