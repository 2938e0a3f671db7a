#include "ops/fused.h"

#include <cstring>

#include "comm/call_word.h"

namespace fccl {
namespace {

constexpr int kPack = 16;

Tensor tensor(const void* ptr, int64_t stride, int64_t hidden, int bytes) {
  if (ptr == nullptr) return {nullptr, 0};  // rows of what is absent are computed too: null + 0
  return {static_cast<char*>(const_cast<void*>(ptr)), (stride == 0 ? hidden : stride) * bytes};
}

// Rows of whole packs; kernels for them count rows and strides in 32 bits.
bool on_packs(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.ptr) % kPack == 0 && t.stride % kPack == 0 &&
         t.stride <= UINT32_MAX;
}

// What must be equal on all ranks beyond shape and type, for the header.
uint32_t options_of(const fcclFusedArgs& a) {
  uint32_t eps;
  std::memcpy(&eps, &a.eps, 4);
  uint32_t mixed = eps;
  for (const uint32_t part : {static_cast<uint32_t>(a.weight_type),
                              static_cast<uint32_t>(a.weight_offset),
                              static_cast<uint32_t>(a.numerics),
                              static_cast<uint32_t>(a.residual_layout),
                              a.flags,
                              static_cast<uint32_t>(a.residual != nullptr),
                              static_cast<uint32_t>(a.bias != nullptr),
                              static_cast<uint32_t>(a.allreduce_out.ptr != nullptr)})
    mixed = mixed * 31u + part;
  return mixed;
}

KernelArgs kernel_args(const fcclFusedArgs& a, TypeKind type) {
  const int bytes = element_bytes(type);
  KernelArgs k{};
  k.input = tensor(a.input, a.input_stride, a.hidden, bytes);
  k.residual = tensor(a.residual, a.residual_stride, a.hidden, bytes);
  k.residual_out = tensor(a.residual_out.ptr, a.residual_out.row_stride, a.hidden, bytes);
  k.norm_out = tensor(a.norm_out.ptr, a.norm_out.row_stride, a.hidden, bytes);
  k.allreduce_out = tensor(a.allreduce_out.ptr, a.allreduce_out.row_stride, a.hidden, bytes);
  k.weight = static_cast<const char*>(a.weight);
  k.bias = static_cast<const char*>(a.bias);
  k.hidden = static_cast<int32_t>(a.hidden);
  k.last_hidden = k.hidden;
  k.packs = static_cast<int32_t>((a.hidden * bytes + kPack - 1) / kPack);
  k.eps = a.eps;
  k.inv_hidden = 1.0f / static_cast<float>(a.hidden);
  if (a.weight_type == fcclFloat32 && type != TypeKind::F32) k.flags |= kWeightF32;
  if (a.bias_type == fcclFloat32 && type != TypeKind::F32) k.flags |= kBiasF32;
  if (a.weight_offset != 0) k.flags |= kWeightPlusOne;
  if (a.numerics == FCCL_NUMERICS_AS_UNFUSED) k.flags |= kRoundSum;
  if (a.residual_layout == FCCL_RESIDUAL_ROW_SHARDED) k.flags |= kResidualSharded;
  return k;
}

bool is_plain(const KernelArgs& k, TypeKind type) {
  return (k.flags & ~kResidualSharded) == 0 && k.bias == nullptr &&
         k.allreduce_out.ptr == nullptr && k.hidden % (kPack / element_bytes(type)) == 0 &&
         on_packs(k.input) && on_packs(k.residual) && on_packs(k.residual_out) &&
         on_packs(k.norm_out) && reinterpret_cast<uintptr_t>(k.weight) % kPack == 0;
}

void advance(Tensor& t, int64_t rows) {
  if (t.ptr != nullptr) t.ptr += rows * t.stride;
}

Status launch_chunks(const fcclFusedArgs& a, Launch& launch, const Plan& plan, const CallWord& call,
                     Communicator& comm, void* stream) {
  KernelArgs& k = launch.args;
  if (plan.last_reduces) k.flags |= kLastReduces;
  if (plan.algo == AlgoKind::TwoshotRows) {
    k.total_rows = a.tokens;
    k.chunk_rows = static_cast<int32_t>(plan.chunk_rows);
    k.ex.tokens = static_cast<uint32_t>(a.tokens);
    for (int64_t i = 0; i < plan.launches; ++i) {
      k.chunk_first = i * plan.chunk_rows;
      FCCL_TRY(comm.launch(launch, plan, call, stream));
    }
    return {};
  }
  for (int64_t first = 0; first < a.tokens; first += plan.chunk_rows) {
    const int64_t left = a.tokens - first;
    k.rows = static_cast<int32_t>(left < plan.chunk_rows ? left : plan.chunk_rows);
    k.total_rows = k.rows;
    k.ex.tokens = static_cast<uint32_t>(k.rows);
    FCCL_TRY(comm.launch(launch, plan, call, stream));
    for (Tensor* t : {&k.input, &k.residual, &k.residual_out, &k.norm_out, &k.allreduce_out})
      advance(*t, k.rows);
  }
  return {};
}

}  // namespace

Status all_reduce_residual_rmsnorm(const fcclFusedArgs& a, Communicator& comm, void* stream) {
  const auto lock = comm.lock();
  FCCL_TRY(comm.usable());
  FCCL_TRY_ASSIGN(request, check_fused(a, comm.ranks(), comm.rank(), false));
  FCCL_TRY(comm.context().check_stream(stream));
  const Plan& plan = comm.plan_for(request);
  if (!plan.supported) return Status(plan.code, plan.reason);
  comm.counters().calls.fetch_add(1, std::memory_order_relaxed);
  // Zero rows: nothing is launched; in checked mode the headers alone are exchanged.
  if (a.tokens == 0 && (!comm.settings().check || comm.ranks() == 1)) return {};

  Launch launch;
  launch.args = kernel_args(a, request.type);
  launch.id.op = OpKind::FusedNorm;
  launch.id.type = request.type;
  launch.id.algo = plan.algo;
  launch.id.protocol = plan.protocol;
  launch.id.plain = a.tokens <= UINT32_MAX && is_plain(launch.args, request.type);
  launch.weight_stable = (a.flags & FCCL_WEIGHT_STABLE) != 0;
  launch.inputs_stable = (a.flags & FCCL_INPUTS_STABLE) != 0;
  launch.early_trigger = (a.flags & FCCL_EARLY_TRIGGER) != 0;
  if (!launch.id.plain) comm.counters().slow_rows.fetch_add(1, std::memory_order_relaxed);
  const CallWord call = call_word(launch.id, a.hidden, options_of(a));
  if (a.tokens == 0) return comm.launch(launch, plan, call, stream);
  return launch_chunks(a, launch, plan, call, comm, stream);
}

}  // namespace fccl
