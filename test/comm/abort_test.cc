// Abort and deadline: a blocked call ends in time, says why, and what is left can be destroyed.
#include <atomic>
#include <thread>

#include "harness/catch.h"
#include "harness/leftovers.h"
#include "harness/rank_process.h"

namespace fccl::test {
namespace {

std::string text_has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos ? ""
                                              : "\"" + text + "\" does not say \"" + part + "\"";
}

fcclResult_t one_call(fcclComm_t comm) {
  float data[256] = {};
  return fcclAllReduce(data, data, 256, fcclFloat32, fcclSum, comm, nullptr);
}

// Blocks until a peer aborts or dies; tells when it began and how it ended.
const Scenario blocked_scenario("blocked call", [](ProcessRank& self) -> std::string {
  fcclComm_t comm = nullptr;
  FCCL_EXPECT_OK(self.init(&comm), nullptr);
  FCCL_EXPECT_OK(one_call(comm), comm);
  if (self.rank() == 0) {
    self.tell("waits");
    const fcclResult_t result = one_call(comm);
    self.tell("ended", result, fcclGetLastError(comm));
  } else {
    self.tell("idle");
    usleep(self.parameter() == "abort" ? 100000 : 30000000);
    self.tell("aborts", fcclCommAbort(comm));
    usleep(500000);
  }
  fcclCommDestroy(comm);
  return "";
});

}  // namespace

TEST_CASE("abort: a blocked call returns within 100 ms") {
  for (const char* algorithm : {"oneshot_lamport", "oneshot_flags", "oneshot_ll", "twoshot_rows"}) {
    std::atomic<int64_t> aborted{0};
    const std::string errors = as_threads(
        ranks_of(2, {{"FCCL_ALGO", algorithm}}), [&](fcclComm_t comm, int rank) -> std::string {
          if (rank == 1) {  // never calls; stays until rank 0 is out
            while (aborted.load() == 0) usleep(1000);
            usleep(50000);
            return "";
          }
          std::thread aborter([&] {
            usleep(60000);
            aborted = now_ms();
            fcclCommAbort(comm);
          });
          std::vector<uint16_t> row(64);
          const fcclResult_t result = fcclAllReduceResidualRMSNorm(row.data(),
                                                                   nullptr,
                                                                   row.data(),
                                                                   nullptr,
                                                                   std::vector<uint16_t>(64).data(),
                                                                   1,
                                                                   64,
                                                                   fcclBfloat16,
                                                                   1e-6f,
                                                                   comm,
                                                                   nullptr);
          const int64_t late = now_ms() - aborted.load();
          aborter.join();
          if (result != fcclAborted) return "code " + std::to_string(result);
          if (late > bound_ms(100)) return "it took " + std::to_string(late) + " ms";
          // Sticky, twice is fine, and every later call says so.
          if (fcclCommAbort(comm) != fcclSuccess || one_call(comm) != fcclAborted)
            return "not sticky";
          const volatile uint32_t* word = nullptr;
          FCCL_EXPECT_OK(fcclCommErrorWord(comm, &word), comm);
          return *word == fcclAborted ? "" : "the error word is " + std::to_string(*word);
        });
    INFO(algorithm);
    CHECK(errors == "");
  }
}

TEST_CASE("abort: ends an init that waits for ranks") {
  const Environment clean(Variables{});
  RanksOptions options = ranks_of(2);
  options.config.blocking = -1;
  const fcclUniqueId id = new_id();
  fcclComm_t comm = nullptr;
  REQUIRE(fcclCommInitRankConfig(&comm, 2, &id, 0, &options.config) == fcclInProgress);
  REQUIRE(comm != nullptr);
  fcclResult_t state = fcclSuccess;
  CHECK(fcclCommGetAsyncError(comm, &state) == fcclSuccess);
  CHECK(state == fcclInProgress);
  CHECK(one_call(comm) == fcclInvalidUsage);
  const int64_t start = now_ms();
  CHECK(fcclCommAbort(comm) == fcclSuccess);
  do {
    usleep(1000);
    CHECK(fcclCommGetAsyncError(comm, &state) == fcclSuccess);
  } while (state == fcclInProgress && now_ms() - start < bound_ms(1000));
  CHECK(state == fcclAborted);
  CHECK(fcclCommDestroy(comm) == fcclSuccess);
  CHECK(now_ms() - start < bound_ms(2000));
}

TEST_CASE("abort: peers in other processes are told") {
  auto ranks = start_ranks("blocked call", ranks_of(2), "abort");
  const auto ended = ranks[0].wait_for("ended", bound_ms(20000));
  REQUIRE(ended);
  CHECK(ended->code == fcclRemoteError);
  CHECK(text_has(ended->text, "rank 1") == "");
  const auto aborts = ranks[1].wait_for("aborts", bound_ms(20000));
  REQUIRE(aborts);
  CHECK(ended->when_ms - aborts->when_ms < bound_ms(1000));
  for (RankProcess& rank : ranks) CHECK(rank.join(bound_ms(15000)) == 0);
}

TEST_CASE("deadline: an absent peer is named, SetTimeout counts, and Destroy works") {
  const std::string errors = as_threads(ranks_of(3), [&](fcclComm_t comm, int rank) -> std::string {
    FCCL_EXPECT_OK(one_call(comm), comm);
    FCCL_EXPECT_OK(fcclCommSetTimeout(comm, 200), comm);
    if (rank == 2) {
      usleep(static_cast<useconds_t>(bound_ms(900)) * 1000);
      return one_call(comm) == fcclSuccess ? "a call after the others' timeout succeeded" : "";
    }
    const int64_t start = now_ms();
    const fcclResult_t result = one_call(comm);
    const int64_t waited = now_ms() - start;
    if (result != fcclTimeout && result != fcclRemoteError) return "code " + std::to_string(result);
    if (waited < 150 || waited > bound_ms(800)) return "it took " + std::to_string(waited) + " ms";
    return result == fcclTimeout ? text_has(fcclGetLastError(comm), "rank 2") : "";
  });
  CHECK(errors == "");
}

TEST_CASE("nothing is left after init, calls and destroy") {
  as_threads(ranks_of(2),
             [](fcclComm_t comm, int) { return error_text(one_call(comm), "warm-up", comm); });
  const Holdings before = own_holdings();
  const auto named = named_things();
  for (int round = 0; round < 10; ++round)
    CHECK(as_threads(ranks_of(3), [](fcclComm_t comm, int) {
            return error_text(one_call(comm), "call", comm);
          }) == "");
  CHECK(text_of(settled_holdings(before)) == text_of(before));
  CHECK(named_things() == named);
}

}  // namespace fccl::test
