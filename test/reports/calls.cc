// See calls.h.
#include "reports/calls.h"

#include <unistd.h>

namespace fccl::test {

const char* const kAllAlgorithms[7] = {"oneshot_lamport",
                                       "oneshot_flags",
                                       "oneshot_ll",
                                       "twoshot_rows",
                                       "twoshot_rows_lamport",
                                       "twoshot_cols_lamport",
                                       "twoshot_cols"};

Matrix filled(TypeKind type, int64_t rows, int64_t columns, double value) {
  Matrix m(type, rows, columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) m.set(row, c, value);
  return m;
}

std::string Fused::call(fcclComm_t comm) {
  // Results start as NaN, so that what is not written is seen.
  residual_out = filled(x.type(), x.rows(), x.columns(), NAN);
  norm_out = residual_out;
  fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
  args.tokens = x.rows();
  args.hidden = x.columns();
  args.datatype = datatype_of(x.type());
  args.weight_type = datatype_of(weight.type());
  args.eps = eps;
  args.input = x.row(0);
  args.residual = residual ? residual->row(0) : nullptr;
  args.weight = weight.row(0);
  args.residual_out.ptr = residual_out.row(0);
  args.norm_out.ptr = norm_out.row(0);
  return error_text(fcclAllReduceResidualRMSNormEx(&args, comm, nullptr), "the fused call", comm);
}

std::string sum_in_place(fcclComm_t comm, Matrix& data) {
  const auto type = static_cast<fcclDataType_t>(datatype_of(data.type()));
  const auto count = static_cast<size_t>(data.rows() * data.columns());
  return error_text(fcclAllReduce(data.row(0), data.row(0), count, type, fcclSum, comm, nullptr),
                    "fcclAllReduce",
                    comm);
}

fcclPlanInfo plan_of(fcclComm_t comm, int64_t tokens, int64_t hidden, int32_t datatype) {
  fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
  args.tokens = tokens;
  args.hidden = hidden;
  args.datatype = datatype;
  fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
  if (fcclCommQuery(comm, &args, &info) != fcclSuccess) info.supported = 0;
  return info;
}

void jitter(uint64_t seed) {
  usleep(static_cast<useconds_t>(mix(seed, 0x71773E) % 2000));
}

}  // namespace fccl::test
