// A good local add + RMSNorm for CPU ranks: what a careful user would run after an engine's
// all_reduce. Vectorised, one pass for the sum and the squares, one for the output, the row kept in
// cache between.
#pragma once

#include <cstdint>

namespace perf {

struct LocalNorm {
  const void* sum = nullptr;  // [tokens, hidden] of sum_type
  const void* residual = nullptr;  // of datatype; null: none
  const void* weight = nullptr;
  void* residual_out = nullptr;  // null: not stored
  void* norm_out = nullptr;
  int64_t tokens = 0;
  int64_t hidden = 0;
  int datatype = 0;
  int sum_type = 0;  // datatype or float
  float eps = 0;
};

void run_local_norm(const LocalNorm& call);

// The conversions around an engine that reduces floats.
void widen(const void* from, float* to, int64_t count, int datatype);
void narrow(const float* from, void* to, int64_t count, int datatype);

// "avx512", "avx2" or "portable": what this machine runs.
const char* local_norm_level();

}  // namespace perf
