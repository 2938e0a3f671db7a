#include "fccl_perf/contestant.h"

#include <fmt/format.h>

#include "fccl_perf/local_norm.h"

namespace perf {
namespace {

class FusedCall : public Contestant {
 public:
  explicit FusedCall(const Bench& bench) : bench_(bench) {}
  std::string name() const override { return "fused"; }
  std::string description() const override { return "fcclAllReduceResidualRMSNormEx"; }
  Outcome prepare(const Case&) override { return {}; }
  Outcome call(const Case& one, const Operands& operands) override {
    const fcclFusedArgs args = fused_args(*bench_.options, one, operands);
    const fcclResult_t result =
        fcclAllReduceResidualRMSNormEx(&args, bench_.comm, bench_.device->stream());
    return fccl_outcome(result, bench_.comm, "fcclAllReduceResidualRMSNormEx");
  }
  bool shards() const override { return bench_.options->row_sharded; }
  bool canonical_nan() const override { return true; }
  Plan plan(const Case& one, const Operands& operands) override {
    const fcclFusedArgs args = fused_args(*bench_.options, one, operands);
    fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
    if (fcclCommQuery(bench_.comm, &args, &info) != fcclSuccess) return {};
    return {info.algorithm_name, info.launches, info.wire_bytes, info.blocks};
  }

 private:
  Bench bench_;
};

class UnfusedCall : public Contestant {
 public:
  explicit UnfusedCall(const Bench& bench) : bench_(bench), norm_(bench) {}
  std::string name() const override { return "unfused"; }
  std::string description() const override { return "fcclAllReduce, then " + norm_.description(); }
  Outcome prepare(const Case& one) override {
    PERF_TRY(sum_.reserve(bench_.device, nullptr, 0, static_cast<std::size_t>(one.bytes), 0));
    return norm_.prepare(one);
  }
  Outcome call(const Case& one, const Operands& operands) override {
    const auto datatype = static_cast<fcclDataType_t>(one.datatype);
    const fcclResult_t result = fcclAllReduce(operands.input,
                                              sum_.data(),
                                              static_cast<std::size_t>(one.count),
                                              datatype,
                                              fcclSum,
                                              bench_.comm,
                                              bench_.device->stream());
    PERF_TRY(fccl_outcome(result, bench_.comm, "fcclAllReduce"));
    return norm_.run(one, operands, sum_.data(), one.datatype);
  }

 private:
  Bench bench_;
  Norm norm_;
  Buffer sum_;
};

class PlainCall : public Contestant {
 public:
  explicit PlainCall(const Bench& bench) : bench_(bench) {}
  std::string name() const override { return op_name(bench_.options->op); }
  std::string description() const override { return fmt::format("fccl's {}", name()); }
  bool canonical_nan() const override { return true; }
  Outcome prepare(const Case&) override { return {}; }
  Outcome call(const Case& one, const Operands& operands) override {
    return fccl_outcome(issue(one, operands), bench_.comm, op_name(one.op));
  }

