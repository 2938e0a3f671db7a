// Questions: of a communicator, and before there is one.
#include <cstdio>

#include "api/guard.h"
#include "api/structs.h"
#include "comm/query.h"
#include "memory/workspace.h"
#include "ops/fused.h"
#include "select/algorithms.h"
#include "topology/detect.h"

using namespace fccl;

namespace {

template <size_t kBytes>
void copy_text(char (&to)[kBytes], const std::string& text) {
  std::snprintf(to, kBytes, "%s", text.c_str());
}

Status settings_of(const fcclConfig* config, Settings* settings) {
  fcclConfig whole = FCCL_CONFIG_INITIALIZER;
  FCCL_TRY(read_struct("config", config, FCCL_CONFIG_MAGIC, &whole));
  FCCL_TRY_ASSIGN(made, make_settings(whole));
  *settings = std::move(made);
  return {};
}

fcclPlanInfo plan_info(const Plan& plan, const Situation& situation, const LaunchShape& shape) {
  fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
  info.supported = plan.supported ? 1 : 0;
  if (plan.supported && plan.launches > 0) {
    const bool local = situation.facts.ranks == 1;
    info.algorithm = local ? fcclAlgoLocal : algorithm_number(plan.algo, plan.protocol);
    copy_text(info.algorithm_name, local ? "local" : algorithm_name(plan.algo, plan.protocol));
    info.blocks = shape.blocks;
    info.threads = shape.threads;
  }
  info.launches = plan.launches;
  info.chunk_tokens = plan.chunk_rows;
  info.capacity_bytes = static_cast<int64_t>(plan.capacity_bytes);
  info.wire_bytes = static_cast<int64_t>(plan.wire_bytes);
  copy_text(info.reason, plan.reason);
  return info;
}

Status query(const fcclFusedArgs* args, int rank, const Situation& situation,
             DeviceContext* context, fcclPlanInfo* info) {
  if (args == nullptr) return null_argument("args");
  fcclFusedArgs whole = FCCL_FUSED_ARGS_INITIALIZER;
  FCCL_TRY(read_struct("args", args, FCCL_FUSED_ARGS_MAGIC, &whole));
  auto request = check_fused(whole, situation.facts.ranks, rank, true);
  Plan plan;
  LaunchShape shape;
  if (request.ok()) {
    plan = make_plan(*request, situation);
    if (context != nullptr && plan.supported && plan.launches > 0) {
      Launch launch;
      launch.id = KernelId{request->op, plan.algo, plan.protocol, request->type, true};
      launch.args = KernelArgs{};
      launch.args.ex.ranks = situation.facts.ranks;
      launch.args.ex.tile_rows = plan.tile_rows;
      launch.args.rows = static_cast<int32_t>(plan.chunk_rows);
      launch.args.chunk_rows = launch.args.rows;
      launch.args.total_rows = request->rows;
      launch.args.hidden = static_cast<int32_t>(request->hidden);
      launch.args.packs =
          static_cast<int32_t>((request->hidden * element_bytes(request->type) + 15) / 16);
      launch.max_blocks = plan.max_blocks;
      shape = context->shape_of(launch);
    }
  } else if (request.status().code() == Code::Unsupported) {
    plan.reason = request.status().text();
  } else {
    return request.status();
  }
  return write_struct("info", info, FCCL_PLAN_INFO_MAGIC, plan_info(plan, situation, shape));
}

}  // namespace

extern "C" {

fcclResult_t fcclCommCount(fcclComm_t comm, int* nranks) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    if (nranks == nullptr) return null_argument("nranks");
    *nranks = c.ranks();
    return {};
  });
}

fcclResult_t fcclCommUserRank(fcclComm_t comm, int* rank) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    if (rank == nullptr) return null_argument("rank");
    *rank = c.rank();
    return {};
  });
}

fcclResult_t fcclCommDevice(fcclComm_t comm, int* device) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    if (device == nullptr) return null_argument("device");
    *device = c.device();
    return {};
  });
}

fcclResult_t fcclCommBackend(fcclComm_t comm, int32_t* backend) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    if (backend == nullptr) return null_argument("backend");
    *backend = static_cast<int32_t>(c.backend()->kind());
    return {};
  });
}

fcclResult_t fcclWorkspaceBytes(int nranks, const fcclConfig* config, int64_t* bytes) {
  return guard([&]() -> Status {
    if (bytes == nullptr) return null_argument("bytes");
    if (nranks < 1 || nranks > kMaxRanks)
      return error(Code::InvalidArgument, "nranks is %d; allowed: 1 to %d", nranks, kMaxRanks);
    Settings settings;
    FCCL_TRY(settings_of(config, &settings));
    FCCL_TRY_ASSIGN(kind, expected_backend(settings));
    const WorkspaceLayout layout = workspace_layout(kind, nranks, settings.capacity_bytes);
    FCCL_TRY(check_workspace(layout));
    *bytes = static_cast<int64_t>(layout.bytes);
    return {};
  });
}

