/* Prints where each field of each public struct lies and the value of each public number; check.py
 * compares it with layout.txt. A field that is missing here shows as a size that changes. */
#include <fccl/fccl.h>
#include <stddef.h>
#include <stdio.h>

#define STRUCT(type) printf("type %s %zu\n", #type, sizeof(type))
#define FIELD(type, field) \
  printf("  %s %zu %zu\n", #field, offsetof(type, field), sizeof(((type*)0)->field))
#define VALUE(name) printf("%s %lld\n", #name, (long long)(name))

static void structs(void) {
  STRUCT(fcclUniqueId);
  FIELD(fcclUniqueId, internal);

  STRUCT(fcclConfig);
  FIELD(fcclConfig, size);
  FIELD(fcclConfig, magic);
  FIELD(fcclConfig, version);
  FIELD(fcclConfig, backend);
  FIELD(fcclConfig, device);
  FIELD(fcclConfig, blocking);
  FIELD(fcclConfig, shared_device);
  FIELD(fcclConfig, check);
  FIELD(fcclConfig, deterministic);
  FIELD(fcclConfig, max_blocks);
  FIELD(fcclConfig, datatype);
  FIELD(fcclConfig, max_tokens);
  FIELD(fcclConfig, hidden);
  FIELD(fcclConfig, init_timeout_ms);
  FIELD(fcclConfig, call_timeout_ms);
  FIELD(fcclConfig, destroy_timeout_ms);
  FIELD(fcclConfig, name);

  STRUCT(fcclOutput);
  FIELD(fcclOutput, type);
  FIELD(fcclOutput, scale_type);
  FIELD(fcclOutput, scale_layout);
  FIELD(fcclOutput, group_size);
  FIELD(fcclOutput, row_stride);
  FIELD(fcclOutput, ptr);
  FIELD(fcclOutput, scale);

  STRUCT(fcclFusedArgs);
  FIELD(fcclFusedArgs, size);
  FIELD(fcclFusedArgs, magic);
  FIELD(fcclFusedArgs, version);
  FIELD(fcclFusedArgs, tokens);
  FIELD(fcclFusedArgs, hidden);
  FIELD(fcclFusedArgs, input_stride);
  FIELD(fcclFusedArgs, residual_stride);
  FIELD(fcclFusedArgs, datatype);
  FIELD(fcclFusedArgs, weight_type);
  FIELD(fcclFusedArgs, bias_type);
  FIELD(fcclFusedArgs, weight_offset);
  FIELD(fcclFusedArgs, numerics);
  FIELD(fcclFusedArgs, residual_layout);
  FIELD(fcclFusedArgs, flags);
  FIELD(fcclFusedArgs, eps);
  FIELD(fcclFusedArgs, residual_out);
  FIELD(fcclFusedArgs, norm_out);
  FIELD(fcclFusedArgs, allreduce_out);
  FIELD(fcclFusedArgs, quant_out);
  FIELD(fcclFusedArgs, input);
  FIELD(fcclFusedArgs, residual);
  FIELD(fcclFusedArgs, weight);
  FIELD(fcclFusedArgs, bias);
  FIELD(fcclFusedArgs, valid_tokens);

  STRUCT(fcclPlanInfo);
  FIELD(fcclPlanInfo, size);
  FIELD(fcclPlanInfo, magic);
  FIELD(fcclPlanInfo, version);
  FIELD(fcclPlanInfo, supported);
  FIELD(fcclPlanInfo, algorithm);
  FIELD(fcclPlanInfo, blocks);
  FIELD(fcclPlanInfo, threads);
  FIELD(fcclPlanInfo, launches);
  FIELD(fcclPlanInfo, chunk_tokens);
  FIELD(fcclPlanInfo, capacity_bytes);
  FIELD(fcclPlanInfo, wire_bytes);
  FIELD(fcclPlanInfo, algorithm_name);
  FIELD(fcclPlanInfo, reason);

  STRUCT(fcclMemoryInfo);
  FIELD(fcclMemoryInfo, size);
  FIELD(fcclMemoryInfo, magic);
  FIELD(fcclMemoryInfo, version);
  FIELD(fcclMemoryInfo, workspace_bytes);
  FIELD(fcclMemoryInfo, granule_bytes);
  FIELD(fcclMemoryInfo, mapped_bytes);
  FIELD(fcclMemoryInfo, user_window_bytes);
  FIELD(fcclMemoryInfo, capacity_bytes);

  STRUCT(fcclVariableInfo);
  FIELD(fcclVariableInfo, size);
  FIELD(fcclVariableInfo, magic);
  FIELD(fcclVariableInfo, version);
  FIELD(fcclVariableInfo, from_environment);
  FIELD(fcclVariableInfo, agreed);
  FIELD(fcclVariableInfo, name);
  FIELD(fcclVariableInfo, type);
  FIELD(fcclVariableInfo, value);
  FIELD(fcclVariableInfo, fallback);
  FIELD(fcclVariableInfo, doc);

  STRUCT(fcclCommStats);
  FIELD(fcclCommStats, size);
  FIELD(fcclCommStats, magic);
  FIELD(fcclCommStats, version);
  FIELD(fcclCommStats, calls);
  FIELD(fcclCommStats, launches);
  FIELD(fcclCommStats, by_algorithm);
  FIELD(fcclCommStats, slow_rows);
  FIELD(fcclCommStats, unfused);
}

static void numbers(void) {
  STRUCT(fcclResult_t);
  VALUE(fcclSuccess);
  VALUE(fcclUnhandledDeviceError);
  VALUE(fcclSystemError);
  VALUE(fcclInternalError);
  VALUE(fcclInvalidArgument);
  VALUE(fcclInvalidUsage);
  VALUE(fcclRemoteError);
  VALUE(fcclInProgress);
  VALUE(fcclTimeout);
  VALUE(fcclUnsupported);
  VALUE(fcclMismatch);
  VALUE(fcclAborted);
  VALUE(fcclOutOfResources);
  VALUE(fcclVersionMismatch);
  VALUE(fcclBusy);

  STRUCT(fcclDataType_t);
  VALUE(fcclInt8);
  VALUE(fcclUint8);
  VALUE(fcclInt32);
  VALUE(fcclUint32);
  VALUE(fcclInt64);
  VALUE(fcclUint64);
  VALUE(fcclFloat16);
  VALUE(fcclFloat32);
  VALUE(fcclFloat64);
  VALUE(fcclBfloat16);
  VALUE(fcclFloat8e4m3);
  VALUE(fcclFloat8e5m2);
  VALUE(fcclInt8Output);
  VALUE(fcclFloat4e2m1);

  STRUCT(fcclRedOp_t);
  VALUE(fcclSum);
  VALUE(fcclProd);
  VALUE(fcclMax);
  VALUE(fcclMin);
  VALUE(fcclAvg);

  STRUCT(fcclBackend_t);
  VALUE(fcclBackendAuto);
  VALUE(fcclBackendCpu);
  VALUE(fcclBackendCuda);
  VALUE(fcclBackendHip);

  STRUCT(fcclAlgo_t);
  VALUE(fcclAlgoNone);
  VALUE(fcclAlgoLocal);
  VALUE(fcclAlgoOneshotLamport);
  VALUE(fcclAlgoOneshotLL);
  VALUE(fcclAlgoOneshotFlags);
  VALUE(fcclAlgoTwoshotRows);
  VALUE(fcclAlgoTwoshotCols);
  VALUE(fcclAlgoTwoshotRowsLamport);
  VALUE(fcclAlgoTwoshotColsLamport);

  VALUE(FCCL_UNIQUE_ID_BYTES);
  VALUE(FCCL_CONFIG_MAGIC);
  VALUE(FCCL_FUSED_ARGS_MAGIC);
  VALUE(FCCL_PLAN_INFO_MAGIC);
  VALUE(FCCL_MEMORY_INFO_MAGIC);
  VALUE(FCCL_VARIABLE_INFO_MAGIC);
  VALUE(FCCL_COMM_STATS_MAGIC);
  VALUE(FCCL_WEIGHT_STABLE);
  VALUE(FCCL_INPUTS_STABLE);
  VALUE(FCCL_EARLY_TRIGGER);
  VALUE(FCCL_QUANT_AFTER_ROUNDING);
  VALUE(FCCL_NUMERICS_FUSED);
  VALUE(FCCL_NUMERICS_AS_UNFUSED);
  VALUE(FCCL_RESIDUAL_REPLICATED);
  VALUE(FCCL_RESIDUAL_ROW_SHARDED);
}

int main(void) {
  structs();
  numbers();
  return 0;
}
