// Inputs of the tests. They change with every launch, with a period that shares no factor with the
// three generations of a mailbox or the two of staging, so that stale data never looks right. Rows
// take turns at being nasty: negative zeros, subnormals, NaNs with payload (whole 0xFFFFFFFF words
// too), infinities, numbers that overflow in the sum.
#pragma once
#include "harness/matrix.h"

namespace fccl::test {

enum class Nature { Ordinary, WideRange, NegativeZero, Subnormal, NotFinite, Huge };
constexpr int kNatures = 6;
constexpr uint64_t kInputPeriod = 35;

// Of a row of the launch with this number; equal on all ranks.
Nature nature_of(uint64_t launch, int64_t row);

// What rank `rank` brings to launch number `launch`. rank -1: the residual.
Matrix make_input(TypeKind type, int64_t rows, int64_t columns, uint64_t launch, int rank);
// A vector of weights about 1 with some negative, zero and -0; or a bias about 0.
Matrix make_weight(TypeKind type, int64_t columns, uint64_t launch);
Matrix make_bias(TypeKind type, int64_t columns, uint64_t launch);

}  // namespace fccl::test
