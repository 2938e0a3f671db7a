// Short calls for the tests of reports: contiguous matrices in, matrices out.
#pragma once
#include <fccl/fccl.h>

#include <cmath>
#include <optional>

#include "harness/catch.h"
#include "harness/comm_case.h"
#include "harness/ranks.h"
#include "harness/reference.h"

namespace fccl::test {

extern const char* const kAllAlgorithms[7];

Matrix filled(TypeKind type, int64_t rows, int64_t columns, double value);

struct Fused {
  Matrix x;
  std::optional<Matrix> residual;
  Matrix weight;
  float eps = 1e-6f;
  Matrix residual_out;  // results
  Matrix norm_out;

  // Issues the call; "" or what it said.
  std::string call(fcclComm_t comm);
};

// In place sum of `count` elements at `data`.
std::string sum_in_place(fcclComm_t comm, Matrix& data);

// A query of the fused call for this shape.
fcclPlanInfo plan_of(fcclComm_t comm, int64_t tokens, int64_t hidden, int32_t datatype);

// Sleeps 0 to 2 ms, by the seed.
void jitter(uint64_t seed);

}  // namespace fccl::test
