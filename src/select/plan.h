// Select: Request x Situation -> Plan, a pure function. No I/O, no clock, no device: equal input
// gives an equal plan on every rank. What is local (capture, alignment, strides, aliasing) is not
// asked.
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
  int64_t rows = 0;  // tokens
  int64_t hidden = 0;  // elements of a row
  bool row_sharded = false;  // residual
  bool wants_sum = false;  // allreduce_out
  bool operator==(const Request&) const = default;
};
struct RequestHash {
  size_t operator()(const Request& r) const {
    const uint64_t bits = static_cast<uint64_t>(r.rows) * 0x9E3779B97F4A7C15u ^
                          static_cast<uint64_t>(r.hidden) * 0xC2B2AE3D27D4EB4Fu ^
                          static_cast<uint64_t>(r.op) << 8 ^ static_cast<uint64_t>(r.type) << 4 ^
                          (r.row_sharded ? 2u : 0u) ^ (r.wants_sum ? 1u : 0u);
    return static_cast<size_t>(bits ^ bits >> 29);
  }
};

// The cost of one launch is a line: fixed_us + us_per_mib_pushed * pushed + us_per_mib_local *
// local, with the volumes of volume_of(). Measured by fccl_perf --tune, or the built-in table of
// the backend.
struct CostRow {
  AlgoKind algo = AlgoKind::Oneshot;
  ProtocolKind protocol = ProtocolKind::Lamport;
  int min_ranks = 0;  // rows with the highest min_ranks that is not above the ranks win
  double fixed_us = 0;
  double us_per_mib_pushed = 0;
  double us_per_mib_local = 0;
  int max_blocks = 0;  // that a launch takes at most; 0: the backend's own choice
  bool measured = false;  // from a tuner file: a roll call is in its figures
};

// What is agreed: equal on all ranks.
struct Situation {
  BackendKind backend = BackendKind::Cpu;
  CommFacts facts;
  WorkspaceLayout layout;
  std::string algo;  // FCCL_ALGO
  int max_blocks = 0;  // FCCL_MAX_BLOCKS
  std::vector<CostRow> costs;  // of this backend and machine, or from a tuner file
};

// MiB that one rank pushes and touches, for a tensor of `bytes`.
struct Volume {
  double pushed = 0;
  double local = 0;
};
Volume volume_of(AlgoKind algo, ProtocolKind protocol, int ranks, uint64_t bytes);

// The built-in table for these facts.
std::vector<CostRow> builtin_costs(BackendKind backend, const CommFacts& facts);

struct Plan {
  bool supported = false;
  Code code = Code::Success;  // why not: Unsupported, OutOfResources
  std::string reason;
  AlgoKind algo = AlgoKind::Oneshot;
  ProtocolKind protocol = ProtocolKind::Lamport;
  int64_t launches = 0;
  int64_t chunk_rows = 0;  // rows of one launch (of each owner, where rows are owned)
  int32_t tile_rows = 1;
  uint64_t capacity_bytes = 0;
  uint64_t wire_bytes = 0;  // pushed by one rank in the whole call
  int max_blocks = 0;  // of a launch; 0: the backend's own choice
  bool last_reduces = false;  // kLastReduces
};

Plan make_plan(const Request& request, const Situation& situation);

}  // namespace fccl
