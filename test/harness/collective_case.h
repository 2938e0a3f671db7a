// One plain collective through the C ABI: its inputs, the bits it must give, and the check that
// what was sent is untouched.
#pragma once
#include <fccl/fccl.h>

#include <string>

#include "device/layout/args.h"

namespace fccl::test {

struct CollectiveCase {
  OpKind op = OpKind::AllReduce;
  TypeKind type = TypeKind::F32;
  int64_t count = 0;
  fcclRedOp_t fold = fcclSum;
  int root = 0;
  bool in_place = false;

  std::string text() const;
};

// The same for equal arguments.
CollectiveCase collective_case(uint64_t seed, uint64_t i, int ranks);

struct CollectiveAnswer {
  fcclResult_t code = fcclSuccess;
  std::string error;  // what is wrong: the failure of the call or the first wrong element; or ""
};
// `launch` picks the inputs.
CollectiveAnswer call_collective(const CollectiveCase& c, uint64_t launch, fcclComm_t comm,
                                 int rank, int ranks);

}  // namespace fccl::test
