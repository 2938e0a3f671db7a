// The plain collectives: flat buffers, seen as rows of whole packs of which the last may be
// shorter.
#pragma once
#include <fccl/fccl.h>

#include "comm/communicator.h"

namespace fccl {

struct CollectiveArgs {
  OpKind op = OpKind::AllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;  // elements: of the whole (all_reduce, broadcast) or of one rank's part
  int32_t datatype = 0;
  int32_t reduction = fcclSum;
  int32_t root = 0;
};

Status collective(const CollectiveArgs& args, Communicator& comm, void* stream);

}  // namespace fccl
