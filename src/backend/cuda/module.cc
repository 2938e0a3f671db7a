// libfccl_cuda.so: the one symbol that libfccl looks for, the backend behind it, and the log as the
// host serves it (base/log.h is implemented here by HostServices, since the module links nothing of
// libfccl).
#include <cstdarg>
#include <cstdio>

#include "backend/cuda/context.h"
#include "base/version.h"

namespace fccl {
namespace {

const HostServices* services = nullptr;

class CudaBackend : public Backend {
 public:
  BackendKind kind() const override { return BackendKind::Cuda; }
  const char* name() const override { return "cuda"; }
  Status available() override {
    FCCL_TRY(check_driver());
    return driver().status();
  }
  Result<int> current_device() override {
    int device = 0;
    FCCL_CUDA_TRY(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
  Status describe(int device, RankFacts& facts) override { return describe_device(device, &facts); }
  Result<std::unique_ptr<DeviceContext>> open(const OpenArgs& args) override {
    return CudaContext::open(args);
  }
  LaunchLimits expected_limits(int device) override { return expected_limits_of(device); }
};

Backend* create(const HostServices* host) {
  services = host;
  static auto* const backend = new CudaBackend;  // lives as long as the process
  return backend;
}

}  // namespace

bool log_enabled(LogLevel level, uint32_t subsystem) {
  return services != nullptr && services->log_enabled(level, subsystem);
}

void log_line(LogLevel level, uint32_t subsystem, const char* format, ...) {
  if (services == nullptr) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  services->log_text(level, subsystem, text);
}

}  // namespace fccl

extern "C" __attribute__((visibility("default"))) const fccl::BackendModule fcclBackendModule;
const fccl::BackendModule fcclBackendModule = {
    fccl::kModuleAbi, sizeof(fccl::BackendModule), fccl::kBuildId, fccl::create};
