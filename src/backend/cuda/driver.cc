#include "backend/cuda/driver.h"

#include <mutex>

namespace fccl {
namespace {

constexpr unsigned int kEntryVersion = 12080;  // of the entry points' signatures

Code code_of(bool out_of_memory) {
  return out_of_memory ? Code::OutOfResources : Code::UnhandledDeviceError;
}

template <class Function>
Status find_entry(const char* name, Function* entry) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer = cudaDriverEntryPointSymbolNotFound;
  FCCL_TRY(cuda_status(
      cudaGetDriverEntryPointByVersion(name, &found, kEntryVersion, cudaEnableDefault, &answer),
      name));
  if (answer != cudaDriverEntryPointSuccess || found == nullptr)
    return error(
        Code::VersionMismatch, "the NVIDIA driver has no %s; install driver 580 or newer", name);
  *entry = reinterpret_cast<Function>(found);
  return {};
}

Status load(Driver* to) {
#define FCCL_DRIVER_FIND(name) FCCL_TRY(find_entry(#name, &to->name##_));
  FCCL_DRIVER_ENTRIES(FCCL_DRIVER_FIND)
#undef FCCL_DRIVER_FIND
  return {};
}

}  // namespace

Status check_driver() {
  int have = 0;
  const int need = CUDART_VERSION;
  FCCL_TRY(cuda_status(cudaDriverGetVersion(&have), "cudaDriverGetVersion"));
  if (have == 0)
    return error(Code::Unsupported, "there is no NVIDIA driver on this host (no libcuda.so.1)");
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted == cudaErrorInsufficientDriver)
    return error(Code::VersionMismatch,
                 "the NVIDIA driver is too old: it supports CUDA %d.%d, this build of fccl needs "
                 "%d.%d",
                 have / 1000,
                 have % 1000 / 10,
                 need / 1000,
                 need % 1000 / 10);
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && devices == 0)) {
    static_cast<void>(cudaGetLastError());
    return error(Code::Unsupported,
                 "the NVIDIA driver shows no GPU to this process (see CUDA_VISIBLE_DEVICES)");
  }
  return cuda_status(counted, "cudaGetDeviceCount");
}

Result<const Driver*> driver() {
  static std::mutex mutex;
  static Driver* loaded = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded == nullptr) {
    auto* table = new Driver;
    const Status status = load(table);
    if (!status.ok()) {
      delete table;
      return status;
    }
    loaded = table;
  }
  return static_cast<const Driver*>(loaded);
}

Status cuda_status(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  return error(code_of(result == cudaErrorMemoryAllocation),
               "%s: %s (%s)",
               what,
               cudaGetErrorName(result),
               cudaGetErrorString(result));
}

Status driver_status(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  auto table = driver();
  if (table.ok()) {
    static_cast<void>((*table)->cuGetErrorName_(result, &name));
    static_cast<void>((*table)->cuGetErrorString_(result, &text));
  }
  return error(code_of(result == CUDA_ERROR_OUT_OF_MEMORY),
               "%s: %s (%s)",
               what,
               name == nullptr ? "unknown error" : name,
               text == nullptr ? "" : text);
}

ContextScope::ContextScope(const Driver& driver, CUcontext context, Kind kind) : driver_(driver) {
  CUcontext now = nullptr;
  if (driver.cuCtxGetCurrent_(&now) != CUDA_SUCCESS || now != context) {
    status_ = driver_status(driver.cuCtxPushCurrent_(context), "cuCtxPushCurrent");
    pushed_ = status_.ok();
  }
  if (kind == kUnsafeBesideCapture && status_.ok())
    exchanged_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess;
}

ContextScope::~ContextScope() {
  if (exchanged_) static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  CUcontext popped = nullptr;
  if (pushed_) static_cast<void>(driver_.cuCtxPopCurrent_(&popped));
}

}  // namespace fccl
