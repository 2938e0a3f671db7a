// Select: Request x Situation -> Plan, a pure function. No I/O, no clock, no device: equal input gives
// an equal plan on every rank. What is local (capture, alignment, strides, aliasing) is not asked.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "device/layout/workspace.h"
#include "topology/facts.h"

namespace fccl {

// What is asked for: equal on all ranks.
struct Request {
  OpKind op = OpKind::FusedNorm;
  TypeKind type = TypeKind::BF16;
  int64_t rows = 0;    // tokens
  int64_t hidden = 0;  // elements of a row
  bool row_sharded = false;    // residual
  bool wants_sum = false;      // allreduce_out
};

// What is agreed: equal on all ranks.
struct Situation {
  BackendKind backend = BackendKind::Cpu;
  CommFacts facts;
  LaunchLimits limits;       // the least over ranks
  WorkspaceLayout layout;
  int ranks_on_device = 1;
  int max_blocks = 0;        // config; 0: none
  std::string algo;          // FCCL_ALGO
  std::vector<struct CostRow> tuned;  // from a tuner file; empty: the built-in table
};

// A measured or modelled cost: time = fixed_us + bytes / bytes_per_us, for tensors of [low, high) bytes.
struct CostRow {
  AlgoKind algo = AlgoKind::Oneshot;
  ProtocolKind protocol = ProtocolKind::Lamport;
  int ranks = 0;  // 0: any
  double fixed_us = 0;
  double us_per_mib_wire = 0;   // per MiB that this rank pushes
  double us_per_mib_local = 0;  // per MiB of the tensor, for local work
};

struct Plan {
  bool supported = false;
  Code code = Code::Success;  // why not: Unsupported, OutOfResources, InvalidArgument
  std::string reason;
  bool local = false;         // one rank: no exchange
  AlgoKind algo = AlgoKind::Oneshot;
  ProtocolKind protocol = ProtocolKind::Lamport;
  LaunchShape shape;
  int64_t launches = 0;
  int64_t chunk_rows = 0;     // rows of one launch (of each owner, where rows are owned)
  int32_t tile_rows = 1;
  uint64_t capacity_bytes = 0;
  uint64_t wire_bytes = 0;    // pushed by one rank in the whole call
};

const char* algorithm_name(AlgoKind algo, ProtocolKind protocol);  // "twoshot_rows", ...
int32_t algorithm_number(AlgoKind algo, ProtocolKind protocol);    // fcclAlgo_t

Plan make_plan(const Request& request, const Situation& situation);

// FCCL_ALGO: "name[:bytes],name[:bytes],..." each up to its size, the last for all above.
Status check_algo_setting(const std::string& setting);

}  // namespace fccl
