// Several communicators at once on the same GPUs, and several ranks on one GPU.
#include "gpu/abi_checks.h"
#include "gpu/abi_world.h"

namespace fccl::test {
namespace {

constexpr int64_t kPatienceMs = 20000;

std::string init_error(const AbiOptions& options, fcclResult_t want, const char* text) {
  const fcclUniqueId id = new_id();
  return abi_threads(
      options,
      [&](AbiRank& rank) -> std::string {
        fcclConfig config = options.config;
        const fcclResult_t got =
            fcclCommInitRankConfig(&rank.comm, rank.ranks, &id, rank.rank, &config);
        const std::string why = fcclGetLastError(nullptr);
        if (got == want && why.find(text) != std::string::npos) return "";
        return "init: code " + std::to_string(got) + ": " + why;
      },
      false);
}

}  // namespace

// Two communicators, large tensors, the order of the launches differs by rank: each must leave room
// for the other.
std::string abi_several_communicators() {
  FusedJobs jobs;
  for (const auto& [rows, hidden] :
       {std::pair<int64_t, int64_t>{512, 4096}, {300, 8192}, {1, 8192}, {200, 2048}})
    jobs.push_back(std::make_shared<FusedJob>(FusedShape{TypeKind::BF16, rows, hidden, 9, 0}, 2));
  const AbiOptions options = abi_options(2);
  const fcclUniqueId second = new_id();
  return abi_threads(options, [&](AbiRank& rank) -> std::string {
    AbiRank other(rank.rank, rank.ranks, rank.device);
    ABI_EXPECT_OK(other.init(second, options.config));
    auto a = on_rank(jobs, rank.rank), b = on_rank(jobs, rank.rank);
    for (int round = 0; round < 10; ++round) {
      rank.meet();
      for (size_t i = 0; i < a.size(); ++i) {
        if (rank.rank == 0) ABI_EXPECT_OK(a[i].issue(rank, rank.stream));
        ABI_EXPECT_OK(b[i].issue(other, other.stream));
        if (rank.rank == 1) ABI_EXPECT_OK(a[i].issue(rank, rank.stream));
      }
      ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
      ABI_EXPECT_OK(rank.wait(other.stream, kPatienceMs));
      ABI_EXPECT_OK(check_all(a));
      ABI_EXPECT_OK(check_all(b));
    }
    rank.meet();
    FCCL_EXPECT_OK(fcclCommDestroy(other.comm), nullptr);
    return "";
  });
}

std::string abi_shared_devices(int ranks) {
  std::vector<FusedJobs> bursts;
  for (uint64_t b = 0; b < 3; ++b) bursts.push_back(random_jobs(6, 500 + b, ranks, 80000));
  return abi_threads(abi_options(ranks), [&](AbiRank& rank) -> std::string {
    for (const FusedJobs& jobs : bursts) {
      auto mine = on_rank(jobs, rank.rank);
      rank.meet();
      for (const RankJob& job : mine) ABI_EXPECT_OK(job.issue(rank, rank.stream));
      ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
      rank.meet();  // what a check does waits for the device
      ABI_EXPECT_OK(check_all(mine));
      rank.meet();
    }
    return "";
  });
}

std::string abi_shared_refused() {
  AbiOptions options = abi_options(2);
  options.devices = 1;
  options.config.shared_device = -1;
  return init_error(options, fcclInvalidUsage, "ranks 0 and 1 are on one device");
}

std::string abi_default_stream_refused() {
  AbiOptions options = abi_options(2);
  options.devices = 1;
  options.config.shared_device = 1;
  const FusedJobs jobs = random_jobs(1, 66, 2, 10000);
  return abi_threads(options, [&](AbiRank& rank) -> std::string {
    auto mine = on_rank(jobs, rank.rank);
    rank.meet();
    if (mine[0].issue(rank, nullptr).find("non-blocking") == std::string::npos)
      return "the default stream was not refused";
    ABI_EXPECT_OK(mine[0].issue(rank, rank.stream));
    ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
    rank.meet();
    ABI_EXPECT_OK(check_all(mine));
    rank.meet();
    return "";
  });
}

}  // namespace fccl::test
