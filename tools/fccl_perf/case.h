// One line of the table: an operation on one shape. Made by sweep() from the options, on every rank
// alike.
#pragma once

#include <cstdint>
#include <vector>

#include "fccl_perf/options.h"

namespace perf {

struct Case {
  Op op = Op::kFused;
  int datatype = 0;
  // fused and unfused
  int64_t tokens = 0;
  int64_t hidden = 0;
  // plain collectives
  int redop = 0;
  int root = -1;
  // elements of the send and of the receive buffer, and nccl-tests' count column
  int64_t send_count = 0;
  int64_t recv_count = 0;
  int64_t count = 0;
  int64_t bytes = 0;  // nccl-tests' size column; of one [tokens, hidden] tensor
};

// All cases of one sweep, in the order of the table.
std::vector<Case> sweep(const Options& options, int ranks);

// nccl-tests' bus bandwidth over algorithm bandwidth.
double bus_factor(Op op, int ranks);

}  // namespace perf
