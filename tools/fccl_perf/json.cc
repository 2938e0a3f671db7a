// The report as JSON; fccl_perf.schema.json documents it. One entry of "results" for each (op,
// bytes, type, algorithm, in-place, method).
#include <fccl/fccl.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fccl_perf/writers.h"

namespace perf {
namespace {

using Json = nlohmann::ordered_json;

Json summary_json(const Summary& s) {
  Json json = {{"samples", s.samples},
               {"mean", s.mean},
               {"min", s.min},
               {"p50", s.p50},
               {"p90", s.p90},
               {"p99", nullptr},
               {"max", s.max}};
  if (s.p99) json["p99"] = *s.p99;
  return json;
}

Json peer_json(const PeerResult& peer) {
  Json json = {{"name", peer.name}};
  if (!peer.problem.empty()) {
    json["problem"] = peer.problem;
    return json;
  }
  json["description"] = peer.description;
  json["us"] = peer.us;
  json["own_us"] = peer.own_us;
  json["time_us"] = summary_json(peer.summary);
  json["ratio"] = {
      {"value", peer.ratio.value}, {"low95", peer.ratio.low}, {"high95", peer.ratio.high}};
  json["wrong"] = peer.wrong;
  return json;
}

Json result_json(const Options& options, const Report& report, const Result& result) {
  const Case& one = result.one;
  const bool fused = is_fused_shape(one.op);
  Json json = {{"op", op_name(one.op)},
               {"cycle", result.cycle},
               {"tokens", fused ? Json(one.tokens) : Json(nullptr)},
               {"hidden", fused ? Json(one.hidden) : Json(nullptr)},
               {"size", one.bytes},
               {"count", one.count},
               {"type", type_name(one.datatype)},
               {"redop", fused ? "sum" : redop_name(one.redop)},
               {"root", one.root},
               {"in_place", result.in_place},
               {"unalign", options.unalign},
               {"algorithm", result.plan.algorithm},
               {"launches", result.plan.launches},
               {"blocks", result.plan.blocks},
               {"wire_bytes", result.plan.wire_bytes},
               {"method", report.mode},
               {"time", result.time_us},
               {"host_time", result.host_us},
               {"time_us", summary_json(result.summary)},
               {"noise", result.noise},
               {"alg_bw", result.algbw},
               {"bus_bw", result.busbw}};
  json["nwrong"] = result.checks > 0 ? Json(result.wrong) : Json(nullptr);
  json["first_wrong"] = result.first_wrong;
  json["samples_us"] = result.samples;
  json["peers"] = Json::array();
  for (const PeerResult& peer : result.peers) json["peers"].push_back(peer_json(peer));
  return json;
}

Json config_json(const Options& options, const Report& report) {
  static constexpr const char* kAverage[] = {"rank0", "mean", "min", "max"};
  return {{"ranks", report.ranks},
          {"nthreads", options.threads},
          {"ngpus", options.gpus},
          {"backend", report.cpu ? "cpu" : "cuda"},
          {"minimum_bytes", options.min_bytes},
          {"maximum_bytes", options.max_bytes},
          {"step_bytes", options.step_bytes},
          {"step_factor", options.step_factor},
          {"warmup_iters", options.warmup},
          {"iterations", options.iterations},
          {"aggregated_iterations", options.aggregate},
          {"validation", options.check},
          {"graph", options.replays},
          {"method", report.mode},
          {"over_ranks", kAverage[options.average]},
          {"rotate", options.rotate},
          {"cold", options.cold},
          {"gap_us", options.gap_us},
          {"skew_us", options.skew_us},
          {"rounds", options.peers.empty() ? 0 : options.rounds},
          {"order", options.peers.empty() ? "single" : "alternating"},
          {"algo", options.algo},
          {"eps", options.eps},
          {"residual", options.residual},
          {"row_sharded", options.row_sharded},
          {"bias", options.bias},
          {"numerics", options.numerics == 0 ? "fused" : "as_unfused"},
          {"weight_offset", options.weight_offset},
          {"seed", options.seed}};
}

}  // namespace

std::string json_text(const Options& options, const Report& report) {
  int library = 0;
  static_cast<void>(fcclGetVersion(&library));
  Json json = {
      {"schema", "fccl_perf"},
      {"schema_version", kJsonSchemaVersion},
      {"start_time", report.start_time},
      {"end_time", report.end_time},
      {"args", options.command_line},
      {"fccl_version", library},
      {"tolerance",
       {{"exact", "all_reduce, reduce_scatter, all_gather, broadcast, residual_out, allreduce_out"},
        {"norm_out_ulp", {{"float", 4}, {"half", 1}, {"bfloat16", 1}}}}},
      {"config", config_json(options, report)}};
  json["devices"] = Json::array();
  for (const RankInfo& rank : report.devices) {
    json["devices"].push_back({{"rank", rank.rank},
                               {"pid", rank.pid},
                               {"hostname", rank.host},
                               {"device", rank.device},
                               {"device_hex", rank.bus_id},
                               {"device_info", rank.name}});
  }
  json["notes"] = report.notes;
  json["results"] = Json::array();
  for (const Result& result : report.results)
    json["results"].push_back(result_json(options, report, result));
  json["out_of_bounds"] = {{"count", report.wrong}, {"okay", report.wrong == 0}};
  json["average_bus_bandwidth"] = report.bus_bandwidth;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace perf
