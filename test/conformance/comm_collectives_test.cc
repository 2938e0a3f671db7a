// The plain collectives through the C ABI: every call, operator and type in random order and size,
// in place and not, chunked and not, over ranks as threads and as processes.
#include "harness/catch.h"
#include "harness/collective_case.h"
#include "harness/rank_process.h"

namespace fccl::test {
namespace {

std::string run_calls(fcclComm_t comm, int rank, int ranks, uint64_t seed, uint64_t calls) {
  for (uint64_t i = 0; i < calls; ++i) {
    const auto answer = call_collective(collective_case(seed, i, ranks), i, comm, rank, ranks);
    if (!answer.error.empty()) return "call " + std::to_string(i) + ": " + answer.error;
  }
  return "";
}

const Scenario collectives_scenario("collectives", [](ProcessRank& self) -> std::string {
  fcclComm_t comm = nullptr;
  FCCL_EXPECT_OK(self.init(&comm), nullptr);
  std::string error =
      run_calls(comm, self.rank(), self.ranks(), std::stoull(self.parameter()), 100);
  FCCL_EXPECT_OK(fcclCommDestroy(comm), nullptr);
  return error;
});

}  // namespace

TEST_CASE("collective calls: on ranks as threads") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(as_threads(ranks_of(ranks), [&](fcclComm_t comm, int rank) {
            return run_calls(comm, rank, ranks, static_cast<uint64_t>(ranks), 60);
          }) == "");
  }
}

TEST_CASE("collective calls: chunked over a small workspace") {
  for (const char* algorithm :
       {"oneshot_lamport", "oneshot_flags", "twoshot_rows", "twoshot_rows_lamport"}) {
    INFO(algorithm);
    CHECK(as_threads(ranks_of(3, {{"FCCL_ALGO", algorithm}, {"FCCL_WORKSPACE_BYTES", "16K"}}),
                     [&](fcclComm_t comm, int rank) { return run_calls(comm, rank, 3, 77, 80); }) ==
          "");
  }
}

TEST_CASE("collective calls: chaos seeds") {
  for (int seed = 1; seed <= 20; ++seed) {
    const int ranks = 2 + seed % 3;
    INFO("seed " << seed);
    CHECK(as_threads(ranks_of(ranks, {{"FCCL_TEST_CHAOS", std::to_string(seed)}}),
                     [&](fcclComm_t comm, int rank) {
                       return run_calls(comm, rank, ranks, static_cast<uint64_t>(seed), 15);
                     }) == "");
  }
}

TEST_CASE("collective calls: on ranks as processes") {
  for (const int ranks : {2, 3, 8})
    CHECK(as_processes("collectives", ranks_of(ranks), std::to_string(ranks)) == "");
}

}  // namespace fccl::test
