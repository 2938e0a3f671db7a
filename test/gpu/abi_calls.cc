// Calls through the C ABI against the scalar reference, bit for bit: shapes, types, algorithms,
// streams.
#include <cstdio>

#include "gpu/abi_checks.h"
#include "gpu/abi_world.h"
#include "harness/generator.h"

namespace fccl::test {
namespace {

constexpr int64_t kMostElements = 600000;
constexpr int64_t kPatienceMs = 20000;

// All jobs in one go, then the checks.
std::string burst(const AbiRank& rank, std::vector<RankJob>& jobs) {
  rank.meet();
  for (const RankJob& job : jobs) ABI_EXPECT_OK(job.issue(rank, rank.stream));
  ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
  return check_all(jobs);
}

}  // namespace

std::string abi_exact(uint64_t seed, int ranks) {
  const AbiOptions options = abi_options(ranks);
  std::vector<FusedJobs> bursts;
  for (uint64_t b = 0; b < 6; ++b)
    bursts.push_back(random_jobs(7, mix(seed, b), ranks, kMostElements));
  return abi_threads(options, [&](AbiRank& rank) -> std::string {
    for (const FusedJobs& jobs : bursts) {
      auto mine = on_rank(jobs, rank.rank);
      ABI_EXPECT_OK(burst(rank, mine));
      rank.meet();
    }
    return "";
  });
}

std::string abi_algorithms(uint64_t seed, int ranks) {
  const char* const names[] = {"oneshot_lamport",
                               "oneshot_flags",
                               "oneshot_ll",
                               "twoshot_rows_lamport",
                               "twoshot_rows",
                               "twoshot_cols_lamport",
                               "twoshot_cols"};
  const FusedJobs jobs = random_jobs(9, mix(seed, 77), ranks, kMostElements);
  for (const char* name : names) {
    const std::string wrong =
        abi_threads(abi_options(ranks, {{"FCCL_ALGO", name}}), [&](AbiRank& rank) -> std::string {
          auto mine = on_rank(jobs, rank.rank);
          ABI_EXPECT_OK(burst(rank, mine));
          rank.meet();
          return "";
        });
    if (!wrong.empty()) return std::string(name) + ": " + wrong;
  }
  return "";
}

std::string abi_collectives(uint64_t seed) {
  constexpr int kRanks = 2;
  constexpr int64_t kCounts[] = {1, 1000, 4096, 70001};
  return abi_threads(abi_options(kRanks), [&](AbiRank& rank) -> std::string {
    for (const int64_t count : kCounts) {
      std::vector<Matrix> x;
      for (int r = 0; r < kRanks; ++r)
        x.push_back(make_input(TypeKind::BF16, 1, count * kRanks, mix(seed, count), r));
      const auto part = [&](const Matrix& whole, int which) {
        Matrix cut(TypeKind::BF16, 1, count);
        for (int64_t i = 0; i < count; ++i) cut.set_bits(0, i, whole.bits(0, which * count + i));
        return cut;
      };
      const Matrix sum = reduce_reference(x, fcclSum);
      Matrix gathered(TypeKind::BF16, 1, count * kRanks);
      for (int r = 0; r < kRanks; ++r) {
        const Matrix sent = copy_reference(part(x[static_cast<size_t>(r)], 0));
        for (int64_t i = 0; i < count; ++i) gathered.set_bits(0, r * count + i, sent.bits(0, i));
      }
      const auto mine = static_cast<size_t>(rank.rank);
      const auto n = static_cast<size_t>(count);
      DeviceMatrix send(x[mine], 0), reduced(sum, 0), scattered(part(sum, 0), 0), all(gathered, 0),
          root(part(x[1], 0), 0);
      for (DeviceMatrix* out : {&reduced, &scattered, &all, &root}) out->spoil();
      rank.meet();
      FCCL_EXPECT_OK(fcclAllReduce(send.data(),
                                   reduced.data(),
                                   n * kRanks,
                                   fcclBfloat16,
                                   fcclSum,
                                   rank.comm,
                                   rank.stream),
                     rank.comm);
      FCCL_EXPECT_OK(
          fcclReduceScatter(
              send.data(), scattered.data(), n, fcclBfloat16, fcclSum, rank.comm, rank.stream),
          rank.comm);
      FCCL_EXPECT_OK(
          fcclAllGather(send.data(), all.data(), n, fcclBfloat16, rank.comm, rank.stream),
          rank.comm);
      FCCL_EXPECT_OK(
          fcclBroadcast(send.data(), root.data(), n, fcclBfloat16, 1, rank.comm, rank.stream),
          rank.comm);
      ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
      ABI_EXPECT_OK(reduced.difference(sum, "all-reduce"));
      ABI_EXPECT_OK(scattered.difference(part(sum, rank.rank), "reduce-scatter"));
      ABI_EXPECT_OK(all.difference(gathered, "all-gather"));
      ABI_EXPECT_OK(root.difference(copy_reference(part(x[1], 0)), "broadcast"));
      rank.meet();
    }
    return "";
  });
}

// One communicator on many streams, no order of the caller's between them; one stream is destroyed
// as soon as it was used.
std::string abi_streams() {
  constexpr int kCalls = 60;
  const FusedJobs jobs = random_jobs(kCalls, 4711, 2, 100000);
  return abi_threads(abi_options(2), [&](AbiRank& rank) -> std::string {
    auto mine = on_rank(jobs, rank.rank);
    cudaStream_t streams[6] = {
        rank.stream, nullptr, cudaStreamPerThread, nullptr, nullptr, nullptr};
    for (int i = 3; i < 6; ++i)
      CUDA_OK(cudaStreamCreateWithFlags(&streams[i],
                                        i == 3 ? cudaStreamDefault : cudaStreamNonBlocking));
    rank.meet();
    for (int i = 0; i < kCalls; ++i) {
      const size_t at = mix(99, static_cast<uint64_t>(i)) % 6;
      ABI_EXPECT_OK(mine[static_cast<size_t>(i)].issue(rank, streams[at]));
      if (i == 20 || i == 41) {
        cudaStream_t gone = nullptr;
        CUDA_OK(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
        ABI_EXPECT_OK(mine[static_cast<size_t>(++i)].issue(rank, gone));
        CUDA_OK(cudaStreamDestroy(gone));
      }
    }
    for (const cudaStream_t stream : streams) ABI_EXPECT_OK(rank.wait(stream, kPatienceMs));
    CUDA_OK(cudaDeviceSynchronize());
    ABI_EXPECT_OK(check_all(mine));
    for (int i = 3; i < 6; ++i) CUDA_OK(cudaStreamDestroy(streams[i]));
    rank.meet();
    return "";
  });
}

// Rows beyond a block's registers, and tensors beyond one launch.
std::string abi_long_rows() {
  FusedJobs jobs;
  for (const auto& [rows, hidden] :
       {std::pair<int64_t, int64_t>{3, 40000}, {2, 65536}, {700, 4096}})
    jobs.push_back(std::make_shared<FusedJob>(FusedShape{TypeKind::BF16, rows, hidden, 5, 0}, 2));
  AbiOptions options = abi_options(2, {{"FCCL_WORKSPACE_BYTES", "1M"}});
  return abi_threads(options, [&](AbiRank& rank) -> std::string {
    auto mine = on_rank(jobs, rank.rank);
    ABI_EXPECT_OK(burst(rank, mine));
    rank.meet();
    return "";
  });
}

}  // namespace fccl::test
