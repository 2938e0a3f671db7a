// Reports about bootstrap and network, by their number. (B02 to B07, B12 and B13, and more of B08
// and B11, are in test/bootstrap, where a rank needs no communicator; B14 needs a GPU.)
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "harness/inits.h"
#include "harness/rank_process.h"
#include "reports/calls.h"

namespace fccl::test {
namespace {

const Scenario join_scenario("join as a host", [](ProcessRank& self) -> std::string {
  // The parameter has a host's name for each rank, one character each.
  const std::string hosts = self.parameter();
  if (!hosts.empty()) {
    const std::string host(1, hosts[static_cast<size_t>(self.rank())]);
    setenv("FCCL_HOSTID", host.c_str(), 1);
  }
  fcclComm_t comm = nullptr;
  const int64_t start = now_ms();
  const fcclResult_t joined = self.init(&comm);
  self.tell("took", static_cast<int>(now_ms() - start));
  self.tell("ended", joined, joined == fcclSuccess ? "" : fcclGetLastError(nullptr));
  if (comm != nullptr) fcclCommDestroy(comm);
  return "";
});

}  // namespace

TEST_CASE("B08 B09 ranks on two hosts are refused in init, in under 1 s, with host and rank") {
  auto ranks = start_ranks("join as a host", ranks_of(4), "aabb");
  for (RankProcess& rank : ranks) {
    const auto took = rank.wait_for("took", bound_ms(20000));
    REQUIRE(took);
    CHECK(took->code < bound_ms(1000));
    const auto ended = rank.wait_for("ended", bound_ms(1000));
    REQUIRE(ended);
    const std::string text = ended->text;
    INFO(text);
    CHECK(ended->code == fcclUnsupported);
    CHECK(text.find("2 hosts") != std::string::npos);
    for (int r = 0; r < 4; ++r)
      CHECK(text.find("rank " + std::to_string(r) + " on ") != std::string::npos);
    CHECK(rank.join(bound_ms(10000)) == 0);
  }
}

// Rank 1 lives in a network of its own (and can then neither see abstract sockets nor loopback).
static const Scenario network_scenario("own network", [](ProcessRank& self) -> std::string {
  if (self.rank() == 1 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0)
    self.tell("no unshare");
  fcclComm_t comm = nullptr;
  const fcclResult_t joined = self.init(&comm);
  self.tell("ended", joined, joined == fcclSuccess ? "" : fcclGetLastError(nullptr));
  std::string error;
  Matrix data = filled(TypeKind::F32, 1, 100, 1.0);
  if (comm != nullptr) error = sum_in_place(comm, data);
  if (comm != nullptr && error.empty())
    error = first_difference(data, filled(TypeKind::F32, 1, 100, 2.0), "sum");
  if (comm != nullptr) fcclCommDestroy(comm);
  return error;
});

static std::vector<Outcome> over_networks(const std::string& socket_dir, int64_t init_ms) {
  RanksOptions options = ranks_of(2);
  if (!socket_dir.empty()) options.environment = {{"FCCL_SOCKET_DIR", socket_dir}};
  options.config.init_timeout_ms = init_ms;
  const Environment environment(options.environment);
  auto ranks = start_ranks("own network", options);
  std::vector<Outcome> outcomes;
  for (RankProcess& rank : ranks) {
    const auto ended = rank.wait_for("ended", bound_ms(30000));
    REQUIRE(ended);
    outcomes.push_back({static_cast<fcclResult_t>(ended->code), ended->text, false});
    const auto end = rank.wait_for("end", bound_ms(30000));
    REQUIRE(end);
    CHECK(std::string(end->text) == "");
    CHECK(rank.join(bound_ms(10000)) == 0);
  }
  return outcomes;
}

TEST_CASE(
    "B10 M19 ranks in separate networks meet through a shared folder, or say who is missing") {
  char folder[] = "/tmp/reports-test-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);  // 0700
  const auto with = over_networks(folder, bound_ms(20000));
  INFO(shown(with));
  for (const Outcome& o : with) CHECK(o.code == fcclSuccess);
  CHECK(rmdir(folder) == 0);  // and no socket stays in it
  const int64_t start = now_ms();
  const auto without = over_networks("", bound_ms(1000));
  INFO(shown(without));
  if (without[1].code == fcclSuccess) {
    WARN("skipped: no network namespace may be made here");
    return;
  }
  CHECK(now_ms() - start < bound_ms(5000));
  CHECK(without[0].code == fcclTimeout);
  CHECK(without[0].text.find("rank 1") != std::string::npos);
  CHECK(without[1].code != fcclSuccess);
}

TEST_CASE("B11 wrong numbers of ranks end on all sides before the deadline") {
  const Environment clean(Variables{});
  const RanksOptions options = ranks_of(2);
  const auto pair = [&](int first_rank, int first_ranks, int second_rank, int second_ranks) {
    const fcclUniqueId id = new_id();
    fcclResult_t codes[2];
    const auto join = [&](int i, int rank, int ranks) {
      fcclComm_t comm = nullptr;
      codes[i] = fcclCommInitRankConfig(&comm, ranks, &id, rank, &options.config);
    };
    std::thread other([&] { join(1, second_rank, second_ranks); });
    join(0, first_rank, first_ranks);
    other.join();
    return std::pair{codes[0], codes[1]};
  };
  const int64_t start = now_ms();
  for (const auto& [one, two] : {pair(0, 2, 0, 2), pair(0, 2, 1, 3)}) {
    for (const fcclResult_t code : {one, two})
      CHECK((code == fcclInvalidUsage || code == fcclInvalidArgument || code == fcclMismatch));
  }
  CHECK(now_ms() - start < options.config.init_timeout_ms);
}

TEST_CASE("B11 an id serves one init") {
  const Environment clean(Variables{});
  const RanksOptions options = ranks_of(1);
  const fcclUniqueId id = new_id();
  fcclComm_t comm = nullptr;
  REQUIRE(fcclCommInitRankConfig(&comm, 1, &id, 0, &options.config) == fcclSuccess);
  fcclComm_t again = nullptr;
  const int64_t start = now_ms();
  CHECK(fcclCommInitRankConfig(&again, 1, &id, 0, &options.config) == fcclInvalidUsage);
  CHECK(now_ms() - start < bound_ms(1000));
  CHECK(again == nullptr);
  CHECK(fcclCommDestroy(comm) == fcclSuccess);
}

}  // namespace fccl::test
