// The rules of the fused call's arguments. What is equal on all ranks is checked first, so that all
// ranks refuse alike.
#include <cmath>

#include "device/types/units.h"
#include "ops/fused.h"

namespace fccl {
namespace {

constexpr int64_t kMostHidden = int64_t{1} << 30;
constexpr int64_t kMostBytes = int64_t{1} << 50;

struct Region {
  const char* name;
  const char* begin;
  int64_t bytes;
  int64_t stride;
};

// Few, and without allocating: this runs in every call.
class Regions {
 public:
  void add(const Region& region) { list_[count_++] = region; }
  const Region* begin() const { return list_; }
  const Region* end() const { return list_ + count_; }

 private:
  Region list_[3];
  int count_ = 0;
};

Status check_numbers(const fcclFusedArgs& a) {
  if (a.tokens < 0)
    return error(Code::InvalidArgument,
                 "tokens is %lld; must not be negative",
                 static_cast<long long>(a.tokens));
  if (a.hidden < 1 || a.hidden > kMostHidden)
    return error(Code::InvalidArgument,
                 "hidden is %lld; allowed: 1 to 2^30",
                 static_cast<long long>(a.hidden));
  if (!(a.eps >= 0.0f) || !std::isfinite(a.eps))
    return error(Code::InvalidArgument, "eps must be finite and not negative");
  if (a.weight_offset != 0 && a.weight_offset != 1)
    return error(Code::InvalidArgument, "weight_offset is %d; allowed: 0, 1", a.weight_offset);
  if (a.numerics != FCCL_NUMERICS_FUSED && a.numerics != FCCL_NUMERICS_AS_UNFUSED)
    return error(Code::InvalidArgument, "numerics is %d; allowed: 0, 1", a.numerics);
  if (a.residual_layout != FCCL_RESIDUAL_REPLICATED &&
      a.residual_layout != FCCL_RESIDUAL_ROW_SHARDED)
    return error(Code::InvalidArgument, "residual_layout is %d; allowed: 0, 1", a.residual_layout);
  constexpr uint32_t kKnown =
      FCCL_WEIGHT_STABLE | FCCL_INPUTS_STABLE | FCCL_EARLY_TRIGGER | FCCL_QUANT_AFTER_ROUNDING;
  if ((a.flags & ~kKnown) != 0)
    return error(Code::InvalidArgument, "flags has unknown bits 0x%x", a.flags & ~kKnown);
  return {};
}

Status check_vector_type(const char* name, int32_t type, int32_t datatype) {
  if (type == 0 || type == datatype || type == fcclFloat32) return {};
  FCCL_TRY(type_kind(type).status());
  return error(Code::Unsupported,
               "%s of type %d with tensors of type %d; supported: the same type, or float32",
               name,
               type,
               datatype);
}

Status check_output(const char* name, const fcclOutput& out, const fcclFusedArgs& a) {
  if (out.ptr == nullptr) return {};
  if (out.scale != nullptr || out.scale_type != 0 || out.scale_layout != 0 || out.group_size != 0)
    return error(Code::Unsupported, "%s with scales: quantised outputs are not built", name);
  if (out.type != 0 && out.type != a.datatype) {
    FCCL_TRY(type_kind(out.type).status());
    return error(
        Code::Unsupported, "%s of type %d; supported: the datatype of the call", name, out.type);
  }
  return {};
}

Status check_options(const fcclFusedArgs& a) {
  FCCL_TRY(check_vector_type("weight", a.weight_type, a.datatype));
  if (a.bias != nullptr) FCCL_TRY(check_vector_type("bias", a.bias_type, a.datatype));
  FCCL_TRY(check_output("residual_out", a.residual_out, a));
  FCCL_TRY(check_output("norm_out", a.norm_out, a));
  FCCL_TRY(check_output("allreduce_out", a.allreduce_out, a));
  if (a.quant_out.ptr != nullptr)
    return error(Code::Unsupported, "quant_out: quantised outputs are not built");
  if (a.valid_tokens != nullptr)
    return error(Code::Unsupported, "valid_tokens: padded rows by a device count are not built");
  if (a.residual_layout == FCCL_RESIDUAL_ROW_SHARDED && a.residual == nullptr)
    return error(Code::InvalidArgument, "a row-sharded residual must not be NULL");
  return {};
}

Status check_stride(const char* name, int64_t stride, const fcclFusedArgs& a) {
  if (stride != 0 && (stride < a.hidden || stride > kMostBytes / (a.tokens > 0 ? a.tokens : 1) / 4))
    return error(Code::InvalidArgument,
                 "row stride of %s is %lld elements; must be 0 or from hidden (%lld) on, and the "
                 "tensor below 2^50 bytes",
                 name,
                 static_cast<long long>(stride),
                 static_cast<long long>(a.hidden));
  return {};
}

Status add_region(Regions& list, const char* name, const void* ptr, int64_t rows, int64_t stride,
                  const fcclFusedArgs& a, int bytes, bool required) {
  if (ptr == nullptr) {
    if (required && rows > 0) return error(Code::InvalidArgument, "%s is NULL", name);
    return {};
  }
  if (reinterpret_cast<uintptr_t>(ptr) % static_cast<uintptr_t>(bytes) != 0)
    return error(
        Code::InvalidArgument, "%s is not aligned to its element of %d bytes", name, bytes);
  const int64_t step = stride == 0 ? a.hidden : stride;
  const int64_t size = rows == 0 ? 0 : ((rows - 1) * step + a.hidden) * bytes;
  list.add({name, static_cast<const char*>(ptr), size, step});
  return {};
}

// An output may be the same as an input or residual, never anything else that overlaps.
Status check_overlap(const Regions& inputs, const Regions& vectors, const Regions& outputs) {
  auto apart = [](const Region& a, const Region& b) {
    return a.bytes == 0 || b.bytes == 0 || a.begin + a.bytes <= b.begin ||
           b.begin + b.bytes <= a.begin;
  };
  for (const Region* at = outputs.begin(); at != outputs.end(); ++at) {
    const Region& out = *at;
    for (const Region& in : inputs)
      if (!apart(out, in) &&
          (out.begin != in.begin || out.stride != in.stride || out.bytes != in.bytes))
        return error(Code::InvalidArgument,
                     "%s overlaps %s in part; it may be the same tensor or another one",
                     out.name,
                     in.name);
    for (const Region& vector : vectors)
      if (!apart(out, vector))
        return error(Code::InvalidArgument, "%s overlaps %s", out.name, vector.name);
    for (const Region* other = at + 1; other != outputs.end(); ++other)
      if (!apart(out, *other))
        return error(Code::InvalidArgument, "%s overlaps %s", out.name, other->name);
  }
  return {};
}

Status check_pointers(const fcclFusedArgs& a, TypeKind type, int ranks, int rank) {
  const int bytes = element_bytes(type);
  auto vector_bytes = [&](int32_t t) { return t == fcclFloat32 ? 4 : bytes; };
  int64_t own = a.tokens;
  if (a.residual_layout == FCCL_RESIDUAL_ROW_SHARDED) {
    own = a.tokens / ranks + (rank < a.tokens % ranks ? 1 : 0);
  }
  Regions inputs, vectors, outputs;
  FCCL_TRY(add_region(inputs, "input", a.input, a.tokens, a.input_stride, a, bytes, true));
  FCCL_TRY(add_region(inputs, "residual", a.residual, own, a.residual_stride, a, bytes, false));
  const int64_t one = a.tokens > 0 ? 1 : 0;
  FCCL_TRY(add_region(vectors, "weight", a.weight, one, 0, a, vector_bytes(a.weight_type), true));
  FCCL_TRY(add_region(vectors, "bias", a.bias, one, 0, a, vector_bytes(a.bias_type), false));
  FCCL_TRY(add_region(outputs,
                      "residual_out",
                      a.residual_out.ptr,
                      own,
                      a.residual_out.row_stride,
                      a,
                      bytes,
                      false));
  FCCL_TRY(add_region(
      outputs, "norm_out", a.norm_out.ptr, a.tokens, a.norm_out.row_stride, a, bytes, true));
  FCCL_TRY(add_region(outputs,
                      "allreduce_out",
                      a.allreduce_out.ptr,
                      a.tokens,
                      a.allreduce_out.row_stride,
                      a,
                      bytes,
                      false));
  return check_overlap(inputs, vectors, outputs);
}

}  // namespace

Result<Request> check_fused(const fcclFusedArgs& a, int ranks, int rank, bool structure_only) {
  FCCL_TRY(check_numbers(a));
  FCCL_TRY_ASSIGN(type, type_kind(a.datatype));
  if (a.tokens > kMostBytes / (a.hidden * 4))
    return error(Code::InvalidArgument, "tokens x hidden is more than 2^50 bytes");
  FCCL_TRY(check_options(a));
  FCCL_TRY(check_stride("input", a.input_stride, a));
  FCCL_TRY(check_stride("residual", a.residual_stride, a));
  FCCL_TRY(check_stride("residual_out", a.residual_out.row_stride, a));
  FCCL_TRY(check_stride("norm_out", a.norm_out.row_stride, a));
  FCCL_TRY(check_stride("allreduce_out", a.allreduce_out.row_stride, a));
  if (!structure_only) FCCL_TRY(check_pointers(a, type, ranks, rank));
  Request request;
  request.op = OpKind::FusedNorm;
  request.type = type;
  request.rows = a.tokens;
  request.hidden = a.hidden;
  request.row_sharded = a.residual_layout == FCCL_RESIDUAL_ROW_SHARDED && ranks > 1;
  request.wants_sum = a.allreduce_out.ptr != nullptr;
  return request;
}

}  // namespace fccl
