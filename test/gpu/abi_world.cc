// See abi_world.h.
#include "gpu/abi_world.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "harness/generator.h"

namespace fccl::test {
namespace {

int32_t datatype(TypeKind type) {
  return type == TypeKind::F32 ? fcclFloat32 : type == TypeKind::F16 ? fcclFloat16 : fcclBfloat16;
}

FusedInputs inputs_of(const FusedShape& s, int ranks) {
  FusedInputs in;
  for (int r = 0; r < ranks; ++r) in.x.push_back(make_input(s.type, s.rows, s.hidden, s.launch, r));
  in.residual = make_input(s.type, s.rows, s.hidden, s.launch, -1);
  in.weight = make_weight(s.type, s.hidden, s.launch);
  in.eps = 1e-5f;
  return in;
}

}  // namespace

void check_cuda_call(cudaError_t result, const char* what, const char* file, int line) {
  if (result == cudaSuccess) return;
  std::printf("%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(result));
  std::fflush(stdout);
  std::_Exit(3);
}

int device_count() {
  int count = 0;
  CUDA_OK(cudaGetDeviceCount(&count));
  return count;
}

int devices_to_use() {
  const char* most = std::getenv("FCCL_TEST_GPUS");
  return std::min(device_count(), most == nullptr ? 2 : std::max(std::atoi(most), 1));
}

AbiOptions abi_options(int ranks, Variables environment) {
  AbiOptions options;
  options.ranks = ranks;
  options.devices = devices_to_use();
  options.config.backend = fcclBackendCuda;
  options.config.shared_device = ranks > options.devices ? 1 : 0;
  options.config.init_timeout_ms = 20000;
  options.config.call_timeout_ms = 3000;
  options.config.destroy_timeout_ms = 5000;
  options.environment = std::move(environment);
  return options;
}

AbiRank::AbiRank(int rank_, int ranks_, int device_) : rank(rank_), ranks(ranks_), device(device_) {
  CUDA_OK(cudaSetDevice(device));
  CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

AbiRank::~AbiRank() {
  CUDA_OK(cudaStreamDestroy(stream));
}

std::string AbiRank::init(const fcclUniqueId& id, fcclConfig config) {
  int before = -1, after = -1;
  CUDA_OK(cudaGetDevice(&before));
  const fcclResult_t made = fcclCommInitRankConfig(&comm, ranks, &id, rank, &config);
  CUDA_OK(cudaGetDevice(&after));
  if (before != after) return "init changed the current device";
  return error_text(made, "init");
}

std::string AbiRank::wait(cudaStream_t which, int64_t ms) const {
  const int64_t end = now_ms() + ms;
  for (;;) {
    const cudaError_t state = cudaStreamQuery(which);
    if (state == cudaSuccess) return "";
    if (state != cudaErrorNotReady) CUDA_OK(state);
    if (now_ms() > end) return "the stream does not end";
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

std::string abi_threads(const AbiOptions& options, const AbiBody& body, bool make) {
  const Environment environment(options.environment);
  const fcclUniqueId id = new_id();
  std::barrier<> barrier(options.ranks);
  std::vector<std::string> errors(static_cast<size_t>(options.ranks));
  const auto run = [&](int r) -> std::string {
    AbiRank rank(r, options.ranks, r % options.devices);
    rank.barrier = &barrier;
    if (make) ABI_EXPECT_OK(rank.init(id, options.config));
    std::string wrong = body(rank);
    if (!wrong.empty() && rank.comm != nullptr) fcclCommAbort(rank.comm);
    const fcclResult_t destroyed = fcclCommDestroy(rank.comm);
    return wrong.empty() ? error_text(destroyed, "fcclCommDestroy") : wrong;
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < options.ranks; ++r)
    threads.emplace_back([&, r] {
      errors[static_cast<size_t>(r)] = run(r);
      barrier.arrive_and_drop();
    });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (int r = 0; r < options.ranks; ++r)
    if (!errors[static_cast<size_t>(r)].empty())
      all += (all.empty() ? "rank " : "; rank ") + std::to_string(r) + ": " +
             errors[static_cast<size_t>(r)];
  return all;
}

// ---------------------------------------------------------------- tensors

DeviceMatrix::DeviceMatrix(const Matrix& content, int offset)
    : offset_(static_cast<size_t>(offset * element_bytes(content.type()))),
      bytes_(content.row_bytes() * static_cast<size_t>(content.rows())) {
  CUDA_OK(cudaMalloc(reinterpret_cast<void**>(&memory_), bytes_ + offset_ + 256));
  if (bytes_ != 0) CUDA_OK(cudaMemcpy(data(), content.row(0), bytes_, cudaMemcpyHostToDevice));
}

DeviceMatrix::~DeviceMatrix() {
  if (memory_ != nullptr) CUDA_OK(cudaFree(memory_));
}

DeviceMatrix::DeviceMatrix(DeviceMatrix&& other) noexcept {
  *this = std::move(other);
}

DeviceMatrix& DeviceMatrix::operator=(DeviceMatrix&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void DeviceMatrix::spoil() {
  CUDA_OK(cudaMemset(data(), 0xC5, bytes_));
  CUDA_OK(cudaStreamSynchronize(nullptr));
}

std::string DeviceMatrix::difference(const Matrix& want, const char* name) const {
  Matrix got(want.type(), want.rows(), want.columns());
  if (bytes_ != 0) CUDA_OK(cudaMemcpy(got.row(0), data(), bytes_, cudaMemcpyDeviceToHost));
  return first_difference(got, want, name);
}

// ---------------------------------------------------------------- jobs

std::string FusedShape::text() const {
  return std::to_string(rows) + " x " + std::to_string(hidden) + " " + type_name(type) +
         ", launch " + std::to_string(launch) + ", offset " + std::to_string(offset);
}

FusedShape random_shape(uint64_t seed, int64_t most_elements) {
  constexpr int64_t kHidden[] = {2048, 4096, 5120, 7168, 8192, 2880, 64, 8191, 16384};
  constexpr int64_t kRows[] = {1, 2, 3, 4, 8, 17, 33, 64, 129, 200, 300, 600};
  FusedShape s;
  s.type = static_cast<TypeKind>(mix(seed, 1) % 3);
  s.hidden = kHidden[mix(seed, 2) % std::size(kHidden)];
  s.rows = kRows[mix(seed, 3) % std::size(kRows)];
  while (s.rows > 1 && s.rows * s.hidden > most_elements) s.rows /= 2;
  s.launch = mix(seed, 4) % 100000;
  s.offset = mix(seed, 5) % 8 == 0 ? 1 : 0;
  return s;
}

FusedJob::FusedJob(const FusedShape& shape_, int ranks)
    : shape(shape_), in(inputs_of(shape_, ranks)), want(fused_reference(in)) {}

FusedJobs random_jobs(int count, uint64_t seed, int ranks, int64_t most_elements) {
  FusedJobs jobs;
  for (int i = 0; i < count; ++i)
    jobs.push_back(std::make_shared<FusedJob>(
        random_shape(mix(seed, static_cast<uint64_t>(i)), most_elements), ranks));
  return jobs;
}

RankJob::RankJob(std::shared_ptr<const FusedJob> job, int rank)
    : job_(std::move(job)),
      input_(job_->in.x[static_cast<size_t>(rank)], job_->shape.offset),
      residual_(*job_->in.residual, job_->shape.offset),
      weight_(job_->in.weight, job_->shape.offset),
      residual_out_(job_->want.residual_out, job_->shape.offset),
      norm_out_(job_->want.norm_out, job_->shape.offset) {
  residual_out_.spoil();
  norm_out_.spoil();
}

std::string RankJob::issue(fcclComm_t comm, cudaStream_t stream) const {
  const FusedShape& s = job_->shape;
  return error_text(fcclAllReduceResidualRMSNorm(input_.data(),
                                                 residual_.data(),
                                                 weight_.data(),
                                                 residual_out_.data(),
                                                 norm_out_.data(),
                                                 s.rows,
                                                 s.hidden,
                                                 static_cast<fcclDataType_t>(datatype(s.type)),
                                                 job_->in.eps,
                                                 comm,
                                                 stream),
                    s.text().c_str(),
                    comm);
}

std::string RankJob::check() {
  std::string wrong = residual_out_.difference(job_->want.residual_out, "residual_out");
  if (wrong.empty()) wrong = norm_out_.difference(job_->want.norm_out, "norm_out");
  residual_out_.spoil();
  norm_out_.spoil();
  return wrong.empty() ? "" : job_->shape.text() + ": " + wrong;
}

std::vector<RankJob> on_rank(const FusedJobs& jobs, int rank) {
  std::vector<RankJob> all;
  for (const auto& job : jobs) all.emplace_back(job, rank);
  return all;
}

std::string check_all(std::vector<RankJob>& jobs) {
  for (RankJob& job : jobs) ABI_EXPECT_OK(job.check());
  return "";
}

}  // namespace fccl::test
