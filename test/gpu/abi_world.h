// GPU ranks over the C ABI, as threads of this process: a communicator, a device and a stream each.
// What a body answers is what went wrong, or "". Device memory is allocated before anything is
// launched, since freeing it waits for kernels.
#pragma once
#include <cuda_runtime_api.h>
#include <fccl/fccl.h>

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/ranks.h"
#include "harness/reference.h"

namespace fccl::test {

// Ends the program with the place: nothing sensible can follow.
void check_cuda_call(cudaError_t result, const char* what, const char* file, int line);
#define CUDA_OK(call) ::fccl::test::check_cuda_call((call), #call, __FILE__, __LINE__)

int device_count();
// The GPUs that tests spread their ranks over: two, or as FCCL_TEST_GPUS says.
int devices_to_use();

struct AbiOptions {
  int ranks = 2;
  int devices = 2;
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  Variables environment;
};
// Two ranks or more over the devices there are; deadlines that end a test.
AbiOptions abi_options(int ranks, Variables environment = {});

class AbiRank {
 public:
  AbiRank(int rank, int ranks, int device);
  ~AbiRank();
  AbiRank(const AbiRank&) = delete;
  AbiRank& operator=(const AbiRank&) = delete;

  std::string init(const fcclUniqueId& id, fcclConfig config);
  // Waits for the other ranks of this process.
  void meet() const {
    if (barrier != nullptr) barrier->arrive_and_wait();
  }
  // Until the stream is idle; a text after `ms`.
  std::string wait(cudaStream_t which, int64_t ms) const;

  const int rank, ranks, device;
  fcclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::barrier<>* barrier = nullptr;
};

using AbiBody = std::function<std::string(AbiRank&)>;
// `make`: init and destroy the communicator around the body.
std::string abi_threads(const AbiOptions& options, const AbiBody& body, bool make = true);

// A tensor in device memory, `offset` elements beyond a 256-byte boundary.
class DeviceMatrix {
 public:
  DeviceMatrix() = default;
  DeviceMatrix(const Matrix& content, int offset);
  ~DeviceMatrix();
  DeviceMatrix(DeviceMatrix&& other) noexcept;
  DeviceMatrix& operator=(DeviceMatrix&& other) noexcept;

  void* data() const { return memory_ == nullptr ? nullptr : memory_ + offset_; }
  void spoil();  // overwrites it, so that what is not written shows
  std::string difference(const Matrix& want, const char* name) const;

 private:
  char* memory_ = nullptr;
  size_t offset_ = 0;
  size_t bytes_ = 0;
};

struct FusedShape {
  TypeKind type = TypeKind::BF16;
  int64_t rows = 1;
  int64_t hidden = 4096;
  uint64_t launch = 0;  // of the inputs
  int offset = 0;  // of the tensors
  std::string text() const;
};
// A shape of the kind that inference calls, or an odd one.
FusedShape random_shape(uint64_t seed, int64_t most_elements);

// Inputs of all ranks and the bits that must come out, shared by the ranks.
struct FusedJob {
  FusedJob(const FusedShape& shape, int ranks);
  FusedShape shape;
  FusedInputs in;
  FusedOutputs want;
};
using FusedJobs = std::vector<std::shared_ptr<const FusedJob>>;
FusedJobs random_jobs(int count, uint64_t seed, int ranks, int64_t most_elements);

// One rank's buffers of a job.
class RankJob {
 public:
  RankJob(std::shared_ptr<const FusedJob> job, int rank);
  std::string issue(const AbiRank& rank, cudaStream_t stream) const {
    return issue(rank.comm, stream);
  }
  std::string issue(fcclComm_t comm, cudaStream_t stream) const;
  std::string check();  // when the stream is idle; spoils the outputs
  const FusedJob& job() const { return *job_; }
  void* residual_out() const { return residual_out_.data(); }
  void* norm_out() const { return norm_out_.data(); }

 private:
  std::shared_ptr<const FusedJob> job_;
  DeviceMatrix input_, residual_, weight_, residual_out_, norm_out_;
};
std::vector<RankJob> on_rank(const FusedJobs& jobs, int rank);
std::string check_all(std::vector<RankJob>& jobs);

#define ABI_EXPECT_OK(expression)            \
  do {                                       \
    const std::string wrong_ = (expression); \
    if (!wrong_.empty()) return wrong_;      \
  } while (false)

}  // namespace fccl::test
