// The ways to a communicator: by unique id, all ranks in this process, by the caller's allgather,
// by splitting. Each makes a handle only after init is done (or has begun, where init does not
// block).
#pragma once
#include <fccl/fccl.h>

#include "comm/communicator.h"

namespace fccl {

Status make_by_id(const fcclConfig& config, int ranks, int rank, const fcclUniqueId& id,
                  fcclComm_t* out);
Status make_all(const fcclConfig& config, int ranks, const int* devices, fcclComm_t* out);
Status make_by_allgather(const fcclConfig& config, int ranks, int rank, fcclAllgather_t allgather,
                         void* context, fcclComm_t* out);
Status make_by_split(Communicator& parent, int color, int key, const fcclConfig* config,
                     fcclComm_t* out);

}  // namespace fccl
