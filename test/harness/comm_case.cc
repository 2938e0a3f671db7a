// See comm_case.h.
#include "harness/comm_case.h"

#include "harness/ranks.h"

namespace fccl::test {
namespace {

// Whether the short form of the call can say it.
bool is_short(const KernelCase& c) {
  return !c.sharded && !c.allreduce_out && !c.as_unfused && !c.weight_plus_one &&
         c.bias == VectorType::Absent && c.weight == VectorType::Tensor && c.placement.row_pad == 0;
}

void set_output(fcclOutput& out, Buffer& buffer, int64_t hidden) {
  out.ptr = buffer.data();
  out.row_stride = buffer.stride_elements() == hidden ? 0 : buffer.stride_elements();
}

}  // namespace

int32_t datatype_of(TypeKind type) {
  return type == TypeKind::F32 ? fcclFloat32 : type == TypeKind::F16 ? fcclFloat16 : fcclBfloat16;
}

fcclFusedArgs args_of(const KernelCase& c, RankBuffers& b) {
  fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
  args.tokens = c.tokens;
  args.hidden = c.hidden;
  args.input_stride = c.placement.row_pad == 0 ? 0 : b.input.stride_elements();
  args.datatype = datatype_of(c.id.type);
  args.weight_type = c.weight == VectorType::Float32 ? fcclFloat32 : 0;
  args.bias_type = c.bias == VectorType::Float32 ? fcclFloat32 : 0;
  args.weight_offset = c.weight_plus_one ? 1 : 0;
  args.numerics = c.as_unfused ? FCCL_NUMERICS_AS_UNFUSED : FCCL_NUMERICS_FUSED;
  args.residual_layout = c.sharded ? FCCL_RESIDUAL_ROW_SHARDED : FCCL_RESIDUAL_REPLICATED;
  args.eps = c.eps;
  args.input = b.input.data();
  args.weight = b.weight.data();
  args.bias = c.bias == VectorType::Absent ? nullptr : b.bias.data();
  if (c.residual) {
    args.residual = b.residual.data();
    args.residual_stride = c.placement.row_pad == 0 ? 0 : b.residual.stride_elements();
  }
  if (c.residual_out)
    set_output(args.residual_out, b.place(c.residual_out_in, b.residual_out), c.hidden);
  if (c.allreduce_out)
    set_output(args.allreduce_out, b.place(c.allreduce_out_in, b.allreduce_out), c.hidden);
  set_output(args.norm_out, b.place(c.norm_out_in, b.norm_out), c.hidden);
  return args;
}

std::string call_case(fcclComm_t comm, int rank, const KernelCase& c,
                      const KernelProblem& problem) {
  RankBuffers buffers = make_buffers(c, rank, problem);
  const fcclFusedArgs args = args_of(c, buffers);
  fcclResult_t result = fcclSuccess;
  if (is_short(c)) {
    result = fcclAllReduceResidualRMSNorm(args.input,
                                          args.residual,
                                          args.weight,
                                          args.residual_out.ptr,
                                          args.norm_out.ptr,
                                          args.tokens,
                                          args.hidden,
                                          static_cast<fcclDataType_t>(args.datatype),
                                          args.eps,
                                          comm,
                                          nullptr);
  } else {
    result = fcclAllReduceResidualRMSNormEx(&args, comm, nullptr);
  }
  std::string error = error_text(result, "the fused call", comm);
  if (error.empty()) error = check_buffers(c, rank, problem, buffers);
  return error.empty() ? "" : c.text() + ": " + error;
}

}  // namespace fccl::test
