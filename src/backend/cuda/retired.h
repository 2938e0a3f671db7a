// Memory that outlives its communicator. Kernels that are queued or captured hold plain pointers
// into windows and host words; these may be unmapped only when no such kernel can start any more. A
// graph that captured a launch retains a user object; what its end releases is handed over here,
// because nothing may be unmapped inside that callback, and is freed at the next entry of the
// module.
#pragma once
#include <memory>
#include <vector>

#include "backend/cuda/driver.h"

namespace fccl {

using KeptMemory = std::vector<std::shared_ptr<void>>;

// What the graphs of one communicator hold together. The last owner's end makes it garbage.
class GraphHold {
 public:
  ~GraphHold();
  KeptMemory kept;  // filled when the communicator ends
};

// `graph` keeps `hold` until it and all its executables are gone.
Status retain(cudaGraph_t graph, const std::shared_ptr<GraphHold>& hold);

// Frees what graphs have let go of.
void free_garbage();
// Never frees: kernels may still be queued on a stream that does not move.
void keep_for_good(KeptMemory memory);

}  // namespace fccl
