// Time of the fused call in a graph, as ANCHORS' figures were taken: many calls in one graph, the
// least of the replays.
#pragma once
#include "gpu/abi_world.h"

namespace fccl::test {

// Prints a line per shape. Every rank of the communicator must call it.
std::string print_speed(AbiRank& rank, const char* title);

}  // namespace fccl::test
