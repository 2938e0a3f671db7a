// The fused call: validate -> request -> plan -> launches.
#pragma once
#include <fccl/fccl.h>

#include "comm/communicator.h"

namespace fccl {

// What the arguments ask for, or what is wrong with them; changes nothing. `structure_only`:
// pointers are looked at for NULL of the optional ones only (queries).
Result<Request> check_fused(const fcclFusedArgs& args, int ranks, int rank, bool structure_only);

Status all_reduce_residual_rmsnorm(const fcclFusedArgs& args, Communicator& comm, void* stream);

}  // namespace fccl
