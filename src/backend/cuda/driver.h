// The CUDA driver as this module reaches it: entry points are looked up at run time (the module
// loads on hosts without a driver), errors become Status with the driver's text, and the caller's
// context is put back after every entry. Everything here may be called from any thread.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/status.h"

namespace fccl {

// Each entry has the signature that cuda.h declares; null until load() has succeeded.
struct Driver {
#define FCCL_DRIVER_ENTRIES(X)      \
  X(cuGetErrorName)                 \
  X(cuGetErrorString)               \
  X(cuCtxGetCurrent)                \
  X(cuCtxPushCurrent)               \
  X(cuCtxPopCurrent)                \
  X(cuDeviceGet)                    \
  X(cuDeviceGetAttribute)           \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuMemGetAllocationGranularity)  \
  X(cuMemCreate)                    \
  X(cuMemRelease)                   \
  X(cuMemAddressReserve)            \
  X(cuMemAddressFree)               \
  X(cuMemMap)                       \
  X(cuMemUnmap)                     \
  X(cuMemSetAccess)                 \
  X(cuMemExportToShareableHandle)   \
  X(cuMemImportFromShareableHandle) \
  X(cuMemGetAddressRange)
#define FCCL_DRIVER_MEMBER(name) decltype(&::name) name##_ = nullptr;
  FCCL_DRIVER_ENTRIES(FCCL_DRIVER_MEMBER)
#undef FCCL_DRIVER_MEMBER
};

// Is there a driver that can run this build, and a device? The error is one line that says what was
// found and what is needed. Makes no context.
Status check_driver();
// The table, loaded at the first use; check_driver() first.
Result<const Driver*> driver();

// UnhandledDeviceError or OutOfResources: "what: name (text)". Success gives an empty Status. The
// error that the runtime keeps for this thread is cleared.
Status cuda_status(cudaError_t result, const char* what);
Status driver_status(CUresult result, const char* what);

// Makes `context` current while it lives, and lets other threads capture meanwhile: what is called
// here is safe beside a capture, but the strictest capture mode forbids it to all threads.
class ContextScope {
 public:
  enum Kind { kLaunch, kUnsafeBesideCapture };
  ContextScope(const Driver& driver, CUcontext context, Kind kind);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  const Status& status() const { return status_; }

 private:
  const Driver& driver_;
  Status status_;
  bool pushed_ = false;
  bool exchanged_ = false;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace fccl

#define FCCL_CUDA_TRY(call, what) FCCL_TRY(::fccl::cuda_status((call), (what)))
#define FCCL_DRIVER_TRY(call, what) FCCL_TRY(::fccl::driver_status((call), (what)))
