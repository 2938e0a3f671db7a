// The operations.
#include "api/guard.h"
#include "api/structs.h"
#include "ops/collectives.h"
#include "ops/fused.h"

using namespace fccl;

static fcclResult_t run_collective(const CollectiveArgs& args, fcclComm_t comm,
                                   fcclStream_t stream) {
  return guard_comm(comm, [&](Communicator& c) -> Status { return collective(args, c, stream); });
}

extern "C" {

fcclResult_t fcclRowRange(int64_t tokens, int nranks, int rank, int64_t* first, int64_t* count) {
  return guard([&]() -> Status {
    if (first == nullptr || count == nullptr)
      return null_argument(first == nullptr ? "first" : "count");
    if (tokens < 0 || nranks < 1 || rank < 0 || rank >= nranks)
      return error(Code::InvalidArgument,
                   "tokens must not be negative, and rank must be in 0 to nranks - 1");
    const int64_t base = tokens / nranks;
    const int64_t extra = tokens % nranks;
    *first = rank * base + (rank < extra ? rank : extra);
    *count = base + (rank < extra ? 1 : 0);
    return {};
  });
}

fcclResult_t fcclAllReduceResidualRMSNormEx(const fcclFusedArgs* args, fcclComm_t comm,
                                            fcclStream_t stream) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    if (args == nullptr) return null_argument("args");
    fcclFusedArgs whole = FCCL_FUSED_ARGS_INITIALIZER;
    FCCL_TRY(read_struct("args", args, FCCL_FUSED_ARGS_MAGIC, &whole));
    return all_reduce_residual_rmsnorm(whole, c, stream);
  });
}

fcclResult_t fcclAllReduceResidualRMSNorm(const void* input, const void* residual,
                                          const void* weight, void* residual_out, void* norm_out,
                                          int64_t tokens, int64_t hidden, fcclDataType_t datatype,
                                          float eps, fcclComm_t comm, fcclStream_t stream) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
    args.tokens = tokens;
    args.hidden = hidden;
    args.datatype = datatype;
    args.eps = eps;
    args.input = input;
    args.residual = residual;
    args.weight = weight;
    args.residual_out.ptr = residual_out;
    args.norm_out.ptr = norm_out;
    return all_reduce_residual_rmsnorm(args, c, stream);
  });
}

fcclResult_t fcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           fcclDataType_t datatype, fcclRedOp_t op, fcclComm_t comm,
                           fcclStream_t stream) {
  return run_collective(
      {OpKind::AllReduce, sendbuff, recvbuff, count, datatype, op, 0}, comm, stream);
}

fcclResult_t fcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               fcclDataType_t datatype, fcclRedOp_t op, fcclComm_t comm,
                               fcclStream_t stream) {
  return run_collective(
      {OpKind::ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0}, comm, stream);
}

fcclResult_t fcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           fcclDataType_t datatype, fcclComm_t comm, fcclStream_t stream) {
  return run_collective(
      {OpKind::AllGather, sendbuff, recvbuff, sendcount, datatype, fcclSum, 0}, comm, stream);
}

fcclResult_t fcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           fcclDataType_t datatype, int root, fcclComm_t comm,
                           fcclStream_t stream) {
  return run_collective(
      {OpKind::Broadcast, sendbuff, recvbuff, count, datatype, fcclSum, root}, comm, stream);
}

}  // extern "C"

FCCL_ALIAS(fcclResult_t, fcclRowRange, (int64_t, int, int, int64_t*, int64_t*));
FCCL_ALIAS(fcclResult_t, fcclAllReduceResidualRMSNormEx,
           (const fcclFusedArgs*, fcclComm_t, fcclStream_t));
FCCL_ALIAS(fcclResult_t, fcclAllReduceResidualRMSNorm,
           (const void*, const void*, const void*, void*, void*, int64_t, int64_t, fcclDataType_t,
            float, fcclComm_t, fcclStream_t));
FCCL_ALIAS(fcclResult_t, fcclAllReduce,
           (const void*, void*, size_t, fcclDataType_t, fcclRedOp_t, fcclComm_t, fcclStream_t));
FCCL_ALIAS(fcclResult_t, fcclReduceScatter,
           (const void*, void*, size_t, fcclDataType_t, fcclRedOp_t, fcclComm_t, fcclStream_t));
FCCL_ALIAS(fcclResult_t, fcclAllGather,
           (const void*, void*, size_t, fcclDataType_t, fcclComm_t, fcclStream_t));
FCCL_ALIAS(fcclResult_t, fcclBroadcast,
           (const void*, void*, size_t, fcclDataType_t, int, fcclComm_t, fcclStream_t));
