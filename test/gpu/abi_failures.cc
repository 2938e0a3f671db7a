// What users see when ranks do not come, disagree or are aborted: an error that names the rank, in
// time, and GPUs that serve the next communicator.
#include <cstdio>
#include <thread>

#include "gpu/abi_checks.h"
#include "gpu/abi_world.h"

namespace fccl::test {
namespace {

constexpr int64_t kPatienceMs = 20000;

// The sticky failure of `comm`, waited for.
std::string failure_of_comm(const AbiRank& rank, int64_t ms, fcclResult_t* code) {
  const int64_t end = now_ms() + ms;
  do {
    *code = fcclSuccess;
    if (fcclCommGetAsyncError(rank.comm, code) == fcclSuccess && *code != fcclSuccess)
      return fcclGetLastError(rank.comm);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (now_ms() < end);
  return "";
}

// A new communicator in the same process, right after.
std::string works_again(const AbiRank& rank, const fcclUniqueId& id, const FusedJobs& jobs) {
  AbiRank fresh(rank.rank, rank.ranks, rank.device);
  ABI_EXPECT_OK(fresh.init(id, abi_options(rank.ranks).config));
  auto mine = on_rank(jobs, rank.rank);
  rank.meet();
  for (const RankJob& job : mine) ABI_EXPECT_OK(job.issue(fresh, fresh.stream));
  ABI_EXPECT_OK(fresh.wait(fresh.stream, kPatienceMs));
  ABI_EXPECT_OK(check_all(mine));
  rank.meet();
  return error_text(fcclCommDestroy(fresh.comm), "fcclCommDestroy");
}

}  // namespace

std::string abi_missing_rank() {
  AbiOptions options = abi_options(2);
  options.config.call_timeout_ms = 1000;
  const FusedJobs jobs = random_jobs(2, 13, 2, 50000);
  const fcclUniqueId next = new_id();
  return abi_threads(options, [&](AbiRank& rank) -> std::string {
    auto mine = on_rank(jobs, rank.rank);
    rank.meet();
    const int64_t start = now_ms();
    if (rank.rank == 0) {
      for (const RankJob& job : mine) ABI_EXPECT_OK(job.issue(rank, rank.stream));
      ABI_EXPECT_OK(rank.wait(rank.stream, 3000));
      if (now_ms() - start < 900) return "the stream ended before the deadline";
    }
    fcclResult_t code = fcclSuccess;
    const std::string why = failure_of_comm(rank, 4000, &code);
    std::printf("  rank %d after %lld ms: code %d: %s\n",
                rank.rank,
                static_cast<long long>(now_ms() - start),
                code,
                why.c_str());
    if (rank.rank == 0 && (code != fcclTimeout || why.find("rank 1") == std::string::npos))
      return "no timeout that names rank 1: " + why;
    if (code == fcclSuccess) return "the late rank was not told";
    rank.meet();
    FCCL_EXPECT_OK(fcclCommDestroy(rank.comm), nullptr);
    rank.comm = nullptr;
    return works_again(rank, next, jobs);
  });
}

std::string abi_mismatch() {
  AbiOptions options = abi_options(2);
  options.config.check = 1;
  const FusedJobs jobs[2] = {
      {std::make_shared<FusedJob>(FusedShape{TypeKind::BF16, 4, 4096, 1, 0}, 2)},
      {std::make_shared<FusedJob>(FusedShape{TypeKind::BF16, 5, 4096, 1, 0}, 2)}};
  return abi_threads(options, [&](AbiRank& rank) -> std::string {
    auto good = on_rank(jobs[0], rank.rank), own = on_rank(jobs[rank.rank], rank.rank);
    rank.meet();
    ABI_EXPECT_OK(good[0].issue(rank, rank.stream));
    ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
    ABI_EXPECT_OK(check_all(good));
    rank.meet();
    const int64_t start = now_ms();
    ABI_EXPECT_OK(own[0].issue(rank, rank.stream));
    ABI_EXPECT_OK(rank.wait(rank.stream, 2000));
    fcclResult_t code = fcclSuccess;
    const std::string why = failure_of_comm(rank, 2000, &code);
    std::printf("  rank %d after %lld ms: code %d: %s\n",
                rank.rank,
                static_cast<long long>(now_ms() - start),
                code,
                why.c_str());
    if (code != fcclMismatch) return "no mismatch: " + why;
    rank.meet();
    return "";
  });
}

std::string abi_abort() {
  const FusedJobs jobs = random_jobs(3, 17, 2, 50000);
  const fcclUniqueId next = new_id();
  return abi_threads(abi_options(2), [&](AbiRank& rank) -> std::string {
    auto mine = on_rank(jobs, rank.rank);
    rank.meet();
    if (rank.rank == 0) {
      for (const RankJob& job : mine) ABI_EXPECT_OK(job.issue(rank, rank.stream));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const int64_t start = now_ms();
      FCCL_EXPECT_OK(fcclCommAbort(rank.comm), rank.comm);
      ABI_EXPECT_OK(rank.wait(rank.stream, 1000));
      std::printf("  the stream ended %lld ms after the abort\n",
                  static_cast<long long>(now_ms() - start));
      if (now_ms() - start > 100) return "the stream took longer than 100 ms";
    }
    fcclResult_t code = fcclSuccess;
    const std::string why = failure_of_comm(rank, 2000, &code);
    if (rank.rank == 0 && code != fcclAborted) return "rank 0 is not aborted: " + why;
    if (rank.rank == 1 && (code != fcclRemoteError || why.find("rank 0") == std::string::npos))
      return "rank 1 was not told by whom: " + why;
    rank.meet();
    FCCL_EXPECT_OK(fcclCommDestroy(rank.comm), nullptr);
    rank.comm = nullptr;
    return works_again(rank, next, jobs);
  });
}

// Init, calls, destroy: nothing may pile up.
std::string abi_many_rounds(int rounds) {
  const FusedJobs jobs = random_jobs(3, 19, 2, 20000);
  std::vector<fcclUniqueId> ids;
  for (int i = 0; i < rounds; ++i) ids.push_back(new_id());
  AbiOptions options = abi_options(2, {{"FCCL_WORKSPACE_BYTES", "1M"}});
  return abi_threads(
      options,
      [&](AbiRank& rank) -> std::string {
        auto mine = on_rank(jobs, rank.rank);
        size_t free_then = 0, free_now = 0, total = 0;
        const int64_t start = now_ms();
        for (int i = 0; i < rounds; ++i) {
          ABI_EXPECT_OK(rank.init(ids[static_cast<size_t>(i)], options.config));
          for (const RankJob& job : mine) ABI_EXPECT_OK(job.issue(rank, rank.stream));
          ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
          ABI_EXPECT_OK(check_all(mine));
          FCCL_EXPECT_OK(fcclCommDestroy(rank.comm), nullptr);
          rank.comm = nullptr;
          rank.meet();
          if (i == 2) CUDA_OK(cudaMemGetInfo(&free_then, &total));
        }
        CUDA_OK(cudaMemGetInfo(&free_now, &total));
        std::printf("  rank %d: %d rounds of init, 3 calls, destroy: %.1f ms each\n",
                    rank.rank,
                    rounds,
                    static_cast<double>(now_ms() - start) / rounds);
        if (free_now + (1 << 20) < free_then)
          return std::to_string(free_then - free_now) + " bytes of the GPU are gone";
        return "";
      },
      false);
}

}  // namespace fccl::test
