// A fused case (kernel_case.h) through the C ABI: the same inputs, buffers and expected bits, with
// a communicator in place of a bare window. What a plan decides (level, tiles, blocks, chunks) is
// not looked at.
#pragma once
#include <fccl/fccl.h>

#include "harness/kernel_case.h"

namespace fccl::test {

int32_t datatype_of(TypeKind type);

// The arguments for a rank's buffers.
fcclFusedArgs args_of(const KernelCase& c, RankBuffers& b);

// Issues the call and checks all buffers. Returns what is wrong, or "".
std::string call_case(fcclComm_t comm, int rank, const KernelCase& c, const KernelProblem& problem);

}  // namespace fccl::test
