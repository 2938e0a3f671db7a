// Reports of hangs, by their number. (H10, H13, H14 and H15 have more of it in test/bootstrap and
// test/comm, among ranks without a communicator and on all ways in; H16 is in test/comm; H03 and
// H18 need a GPU.)
#include <thread>

#include "harness/inits.h"
#include "harness/number.h"
#include "harness/rank_process.h"
#include "reports/calls.h"

namespace fccl::test {
namespace {

std::string sum_once(fcclComm_t comm, int ranks) {
  Matrix data = filled(TypeKind::F32, 1, 100, 1.0);
  const std::string error = sum_in_place(comm, data);
  return error.empty() ? first_difference(data, filled(TypeKind::F32, 1, 100, ranks), "sum")
                       : error;
}

const Scenario join_scenario("join and tell", [](ProcessRank& self) -> std::string {
  fcclComm_t comm = nullptr;
  const fcclResult_t joined = self.init(&comm);
  self.tell("ended", joined, joined == fcclSuccess ? "" : fcclGetLastError(nullptr));
  if (comm != nullptr) fcclCommDestroy(comm);
  return "";
});

// Joins one of two pairs that share nothing, and calls.
const Scenario pair_scenario("a pair calls", [](ProcessRank& self) -> std::string {
  fcclComm_t comm = nullptr;
  FCCL_EXPECT_OK(self.init(&comm), nullptr);
  std::string error;
  for (int call = 0; call < 100 && error.empty(); ++call) error = sum_once(comm, 2);
  fcclCommDestroy(comm);
  return error;
});

}  // namespace

TEST_CASE("H01 a communicator waits for its own ranks only") {
  // Of the other pair one comes and waits; it has nothing to do with these.
  RanksOptions lonely = ranks_of(2);
  lonely.config.init_timeout_ms = bound_ms(1000);
  RankProcess other("join and tell", 0, lonely, new_id());
  CHECK(as_processes("a pair calls", ranks_of(2)) == "");
  const auto ended = other.wait_for("ended", bound_ms(20000));
  REQUIRE(ended);
  CHECK(ended->code == fcclTimeout);
  CHECK(std::string(ended->text).find("rank 1") != std::string::npos);
}

// The plans of 10 000 random shapes, as one number.
static uint64_t hash_of_plans(fcclComm_t comm, std::string* error) {
  uint64_t hash = 0;
  for (uint64_t shape = 0; shape < 10000 && error->empty(); ++shape) {
    fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
    args.tokens = 1 + static_cast<int64_t>(mix(shape, 1) % 3000);
    args.hidden = 1 + static_cast<int64_t>(mix(shape, 2) % 9000);
    args.datatype = datatype_of(shape % 2 == 0 ? TypeKind::BF16 : TypeKind::F32);
    fcclPlanInfo plan = FCCL_PLAN_INFO_INITIALIZER;
    *error = error_text(fcclCommQuery(comm, &args, &plan), "fcclCommQuery", comm);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&plan);
    for (size_t i = 0; i < sizeof plan; ++i) hash = mix(hash, bytes[i]);
  }
  return hash;
}

// Rank 1 runs on another machine, as far as it can: an older CPU, other habits of waiting.
static const Scenario plans_scenario("plans", [](ProcessRank& self) -> std::string {
  if (self.rank() == 1) {
#if defined(FCCL_HAVE_CPU_v2)  // sanitizer builds have one level
    setenv("FCCL_CPU_LEVEL", "v2", 1);
#endif
    setenv("FCCL_SPIN_US", "0", 1);
    setenv("FCCL_HUGE_PAGES", "0", 1);
  }
  fcclComm_t comm = nullptr;
  FCCL_EXPECT_OK(self.init(&comm), nullptr);
  std::string error;
  const uint64_t hash = hash_of_plans(comm, &error);
  self.tell("plans", 0, std::to_string(hash));
  for (int call = 0; call < 50 && error.empty(); ++call) error = sum_once(comm, self.ranks());
  fcclCommDestroy(comm);
  return error;
});

