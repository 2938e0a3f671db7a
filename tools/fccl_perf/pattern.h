// The data of a run and its true results. Every element is a pure function of (seed, rank, index),
// a small multiple of 1/32 chosen so that the sum over the ranks is exact in every element type and
// in any order of summation. The truth is computed in double and rounded once where the interface
// says so.
#pragma once

#include <cstdint>
#include <vector>

#include "fccl_perf/case.h"

namespace perf {

struct Pattern {
  uint64_t seed = 1;
  int ranks = 1;
  bool special = false;  // rows (or elements) with NaN and Inf

  double input(const Case& one, int rank, int64_t index) const;
  double residual(int64_t index) const;
  // Weight and bias stay the same for every seed.
  double weight(int64_t column, bool offset) const;
  double bias(int64_t column) const;
};

// The truth of one row of the fused call.
struct TrueRow {
  std::vector<double> sum;
  std::vector<double> residual_out;
  std::vector<double> norm_out;  // not rounded
};
void true_row(const Pattern& pattern, const Options& options, const Case& one, int64_t row,
              TrueRow& truth);

// The truth of element `index` of the receive buffer of `rank` in a plain collective.
double true_element(const Pattern& pattern, const Case& one, int rank, int64_t index);

}  // namespace perf
