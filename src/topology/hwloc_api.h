// libhwloc as a table of functions, loaded at run time: the library must load on hosts without it.
// hwloc's header is used for types only.
#pragma once
#include <hwloc.h>

#include <string>

#include "base/status.h"

namespace fccl {

#define FCCL_HWLOC_FUNCTIONS(X)   \
  X(get_api_version)              \
  X(topology_init)                \
  X(topology_load)                \
  X(topology_destroy)             \
  X(topology_set_flags)           \
  X(topology_set_components)      \
  X(topology_set_io_types_filter) \
  X(topology_set_type_filter)     \
  X(topology_export_xmlbuffer)    \
  X(free_xmlbuffer)               \
  X(get_type_depth)               \
  X(get_nbobjs_by_depth)          \
  X(get_obj_by_depth)             \
  X(bitmap_next)                  \
  X(bitmap_weight)                \
  X(distances_get_by_name)        \
  X(distances_release)

struct HwlocApi {
#define FCCL_HWLOC_FIELD(function) decltype(&::hwloc_##function) function = nullptr;
  FCCL_HWLOC_FUNCTIONS(FCCL_HWLOC_FIELD)
#undef FCCL_HWLOC_FIELD
  std::string version;  // "2.9"
};

// Loaded once per process and kept. Unsupported says why it cannot be used.
Result<const HwlocApi*> hwloc_api();

}  // namespace fccl