TEST_CASE("H02 H12 ranks with other local facts have the same plans") {
  auto ranks = start_ranks("plans", ranks_of(3));
  std::string first;
  for (RankProcess& rank : ranks) {
    const auto plans = rank.wait_for("plans", bound_ms(60000));
    REQUIRE(plans);
    if (first.empty()) first = plans->text;
    CHECK(std::string(plans->text) == first);
    const auto end = rank.wait_for("end", bound_ms(60000));
    REQUIRE(end);
    CHECK(std::string(end->text) == "");
    CHECK(rank.join(bound_ms(10000)) == 0);
  }
}

TEST_CASE("H05 two communicators in opposite order end, by their deadline if nothing else") {
  const RanksOptions options = ranks_of(2);
  const Environment clean(Variables{});
  const fcclUniqueId ids[2] = {new_id(), new_id()};
  fcclResult_t results[2][2] = {};
  std::string texts[2][2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      fcclComm_t comms[2] = {};
      for (int i = 0; i < 2; ++i) {
        fcclCommInitRankConfig(&comms[i], 2, &ids[i], rank, &options.config);
        fcclCommSetTimeout(comms[i], bound_ms(300));
      }
      for (int i = 0; i < 2; ++i) {
        const int which = rank == 0 ? i : 1 - i;
        float data[64] = {};
        results[rank][which] =
            fcclAllReduce(data, data, 64, fcclFloat32, fcclSum, comms[which], nullptr);
        texts[rank][which] = fcclGetLastError(comms[which]);
      }
      for (fcclComm_t comm : comms) fcclCommDestroy(comm);
    });
  const int64_t start = now_ms();
  for (std::thread& thread : threads) thread.join();
  CHECK(now_ms() - start < bound_ms(5000));
  // CPU ranks block in a call, so at least one communicator ends by its deadline and says for whom
  // it waited; the other may still be served by the rank that gave up.
  int failed = 0;
  for (int which = 0; which < 2; ++which) {
    for (int rank = 0; rank < 2; ++rank) {
      const fcclResult_t result = results[rank][which];
      INFO(texts[rank][which]);
      if (result == fcclSuccess) continue;
      ++failed;
      CHECK((result == fcclTimeout || result == fcclRemoteError));
      CHECK(texts[rank][which].find("rank " + std::to_string(1 - rank)) != std::string::npos);
    }
  }
  CHECK(failed >= 1);
}

TEST_CASE("H07 aborts of two communicators in turn wait for nobody") {
  const RanksOptions options = ranks_of(2);
  const Environment clean(Variables{});
  const fcclUniqueId ids[2] = {new_id(), new_id()};
  fcclComm_t comms[2][2] = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      for (int i = 0; i < 2; ++i)
        fcclCommInitRankConfig(&comms[rank][i], 2, &ids[i], rank, &options.config);
    });
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  int64_t aborted[2] = {}, late[2] = {}, ended[2] = {};
  fcclResult_t results[2] = {};
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {  // rank 0 sits in a call on both; rank 1 does nothing
      float data[64] = {};
      results[i] = fcclAllReduce(data, data, 64, fcclFloat32, fcclSum, comms[0][i], nullptr);
      ended[i] = now_ms();
    });
  usleep(50000);
  for (int i = 0; i < 2; ++i) {
    aborted[i] = now_ms();
    CHECK(fcclCommAbort(comms[0][i]) == fcclSuccess);
    late[i] = now_ms() - aborted[i];
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 2; ++i) {
    CHECK(results[i] == fcclAborted);
    CHECK(late[i] < bound_ms(1000));
    CHECK(ended[i] - aborted[i] < bound_ms(1000));
    for (int rank = 0; rank < 2; ++rank) CHECK(fcclCommDestroy(comms[rank][i]) == fcclSuccess);
  }
}

