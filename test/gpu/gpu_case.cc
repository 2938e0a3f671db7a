// See gpu_case.h.
#include "gpu/gpu_case.h"

#include <utility>

#include "harness/generator.h"

namespace fccl::test {
namespace {

int row_packs(const KernelCase& c) {
  return static_cast<int>((c.hidden * element_bytes(c.id.type) + 15) / 16);
}
int64_t rows_of(const KernelCase& c, int rank) {
  return c.tokens / c.ranks + (rank < c.tokens % c.ranks ? 1 : 0);
}
int64_t first_row_of(const KernelCase& c, int rank) {
  const int64_t extra = c.tokens % c.ranks;
  return rank * (c.tokens / c.ranks) + (rank < extra ? rank : extra);
}

}  // namespace

DeviceBuffer::DeviceBuffer(Buffer content, int64_t rows)
    : host_(std::move(content)), stride_(host_.stride_bytes()) {
  offset_ = reinterpret_cast<uintptr_t>(host_.data()) % 64;
  bytes_ = static_cast<size_t>(rows * stride_);
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory_), offset_ + bytes_ + 2 * kAround));
  CHECK_CUDA(cudaMemcpy(
      memory_ + offset_, host_.data() - kAround, bytes_ + 2 * kAround, cudaMemcpyHostToDevice));
}
DeviceBuffer::~DeviceBuffer() {
  if (memory_ != nullptr) CHECK_CUDA(cudaFree(memory_));
}
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(host_, other.host_);
  std::swap(memory_, other.memory_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  std::swap(stride_, other.stride_);
  return *this;
}
std::string DeviceBuffer::difference(const Matrix& want, const char* name) {
  CHECK_CUDA(cudaMemcpy(
      host_.data() - kAround, memory_ + offset_, bytes_ + 2 * kAround, cudaMemcpyDeviceToHost));
  return host_.difference(want, name);
}

struct GpuCase::RankState {
  DeviceBuffer input, residual, weight, bias, residual_out, norm_out, allreduce_out;
  KernelArgs args{};

  DeviceBuffer& place(Share share, DeviceBuffer& own) {
    return share == Share::Input ? input : share == Share::Residual ? residual : own;
  }
};

GpuCase::~GpuCase() = default;

GpuCase::GpuCase(GpuWorld& world, const KernelCase& c, int packs_per_thread)
    : world_(world), case_(c), problem_(fccl::test::make_problem(c)) {
  KernelId id = c.id;
  // Those kernels are there for rows of any length and for checked mode.
  if (packs_per_thread == 0 || c.checked) id.plain = false;
  kernel_ = find_cuda_kernel(id, c.ranks, row_packs(c), packs_per_thread);
  for (int r = 0; r < c.ranks; ++r) rank_.push_back(make_rank(r));
}

