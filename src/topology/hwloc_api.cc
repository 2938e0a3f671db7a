// See hwloc_api.h.
#include "topology/hwloc_api.h"

#include <dlfcn.h>

namespace fccl {
namespace {

struct Loaded {
  HwlocApi api;
  Status status;
};

Status load(HwlocApi* api) {
  void* library = ::dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(Code::Unsupported, "libhwloc.so.15 is not installed");
#define FCCL_HWLOC_LOAD(function)                                                                  \
  api->function = reinterpret_cast<decltype(api->function)>(::dlsym(library, "hwloc_" #function)); \
  if (api->function == nullptr) {                                                                  \
    ::dlclose(library);                                                                            \
    return Status(Code::Unsupported, "libhwloc.so.15 lacks hwloc_" #function);                     \
  }
  FCCL_HWLOC_FUNCTIONS(FCCL_HWLOC_LOAD)
#undef FCCL_HWLOC_LOAD
  // Structs changed between major versions only.
  const unsigned found = api->get_api_version();
  api->version = std::to_string(found >> 16) + '.' + std::to_string(found >> 8 & 0xff);
  if (found >> 16 != HWLOC_API_VERSION >> 16) {
    ::dlclose(library);
    return error(Code::Unsupported,
                 "libhwloc.so.15 has API version %s, not %d",
                 api->version.c_str(),
                 HWLOC_API_VERSION >> 16);
  }
  return {};
}

}  // namespace

Result<const HwlocApi*> hwloc_api() {
  static const Loaded* const loaded = [] {
    auto* const fresh = new Loaded;  // lives as long as the library does
    fresh->status = load(&fresh->api);
    return fresh;
  }();
  if (!loaded->status.ok()) return loaded->status;
  return &loaded->api;
}

}  // namespace fccl