TEST_CASE("H10 a rank that gets no memory is named by all within 2 s") {
  const Environment environment(Variables{{"FCCL_TEST_FAULT", "memory.alloc:1"}});
  const int64_t start = now_ms();
  const auto outcomes = init_all(2, ranks_of(2).config);
  CHECK(now_ms() - start < bound_ms(2000));
  CHECK(outcomes[0].code == fcclSystemError);
  CHECK(judged(outcomes, 1) == "");
  CHECK(outcomes[0].text == outcomes[1].text);
}

TEST_CASE("H11 the first call right after init, with delays, many times") {
  for (int round = 0; round < 100; ++round) {
    const RanksOptions options = ranks_of(2, {{"FCCL_TEST_CHAOS", std::to_string(round + 1)}});
    REQUIRE(as_threads(options, [&](fcclComm_t comm, int rank) -> std::string {
              if (rank == round % 2) jitter(static_cast<uint64_t>(round));
              return sum_once(comm, 2);
            }) == "");
  }
}

TEST_CASE("H14 an export that fails is the other rank's error within 2 s") {
  const auto ranks_with = [](const char* fault) {
    auto ranks = start_ranks("join and tell", ranks_of(2, {{"FCCL_TEST_FAULT", fault}}));
    const int64_t start = now_ms();
    std::vector<Outcome> outcomes;
    for (RankProcess& rank : ranks) {
      const auto ended = rank.wait_for("ended", bound_ms(20000));
      REQUIRE(ended);
      outcomes.push_back({static_cast<fcclResult_t>(ended->code), ended->text, false});
      CHECK(rank.join(bound_ms(10000)) == 0);
    }
    CHECK(now_ms() - start < bound_ms(2000));
    return outcomes;
  };
  for (const char* fault : {"memory.export:1", "bootstrap.fds:1"}) {
    const auto outcomes = ranks_with(fault);
    INFO(fault << "\n" << shown(outcomes));
    CHECK(outcomes[0].code != fcclSuccess);
    CHECK(judged(outcomes, 1) == "");
  }
}

TEST_CASE("H17 settings that must agree are named with both values") {
  const Environment clean(Variables{});
  struct {
    const char* field;
    std::function<void(fcclConfig&)> change;
  } const settings[] = {{"check", [](fcclConfig& c) { c.check = 1; }},
                        {"max_blocks", [](fcclConfig& c) { c.max_blocks = 7; }},
                        {"max_tokens", [](fcclConfig& c) { c.max_tokens = 99, c.hidden = 64; }}};
  for (const auto& setting : settings) {
    const auto outcomes = init_all(3, ranks_of(3).config, [&](int rank, fcclConfig& config) {
      if (rank == 2) setting.change(config);
    });
    INFO(setting.field << "\n" << shown(outcomes));
    for (const Outcome& o : outcomes) {
      CHECK(o.code == fcclMismatch);
      CHECK(o.text.find("rank 2") != std::string::npos);
    }
  }
}

TEST_CASE("H17 a variable on one rank only is named") {
  const fcclUniqueId id = new_id();
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const RanksOptions options =
        ranks_of(2, rank == 1 ? Variables{{"FCCL_ALGO", "twoshot_rows"}} : Variables{});
    ranks.emplace_back("join and tell", rank, options, id);
  }
  for (RankProcess& rank : ranks) {
    const auto ended = rank.wait_for("ended", bound_ms(20000));
    REQUIRE(ended);
    INFO(ended->text);
    CHECK(ended->code == fcclMismatch);
    CHECK(std::string(ended->text).find("FCCL_ALGO") != std::string::npos);
    CHECK(std::string(ended->text).find("twoshot_rows") != std::string::npos);
    CHECK(rank.join(bound_ms(10000)) == 0);
  }
}

}  // namespace fccl::test