fcclResult_t fcclCommMemory(fcclComm_t comm, fcclMemoryInfo* info) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    const auto lock = c.lock();
    fcclMemoryInfo value = FCCL_MEMORY_INFO_INITIALIZER;
    value.workspace_bytes = static_cast<int64_t>(c.workspace()->bytes());
    value.granule_bytes = static_cast<int64_t>(c.context().granule());
    value.mapped_bytes = static_cast<int64_t>(c.workspace()->mapped_bytes());
    value.user_window_bytes = static_cast<int64_t>(c.user_memory().window_bytes());
    value.capacity_bytes =
        static_cast<int64_t>(workspace_capacity(c.situation().layout, c.ranks()));
    return write_struct("info", info, FCCL_MEMORY_INFO_MAGIC, value);
  });
}

fcclResult_t fcclCommQuery(fcclComm_t comm, const fcclFusedArgs* args, fcclPlanInfo* info) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    const auto lock = c.lock();
    return query(args, c.rank(), c.situation(), &c.context(), info);
  });
}

fcclResult_t fcclQuerySupport(int nranks, const fcclConfig* config, const fcclFusedArgs* args,
                              fcclPlanInfo* info) {
  return guard([&]() -> Status {
    if (nranks < 1 || nranks > kMaxRanks)
      return error(Code::InvalidArgument, "nranks is %d; allowed: 1 to %d", nranks, kMaxRanks);
    Settings settings;
    FCCL_TRY(settings_of(config, &settings));
    FCCL_TRY_ASSIGN(situation, expected_situation(settings, nranks));
    return query(args, 0, situation, nullptr, info);
  });
}

fcclResult_t fcclCommGetStats(fcclComm_t comm, fcclCommStats* stats) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    fcclCommStats value = FCCL_COMM_STATS_INITIALIZER;
    value.calls = c.counters().calls.load(std::memory_order_relaxed);
    value.launches = c.counters().launches.load(std::memory_order_relaxed);
    for (int i = 0; i < 16; ++i)
      value.by_algorithm[i] = c.counters().by_algorithm[i].load(std::memory_order_relaxed);
    value.slow_rows = c.counters().slow_rows.load(std::memory_order_relaxed);
    return write_struct("stats", stats, FCCL_COMM_STATS_MAGIC, value);
  });
}

fcclResult_t fcclVariable(int index, fcclVariableInfo* info) {
  return guard([&]() -> Status {
    FCCL_TRY_ASSIGN(config, read_config());
    const std::vector<VariableInfo> all = describe_config(config);
    if (index < 0 || index >= static_cast<int>(all.size()))
      return error(
          Code::InvalidArgument, "index is %d; there are %zu variables", index, all.size());
    const VariableInfo& variable = all[static_cast<size_t>(index)];
    fcclVariableInfo value = FCCL_VARIABLE_INFO_INITIALIZER;
    value.from_environment = variable.from_environment ? 1 : 0;
    value.agreed = variable.agree ? 1 : 0;
    copy_text(value.name, variable.name);
    copy_text(value.type, variable.type);
    copy_text(value.value, variable.value);
    copy_text(value.fallback, variable.fallback);
    copy_text(value.doc, variable.doc);
    return write_struct("info", info, FCCL_VARIABLE_INFO_MAGIC, value);
  });
}

fcclResult_t fcclDescribe(fcclComm_t comm, char* text, size_t bytes, size_t* needed) {
  const auto give = [&](const std::string& json) -> Status {
    if (text == nullptr && bytes != 0) return null_argument("text");
    if (needed != nullptr) *needed = json.size() + 1;
    if (bytes != 0) std::snprintf(text, bytes, "%s", json.c_str());
    return {};
  };
  if (comm == nullptr) {
    return guard([&]() -> Status {
      FCCL_TRY_ASSIGN(config, read_config());
      FCCL_TRY_ASSIGN(machine, detect_machine(config));
      return give(machine_json(machine));
    });
  }
  return guard_ready(
      comm, [&](Communicator& c) -> Status { return give(comm_json(c.situation().facts)); });
}

}  // extern "C"

FCCL_ALIAS(fcclResult_t, fcclCommCount, (fcclComm_t, int*));
FCCL_ALIAS(fcclResult_t, fcclCommUserRank, (fcclComm_t, int*));
FCCL_ALIAS(fcclResult_t, fcclCommDevice, (fcclComm_t, int*));
FCCL_ALIAS(fcclResult_t, fcclCommBackend, (fcclComm_t, int32_t*));
FCCL_ALIAS(fcclResult_t, fcclWorkspaceBytes, (int, const fcclConfig*, int64_t*));
FCCL_ALIAS(fcclResult_t, fcclCommMemory, (fcclComm_t, fcclMemoryInfo*));
FCCL_ALIAS(fcclResult_t, fcclCommQuery, (fcclComm_t, const fcclFusedArgs*, fcclPlanInfo*));
FCCL_ALIAS(fcclResult_t, fcclQuerySupport,
           (int, const fcclConfig*, const fcclFusedArgs*, fcclPlanInfo*));
FCCL_ALIAS(fcclResult_t, fcclCommGetStats, (fcclComm_t, fcclCommStats*));
FCCL_ALIAS(fcclResult_t, fcclVariable, (int, fcclVariableInfo*));
FCCL_ALIAS(fcclResult_t, fcclDescribe, (fcclComm_t, char*, size_t, size_t*));
