// Finds backends. The CPU's is part of the library; the others are modules beside it, loaded at the
// first use and never unloaded. A module that cannot be loaded is an answer with a reason, not a
// failure of the process, and the answer is kept.
#include <dlfcn.h>

#include <map>
#include <mutex>

#include "backend/backend.h"
#include "backend/backend_cpu.h"
#include "base/version.h"

namespace fccl {
namespace {

bool service_log_enabled(LogLevel level, uint32_t subsystem) {
  return log_enabled(level, subsystem);
}
void service_log_text(LogLevel level, uint32_t subsystem, const char* text) {
  log_line(level, subsystem, "%s", text);
}
constexpr HostServices kServices{service_log_enabled, service_log_text};

std::string folder_of_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&folder_of_library), &info) == 0 || info.dli_fname == nullptr)
    return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

Result<Backend*> load_module(const std::string& file, const std::string& folder) {
  const std::string path = (folder.empty() ? folder_of_library() : folder + "/") + file;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return error(Code::Unsupported, "cannot load %s: %s", path.c_str(), dlerror());
  const auto* module = static_cast<const BackendModule*>(dlsym(library, "fcclBackendModule"));
  if (module == nullptr)
    return error(Code::VersionMismatch,
                 "%s is no fccl backend module (no symbol fcclBackendModule)",
                 path.c_str());
  if (module->abi != kModuleAbi || module->size < sizeof(BackendModule) ||
      std::string(module->build_id) != kBuildId)
    return error(Code::VersionMismatch,
                 "%s was built as %s, this library as %s; install both from one build",
                 path.c_str(),
                 module->abi == kModuleAbi ? module->build_id : "another module ABI",
                 kBuildId);
  Backend* backend = module->create(&kServices);
  if (backend == nullptr) return error(Code::InternalError, "%s made no backend", path.c_str());
  return backend;
}

}  // namespace

Result<Backend*> find_backend(BackendKind kind, const Config& config) {
  if (kind == BackendKind::Cpu) return cpu_backend();
  static std::mutex mutex;
  static auto* const found = new std::map<std::pair<BackendKind, std::string>, Result<Backend*>>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto key = std::make_pair(kind, config.backend_dir);
  const auto known = found->find(key);
  if (known != found->end()) return known->second;
  const char* file = kind == BackendKind::Cuda ? "libfccl_cuda.so" : "libfccl_hip.so";
  auto result = load_module(file, config.backend_dir);
  if (!result.ok()) FCCL_LOG(Info, kLogBackend, "%s", result.status().text().c_str());
  return found->emplace(key, std::move(result)).first->second;
}

}  // namespace fccl
