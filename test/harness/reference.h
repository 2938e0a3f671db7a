// The scalar reference: the numbers contract, one step after the other, in plain C++ that shares no
// code with the kernels. Results of every algorithm, rank, backend and level must have these bits.
// Beside it, the same formula in double: how far the contract itself is from the exact result.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "harness/matrix.h"

namespace fccl::test {

struct FusedInputs {
  std::vector<Matrix> x;  // of each rank, [tokens, hidden]
  std::optional<Matrix> residual;  // [tokens, hidden]
  Matrix weight;  // [1, hidden], T or f32
  std::optional<Matrix> bias;  // [1, hidden], T or f32
  float eps = 1e-6f;
  bool weight_plus_one = false;
  bool as_unfused = false;

  TypeKind type() const { return x[0].type(); }
  int64_t tokens() const { return x[0].rows(); }
  int64_t hidden() const { return x[0].columns(); }
};

struct FusedOutputs {
  Matrix sum;  // allreduce_out
  Matrix residual_out;
  Matrix norm_out;
};

FusedOutputs fused_reference(const FusedInputs& in);

// Sum of squares by the perfect binary tree over the element index: the leaf pair is
// fma(x1, x1, x0 * x0), absent elements are +0.
float tree_of_squares(const std::vector<float>& x);

// Where `out` leaves the bounds that hold against float64, or "": norm_out within 1 unit in the
// last place (4 for f32) of the exact norm of residual_out; residual_out within half a unit and the
// error of an fp32 sum of its exact value. Rows with values that are not finite are left out.
std::string outside_float64_bounds(const FusedInputs& in, const FusedOutputs& out);

// Plain reductions: fold in rank order in fp32, one rounding. op: NCCL's numbers.
Matrix reduce_reference(const std::vector<Matrix>& x, int op);
// A copy in which every NaN is the canonical one.
Matrix copy_reference(const Matrix& x);

}  // namespace fccl::test