 private:
  fcclResult_t issue(const Case& one, const Operands& o) {
    const auto type = static_cast<fcclDataType_t>(one.datatype);
    const auto redop = static_cast<fcclRedOp_t>(one.redop);
    const auto send = static_cast<std::size_t>(one.send_count);
    const auto receive = static_cast<std::size_t>(one.recv_count);
    fcclStream_t stream = bench_.device->stream();
    switch (one.op) {
      case Op::kReduceScatter:
        return fcclReduceScatter(o.input, o.norm_out, receive, type, redop, bench_.comm, stream);
      case Op::kAllGather:
        return fcclAllGather(o.input, o.norm_out, send, type, bench_.comm, stream);
      case Op::kBroadcast:
        return fcclBroadcast(o.input, o.norm_out, send, type, one.root, bench_.comm, stream);
      default:
        return fcclAllReduce(o.input, o.norm_out, send, type, redop, bench_.comm, stream);
    }
  }
  Bench bench_;
};

}  // namespace

Outcome fccl_outcome(fcclResult_t result, fcclComm_t comm, const char* what) {
  if (result == fcclSuccess) return {};
  return Outcome::failure(
      fmt::format("{}: {}: {}", what, fcclGetErrorString(result), fcclGetLastError(comm)));
}

fcclFusedArgs fused_args(const Options& options, const Case& one, const Operands& operands) {
  fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
  args.tokens = one.tokens;
  args.hidden = one.hidden;
  args.datatype = one.datatype;
  args.weight_type = options.weight_f32 ? static_cast<int32_t>(fcclFloat32) : 0;
  args.weight_offset = options.weight_offset;
  args.numerics = options.numerics;
  args.residual_layout = options.row_sharded ? FCCL_RESIDUAL_ROW_SHARDED : FCCL_RESIDUAL_REPLICATED;
  args.eps = options.eps;
  if (options.stable_weight) args.flags |= FCCL_WEIGHT_STABLE;
  if (options.stable_inputs) args.flags |= FCCL_INPUTS_STABLE;
  if (options.early_trigger) args.flags |= FCCL_EARLY_TRIGGER;
  args.input = operands.input;
  args.residual = operands.residual;
  args.weight = operands.weight;
  args.bias = operands.bias;
  args.residual_out.ptr = operands.residual_out;
  args.norm_out.ptr = operands.norm_out;
  args.allreduce_out.ptr = operands.allreduce_out;
  return args;
}

Norm::~Norm() {
  if (alone_ != nullptr) static_cast<void>(fcclCommDestroy(alone_));
}

bool Norm::local() const {
  const Options& o = *bench_.options;
  return bench_.device->is_cpu() && !o.bias && !o.weight_f32 && o.weight_offset == 0 &&
         o.numerics == 0 && !o.allreduce_out;
}

std::string Norm::description() const {
  return local() ? fmt::format("a vectorised norm ({})", local_norm_level())
                 : "fccl's kernel on one rank as the norm";
}

Outcome Norm::prepare(const Case&) {
  if (local() || alone_ != nullptr) return {};
  fcclUniqueId id;
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  config.backend = bench_.device->is_cpu() ? fcclBackendCpu : fcclBackendCuda;
  config.device = bench_.device->is_cpu() ? 0 : FCCL_DEVICE(bench_.device->ordinal());
  PERF_TRY(fccl_outcome(fcclGetUniqueId(&id), nullptr, "fcclGetUniqueId"));
  return fccl_outcome(fcclCommInitRankConfig(&alone_, 1, &id, 0, &config),
                      nullptr,
                      "fcclCommInitRankConfig (norm)");
}

Outcome Norm::run(const Case& one, const Operands& operands, const void* sum, int sum_type) {
  if (!local()) {
    Operands mine = operands;
    mine.input = sum;
    fcclFusedArgs args = fused_args(*bench_.options, one, mine);
    args.residual_layout = FCCL_RESIDUAL_REPLICATED;
    args.flags = 0;
    return fccl_outcome(
        fcclAllReduceResidualRMSNormEx(&args, alone_, bench_.device->stream()), alone_, "norm");
  }
  LocalNorm norm;
  norm.sum = sum;
  norm.residual = operands.residual;
  norm.weight = operands.weight;
  norm.residual_out = operands.residual_out;
  norm.norm_out = operands.norm_out;
  norm.tokens = one.tokens;
  norm.hidden = one.hidden;
  norm.datatype = one.datatype;
  norm.sum_type = sum_type;
  norm.eps = bench_.options->eps;
  run_local_norm(norm);
  return {};
}

std::unique_ptr<Contestant> make_contestant(const Bench& bench, Op op) {
  if (op == Op::kFused) return std::make_unique<FusedCall>(bench);
  if (op == Op::kUnfused) return std::make_unique<UnfusedCall>(bench);
  return std::make_unique<PlainCall>(bench);
}

std::unique_ptr<Contestant> make_peer(const Bench& bench, const std::string& name,
                                      std::string& problem) {
  if (name == "fused") return make_contestant(bench, Op::kFused);
  if (name == "unfused") return make_contestant(bench, Op::kUnfused);
  if (name == "nccl") return make_nccl_peer(bench, problem);
  return make_plugin_peer(bench, name, problem);
}

}  // namespace perf
