// See kernel_case.h.
#include "harness/kernel_case.h"

#include <cstdio>

#include "device/types/units.h"
#include "harness/generator.h"

namespace fccl::test {
namespace {

constexpr int kPack = 16;

int64_t packs_of(const KernelCase& c) {
  return (c.hidden * element_bytes(c.id.type) + kPack - 1) / kPack;
}

// Rows of rank `rank` when rows are owned: fcclRowRange's rule.
int64_t rows_of(const KernelCase& c, int rank) {
  return c.tokens / c.ranks + (rank < c.tokens % c.ranks ? 1 : 0);
}
int64_t first_row_of(const KernelCase& c, int rank) {
  const int64_t extra = c.tokens % c.ranks;
  return rank * (c.tokens / c.ranks) + (rank < extra ? rank : extra);
}

// Rows that are shared out over launches: all, or those of the owner with most.
int64_t chunked_rows(const KernelCase& c) {
  return c.id.algo == AlgoKind::TwoshotRows ? rows_of(c, 0) : c.tokens;
}
int64_t rows_of_launch(const KernelCase& c) {
  return c.chunk_rows == 0 || c.chunk_rows > chunked_rows(c) ? chunked_rows(c) : c.chunk_rows;
}

KernelArgs make_args(KernelWorld& world, int rank, const KernelCase& c, RankBuffers& b) {
  KernelArgs a{};
  a.ex = world.exchange(rank, c.id);
  a.ex.tile_rows = c.tile_rows;
  a.ex.tokens = static_cast<uint32_t>(c.tokens);
  a.ex.checked = c.checked ? 1 : 0;
  a.input = b.input.tensor();
  if (c.residual) a.residual = b.residual.tensor();
  if (c.residual_out) a.residual_out = b.place(c.residual_out_in, b.residual_out).tensor();
  if (c.allreduce_out) a.allreduce_out = b.place(c.allreduce_out_in, b.allreduce_out).tensor();
  a.norm_out = b.place(c.norm_out_in, b.norm_out).tensor();
  a.weight = b.weight.data();
  a.bias = c.bias == VectorType::Absent ? nullptr : b.bias.data();
  a.total_rows = c.tokens;
  a.rows = static_cast<int32_t>(c.tokens);
  a.chunk_rows = static_cast<int32_t>(rows_of_launch(c));
  a.hidden = static_cast<int32_t>(c.hidden);
  a.last_hidden = a.hidden;
  a.packs = static_cast<int32_t>(packs_of(c));
  a.flags = (c.weight == VectorType::Float32 ? kWeightF32 : 0u) |
            (c.bias == VectorType::Float32 ? kBiasF32 : 0u) |
            (c.weight_plus_one ? kWeightPlusOne : 0u) | (c.as_unfused ? kRoundSum : 0u) |
            (c.sharded ? kResidualSharded : 0u) | (c.last_reduces ? kLastReduces : 0u);
  a.eps = c.eps;
  a.inv_hidden = 1.0f / static_cast<float>(c.hidden);
  return a;
}

// Arguments of the launch that starts at row `first` (of each owner, where rows are owned).
KernelArgs args_of_chunk(const KernelCase& c, const KernelArgs& whole, int64_t first) {
  KernelArgs a = whole;
  if (c.id.algo == AlgoKind::TwoshotRows) {
    a.chunk_first = first;
    return a;
  }
  const int64_t left = c.tokens - first;
  a.rows = static_cast<int32_t>(left < rows_of_launch(c) ? left : rows_of_launch(c));
  a.total_rows = a.rows;
  a.ex.tokens = static_cast<uint32_t>(a.rows);
  for (Tensor* t : {&a.input, &a.residual, &a.residual_out, &a.norm_out, &a.allreduce_out})
    if (t->ptr != nullptr) t->ptr += first * t->stride;
  return a;
}

bool is_plain_shape(const KernelCase& c) {
  return c.hidden * element_bytes(c.id.type) % kPack == 0 && c.placement.offset == 0 &&
         c.placement.row_pad * element_bytes(c.id.type) % kPack == 0 &&
         c.weight == VectorType::Tensor && c.bias == VectorType::Absent && !c.weight_plus_one &&
         !c.as_unfused && !c.allreduce_out && !c.sharded;
}

}  // namespace

RankBuffers make_buffers(const KernelCase& c, int rank, const KernelProblem& problem) {
  RankBuffers b;
  const TypeKind type = c.id.type;
  const int64_t own_rows = c.sharded ? rows_of(c, rank) : c.tokens;
  const FusedInputs& in = problem.inputs;
  b.input = Buffer(in.x[static_cast<size_t>(rank)], c.placement);
  if (in.residual) {
    b.residual =
        Buffer(c.sharded ? in.residual->slice(first_row_of(c, rank), own_rows) : *in.residual,
               c.placement);
  }
  const Placement vector{c.placement.offset, 0};
  b.weight = Buffer(in.weight, vector);
  if (in.bias) b.bias = Buffer(*in.bias, vector);
  b.residual_out = Buffer::output(type, own_rows, c.hidden, c.placement);
  b.norm_out = Buffer::output(type, c.tokens, c.hidden, c.placement);
  b.allreduce_out = Buffer::output(type, c.tokens, c.hidden, c.placement);
  return b;
}

std::string check_buffers(const KernelCase& c, int rank, const KernelProblem& problem,
                          RankBuffers& b) {
  const FusedInputs& in = problem.inputs;
  const int64_t first = first_row_of(c, rank), own = rows_of(c, rank);
  const auto own_rows = [&](const Matrix& m) { return c.sharded ? m.slice(first, own) : m; };
  // What each input buffer holds in the end: itself, unless an output shares it.
  Matrix in_input = in.x[static_cast<size_t>(rank)];
  Matrix in_residual = in.residual ? own_rows(*in.residual) : Matrix();
  std::string error;
  const auto check =
      [&](Share share, Buffer& own_buffer, const Matrix& want, bool wanted, const char* name) {
        if (!wanted || !error.empty()) return;
        if (share == Share::Input) in_input = want;
        if (share == Share::Residual) in_residual = want;
        error = b.place(share, own_buffer).difference(want, name);
      };
  const FusedOutputs& out = problem.expected;
  check(c.residual_out_in,
        b.residual_out,
        own_rows(out.residual_out),
        c.residual_out,
        "residual_out");
  check(c.norm_out_in, b.norm_out, out.norm_out, true, "norm_out");
  check(c.allreduce_out_in, b.allreduce_out, out.sum, c.allreduce_out, "allreduce_out");
  if (error.empty()) error = b.input.difference(in_input, "input");
  if (error.empty() && in.residual) error = b.residual.difference(in_residual, "residual");
  if (error.empty()) error = b.weight.difference(in.weight, "weight");
  if (error.empty() && in.bias) error = b.bias.difference(*in.bias, "bias");
  return error;
}

bool is_legal_sharing(const KernelCase& c) {
  const Share shares[3] = {c.residual_out_in, c.norm_out_in, c.allreduce_out_in};
  const bool present[3] = {c.residual_out, true, c.allreduce_out};
  for (int i = 0; i < 3; ++i) {
    if (shares[i] != Share::None && !present[i]) return false;
    if (shares[i] == Share::Residual && !c.residual) return false;
    for (int j = i + 1; j < 3; ++j)
      if (shares[i] != Share::None && shares[i] == shares[j]) return false;
  }
  // Sharded rows are other rows than those of a whole tensor: no pointer can be equal and legal.
  return !c.sharded || (c.residual_out_in != Share::Input && c.norm_out_in != Share::Residual);
}

bool is_possible(const KernelCase& c) {
  if (c.level.find(c.id, c.ranks) == nullptr) return false;
  if (c.id.plain && !is_plain_shape(c)) return false;
  if (c.sharded && c.id.algo != AlgoKind::TwoshotRows) return false;
  if (c.allreduce_out && c.id.algo != AlgoKind::Oneshot) return false;
  if (c.last_reduces && (c.tokens != 1 || c.sharded)) return false;
  return is_legal_sharing(c);
}

uint64_t slot_bytes(const KernelCase& c) {
  const int64_t per_line = c.id.protocol == ProtocolKind::LL ? 2 : 1;
  int64_t packs = packs_of(c);
  if (c.id.algo == AlgoKind::TwoshotCols) {
    const int elements = static_cast<int>(kPack) / element_bytes(c.id.type);
    const Units units = units_of_row(static_cast<int>(c.hidden), static_cast<int>(packs), elements);
    const ColumnSlots slots = column_slots(units, c.ranks);
    packs = slots.packs + slots.sum_packs;
  }
  return static_cast<uint64_t>(rows_of_launch(c) * packs * kPack * per_line);
}

uint64_t exchanges_of(const KernelCase& c) {
  return static_cast<uint64_t>((chunked_rows(c) + rows_of_launch(c) - 1) / rows_of_launch(c));
}

KernelProblem make_problem(const KernelCase& c) {
  KernelProblem problem;
  FusedInputs& in = problem.inputs;
  const TypeKind type = c.id.type;
  const auto vector_type = [type](VectorType v) {
    return v == VectorType::Float32 ? TypeKind::F32 : type;
  };
  for (int rank = 0; rank < c.ranks; ++rank)
    in.x.push_back(make_input(type, c.tokens, c.hidden, c.launch, rank));
  if (c.residual) in.residual = make_input(type, c.tokens, c.hidden, c.launch, -1);
  in.weight = make_weight(vector_type(c.weight), c.hidden, c.launch);
  if (c.bias != VectorType::Absent) in.bias = make_bias(vector_type(c.bias), c.hidden, c.launch);
  in.eps = c.eps;
  in.weight_plus_one = c.weight_plus_one;
  in.as_unfused = c.as_unfused;
  problem.expected = fused_reference(in);
  return problem;
}

std::string run_case(KernelWorld& world, int rank, const KernelCase& c,
                     const KernelProblem& problem) {
  RankBuffers buffers = make_buffers(c, rank, problem);
  const KernelArgs whole = make_args(world, rank, c, buffers);
  const CpuKernel kernel = c.level.find(c.id, c.ranks);
  const int blocks = 1 + (c.blocks - 1 + rank) % c.blocks;
  for (int64_t first = 0; first < chunked_rows(c); first += rows_of_launch(c)) {
    run_kernel(kernel,
               args_of_chunk(c, whole, first),
               blocks,
               c.chaos == 0 ? 0 : c.chaos + static_cast<uint32_t>(rank));
    if (is_poisoned(world.control(rank).line))
      return c.text() + ": " + describe_failure(world.record(rank));
  }
  const std::string error = check_buffers(c, rank, problem, buffers);
  return error.empty() ? "" : c.text() + ": " + error;
}

std::string KernelCase::text() const {
  static const char* const algos[] = {"oneshot", "twoshot_rows", "twoshot_cols"};
  static const char* const protocols[] = {"lamport", "flags", "ll"};
  char out[320];
  std::snprintf(out,
                sizeof out,
                "%s %s %s %s%s ranks %d, %lld x %lld, launch %llu, tile %d, blocks %d, chunk %lld, "
                "residual %d%d, sum %d,"
                " sharded %d, last reduces %d, plus_one %d, unfused %d, weight %d, bias %d, shares "
                "%d%d%d, offset "
                "%lld, pad %lld, checked %d,"
                " chaos %u",
                level.name,
                algos[static_cast<int>(id.algo)],
                protocols[static_cast<int>(id.protocol)],
                type_name(id.type),
                id.plain ? " plain" : "",
                ranks,
                static_cast<long long>(tokens),
                static_cast<long long>(hidden),
                static_cast<unsigned long long>(launch),
                tile_rows,
                blocks,
                static_cast<long long>(chunk_rows),
                residual,
                residual_out,
                allreduce_out,
                sharded,
                last_reduces,
                weight_plus_one,
                as_unfused,
                static_cast<int>(weight),
                static_cast<int>(bias),
                static_cast<int>(residual_out_in),
                static_cast<int>(norm_out_in),
                static_cast<int>(allreduce_out_in),
                static_cast<long long>(placement.offset),
                static_cast<long long>(placement.row_pad),
                checked,
                chaos);
  return out;
}

}  // namespace fccl::test
