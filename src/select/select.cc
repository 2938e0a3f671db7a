// Which algorithm, in how many launches. The same steps for every call: what can serve it, what was
// forced, what is cheapest, how it is cut.
#include <algorithm>
#include <cstdio>

#include "device/types/units.h"
#include "select/algorithms.h"
#include "select/plan.h"

namespace fccl {
namespace {

constexpr uint64_t kPack = 16;
constexpr int64_t kMostLaunchRows = int64_t{1}
                                    << 24;  // rows of a launch are an int32 on the device

int64_t packs_of(const Request& r) {
  const int per_pack = static_cast<int>(kPack) / element_bytes(r.type);
  return (r.hidden + per_pack - 1) / per_pack;
}

// Empty: it can. Otherwise why not.
std::string cannot_serve(const Request& r, AlgoKind algo, ProtocolKind protocol) {
  if (r.op == OpKind::FusedNorm) {
    if (r.row_sharded && algo != AlgoKind::TwoshotRows)
      return "a row-sharded residual needs row ownership";
    if (r.wants_sum && algo != AlgoKind::Oneshot) return "allreduce_out needs a one-shot algorithm";
    return "";
  }
  if (protocol == ProtocolKind::LL) return "LL serves the fused call only";
  if (algo == AlgoKind::TwoshotCols) return "column ownership serves the fused call only";
  if (r.op != OpKind::AllReduce && algo != AlgoKind::Oneshot) return "this collective has one hop";
  return "";
}

// Rows of one launch: of the tensor, or of each owner where rows are owned. 0: not even one fits.
int64_t rows_per_launch(const Request& r, const Situation& s, AlgoKind algo,
                        ProtocolKind protocol) {
  const Region& region = protocol == ProtocolKind::Lamport ? s.layout.lamport
                         : protocol == ProtocolKind::LL    ? s.layout.ll
                                                           : s.layout.staging;
  const uint64_t slot = hop_bytes(region, s.facts.ranks, algo != AlgoKind::Oneshot);
  uint64_t row = static_cast<uint64_t>(packs_of(r)) * kPack;
  if (protocol == ProtocolKind::LL) row *= 2;
  if (algo == AlgoKind::TwoshotCols) {
    const Units units = units_of_row(static_cast<int>(r.hidden),
                                     static_cast<int>(packs_of(r)),
                                     static_cast<int>(kPack) / element_bytes(r.type));
    const ColumnSlots slots = column_slots(units, s.facts.ranks);
    row = static_cast<uint64_t>(slots.packs + slots.sum_packs) * kPack;
  }
  return std::min(static_cast<int64_t>(slot / row), kMostLaunchRows);
}

void cut(const Request& r, const Situation& s, Plan& plan) {
  const int ranks = s.facts.ranks;
  const bool owned = plan.algo == AlgoKind::TwoshotRows;
  const int64_t fit =
      ranks == 1 ? kMostLaunchRows : rows_per_launch(r, s, plan.algo, plan.protocol);
  const int64_t rows = owned ? (r.rows + ranks - 1) / ranks : r.rows;
  plan.capacity_bytes = static_cast<uint64_t>(fit) * static_cast<uint64_t>(packs_of(r)) * kPack *
                        (owned ? static_cast<uint64_t>(ranks) : 1);
  plan.launches = (rows + fit - 1) / fit;
  plan.chunk_rows = plan.launches <= 1 ? rows : (rows + plan.launches - 1) / plan.launches;
  // A tile is what is pushed before it is waited for. On a CPU, which takes them one after the
  // other: large enough that its arrival costs little, small enough that peers start early. On a
  // GPU, where each block takes one: a row. Arrivals by flags need a pad for each tile.
  constexpr int64_t kTileBytes = 64 << 10;
  const bool cpu = s.backend == BackendKind::Cpu;
  const int64_t by_bytes = cpu ? kTileBytes / (packs_of(r) * static_cast<int64_t>(kPack)) : 1;
  const bool pads = plan.protocol == ProtocolKind::Flags;
  const int64_t by_pads = pads ? (plan.chunk_rows + kMaxTiles - 1) / kMaxTiles : 1;
  plan.tile_rows = static_cast<int32_t>(std::max({int64_t{1}, by_bytes, by_pads}));
  // Where ranks share CPUs a fixed owner waits for its turn when all have arrived.
  plan.last_reduces = cpu && s.facts.oversubscribed && pads && owned && r.rows == 1 &&
                      r.op == OpKind::FusedNorm && !r.row_sharded;
}

uint64_t tensor_bytes(const Request& r) {
  return static_cast<uint64_t>(r.rows) * static_cast<uint64_t>(packs_of(r)) * kPack;
}

double cost_us(const Request& r, const Situation& s, const CostRow& row, const Plan& plan) {
  constexpr double kRollCall = 0.7;  // of a fixed owner's time, measured with 3 to 8 ranks, 2 CPUs
  const Volume v = volume_of(row.algo, row.protocol, s.facts.ranks, tensor_bytes(r));
  const double us = static_cast<double>(plan.launches) * row.fixed_us +
                    v.pushed * row.us_per_mib_pushed + v.local * row.us_per_mib_local;
  return plan.last_reduces && !row.measured ? kRollCall * us : us;
}

const CostRow* cost_row(const Situation& s, AlgoKind algo, ProtocolKind protocol) {
  const CostRow* best = nullptr;
  for (const CostRow& row : s.costs)
    if (row.algo == algo && row.protocol == protocol && row.min_ranks <= s.facts.ranks &&
        (best == nullptr || row.min_ranks > best->min_ranks))
      best = &row;
  return best;
}

Plan refuse(Code code, std::string reason) {
  Plan plan;
  plan.code = code;
  plan.reason = std::move(reason);
  return plan;
}

// The plan if this algorithm is taken.
Plan plan_with(const Request& r, const Situation& s, AlgoKind algo, ProtocolKind protocol) {
  const std::string why_not = cannot_serve(r, algo, protocol);
  if (!why_not.empty())
    return refuse(Code::Unsupported, std::string(algorithm_name(algo, protocol)) + ": " + why_not);
  if (s.facts.ranks > 1 && rows_per_launch(r, s, algo, protocol) == 0) {
    char text[256];
    std::snprintf(
        text,
        sizeof text,
        "%s: a row of %lld elements does not fit into the workspace; raise config.hidden and "
        "config.max_tokens, or FCCL_WORKSPACE_BYTES, on all ranks",
        algorithm_name(algo, protocol),
        static_cast<long long>(r.hidden));
    return refuse(Code::OutOfResources, text);
  }
  Plan plan;
  plan.supported = true;
  plan.algo = algo;
  plan.protocol = protocol;
  cut(r, s, plan);
  const Volume v = volume_of(algo, protocol, s.facts.ranks, tensor_bytes(r));
  plan.wire_bytes = static_cast<uint64_t>(v.pushed * 1048576.0);
  const CostRow* row = cost_row(s, algo, protocol);
  plan.max_blocks = s.max_blocks;
  if (row != nullptr && row->max_blocks != 0 &&
      (plan.max_blocks == 0 || row->max_blocks < plan.max_blocks))
    plan.max_blocks = row->max_blocks;
  return plan;
}

Plan cheapest(const Request& r, const Situation& s) {
  Plan best = refuse(Code::Unsupported, "no algorithm serves this call");
  double best_us = 0;
  for (const auto& [algo, protocol] : all_algorithms()) {
    const CostRow* row = cost_row(s, algo, protocol);
    if (row == nullptr) continue;
    Plan plan = plan_with(r, s, algo, protocol);
    if (!plan.supported) {
      if (!best.supported && plan.code == Code::OutOfResources) best = std::move(plan);
      continue;
    }
    const double us = cost_us(r, s, *row, plan);
    if (best.supported && us >= best_us) continue;
    best = std::move(plan);
    best_us = us;
  }
  if (best.supported) {
    char text[160];
    std::snprintf(text,
                  sizeof text,
                  "cheapest by the cost table: %.1f us expected for %llu bytes%s",
                  best_us,
                  static_cast<unsigned long long>(tensor_bytes(r)),
                  best.last_reduces ? "; the last rank to arrive reduces" : "");
    best.reason = text;
  }
  return best;
}

}  // namespace

Plan make_plan(const Request& r, const Situation& s) {
  if (r.rows == 0) {
    Plan nothing;
    nothing.supported = true;
    nothing.reason = "no rows: nothing is launched";
    return nothing;
  }
  if (s.facts.ranks == 1) {
    // Flags: with nobody to wait for, the one protocol that has nothing to poll.
    Plan plan = plan_with(Request{r.op, r.type, r.rows, r.hidden, false, r.wants_sum},
                          s,
                          AlgoKind::Oneshot,
                          ProtocolKind::Flags);
    plan.reason = "one rank: no exchange";
    plan.wire_bytes = 0;
    return plan;
  }
  if (!s.algo.empty() && (r.op == OpKind::FusedNorm || r.op == OpKind::AllReduce)) {
    auto forced = parse_algo_setting(s.algo);
    if (!forced.ok()) return refuse(forced.status().code(), forced.status().text());
    for (const ForcedAlgorithm& f : *forced) {
      if (tensor_bytes(r) > f.up_to_bytes) continue;
      // What only the fused call can use leaves the plain all-reduce its own choice.
      if (r.op == OpKind::AllReduce && !cannot_serve(r, f.algo, f.protocol).empty()) break;
      Plan plan = plan_with(r, s, f.algo, f.protocol);
      plan.reason = plan.supported ? "forced by FCCL_ALGO" : "FCCL_ALGO: " + plan.reason;
      return plan;
    }
  }
  return cheapest(r, s);
}

}  // namespace fccl