std::unique_ptr<GpuCase::RankState> GpuCase::make_rank(int rank) const {
  const KernelCase& c = case_;
  const FusedInputs& in = problem_.inputs;
  CHECK_CUDA(cudaSetDevice(world_.device(rank)));
  auto state = std::make_unique<RankState>();
  RankState& s = *state;
  const TypeKind type = c.id.type;
  const int64_t own_rows = c.sharded ? rows_of(c, rank) : c.tokens;
  const auto output = [&](int64_t rows) {
    return DeviceBuffer(Buffer::output(type, rows, c.hidden, c.placement), rows);
  };
  s.input = DeviceBuffer(Buffer(in.x[static_cast<size_t>(rank)], c.placement), c.tokens);
  if (in.residual) {
    const Matrix rows =
        c.sharded ? in.residual->slice(first_row_of(c, rank), own_rows) : *in.residual;
    s.residual = DeviceBuffer(Buffer(rows, c.placement), own_rows);
  }
  const Placement vector{c.placement.offset, 0};
  s.weight = DeviceBuffer(Buffer(in.weight, vector), 1);
  if (in.bias) s.bias = DeviceBuffer(Buffer(*in.bias, vector), 1);
  s.residual_out = output(own_rows);
  s.norm_out = output(c.tokens);
  s.allreduce_out = output(c.tokens);

  KernelArgs& a = s.args;
  a.ex = world_.exchange(rank, c.id);
  a.ex.tile_rows = c.tile_rows;
  a.ex.tokens = static_cast<uint32_t>(c.tokens);
  a.ex.checked = c.checked ? 1 : 0;
  a.input = s.input.tensor();
  if (c.residual) a.residual = s.residual.tensor();
  if (c.residual_out) a.residual_out = s.place(c.residual_out_in, s.residual_out).tensor();
  if (c.allreduce_out) a.allreduce_out = s.place(c.allreduce_out_in, s.allreduce_out).tensor();
  a.norm_out = s.place(c.norm_out_in, s.norm_out).tensor();
  a.weight = s.weight.data();
  a.bias = c.bias == VectorType::Absent ? nullptr : s.bias.data();
  a.total_rows = c.tokens;
  a.rows = static_cast<int32_t>(c.tokens);
  a.chunk_rows =
      static_cast<int32_t>(c.id.algo == AlgoKind::TwoshotRows ? rows_of(c, 0) : c.tokens);
  a.hidden = static_cast<int32_t>(c.hidden);
  a.last_hidden = a.hidden;
  a.packs = row_packs(c);
  a.flags = (c.weight == VectorType::Float32 ? kWeightF32 : 0u) |
            (c.bias == VectorType::Float32 ? kBiasF32 : 0u) |
            (c.weight_plus_one ? kWeightPlusOne : 0u) | (c.as_unfused ? kRoundSum : 0u) |
            (c.sharded ? kResidualSharded : 0u) | (c.launch % 2 == 1 ? kEarlyTrigger : 0u);
  a.eps = c.eps;
  a.inv_hidden = 1.0f / static_cast<float>(c.hidden);
  return state;
}

void GpuCase::launch(int rank) {
  RankState& s = *rank_[static_cast<size_t>(rank)];
  GpuShape shape = shape_of(kernel_, s.args.packs);
  const size_t shared = kernel_.packs == 0 ? stream_shared_bytes(s.args.packs) : 0;
  const int most = world_.most_blocks(kernel_, shape.threads, shared);
  const int wish = 1 + (case_.blocks - 1 + rank) % case_.blocks;  // ranks may differ
  shape.blocks = wish < most ? wish : most;
  shape.dependent = world_.dependents_fit() && case_.launch % 3 != 0;
  launched_ = true;
  check_pads(case_.id, s.args);
  world_.launch(rank, kernel_, s.args, shape);
}

std::string GpuCase::check(int rank) {
  RankState& s = *rank_[static_cast<size_t>(rank)];
  const KernelCase& c = case_;
  const FusedInputs& in = problem_.inputs;
  const auto own_rows = [&](const Matrix& m) {
    return c.sharded ? m.slice(first_row_of(c, rank), rows_of(c, rank)) : m;
  };
  CHECK_CUDA(cudaSetDevice(world_.device(rank)));
  Matrix in_input = in.x[static_cast<size_t>(rank)];
  Matrix in_residual = in.residual ? own_rows(*in.residual) : Matrix();
  std::string error;
  const auto look =
      [&](Share share, DeviceBuffer& own, const Matrix& want, bool wanted, const char* name) {
        if (!wanted || !error.empty()) return;
        if (share == Share::Input) in_input = want;
        if (share == Share::Residual) in_residual = want;
        error = s.place(share, own).difference(want, name);
      };
  const FusedOutputs& out = problem_.expected;
  look(c.residual_out_in,
       s.residual_out,
       own_rows(out.residual_out),
       c.residual_out,
       "residual_out");
  look(c.norm_out_in, s.norm_out, out.norm_out, true, "norm_out");
  look(c.allreduce_out_in, s.allreduce_out, out.sum, c.allreduce_out, "allreduce_out");
  if (error.empty()) error = s.input.difference(in_input, "input");
  if (error.empty() && in.residual) error = s.residual.difference(in_residual, "residual");
  if (error.empty()) error = s.weight.difference(in.weight, "weight");
  return error.empty() ? "" : text() + ": rank " + std::to_string(rank) + ": " + error;
}

std::string GpuCase::text() const {
  return case_.text() + ", instance of " + std::to_string(kernel_.packs) + " packs";
}

}  // namespace fccl::test
