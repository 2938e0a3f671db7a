// The fault walk: each hook on each rank must end in an error that names that rank, on all ranks
// alike, in time, with nothing left behind; and settings that differ are named with both values.
#include <functional>
#include <thread>

#include "base/fault.h"
#include "harness/catch.h"
#include "harness/leftovers.h"
#include "harness/rank_process.h"

namespace fccl::test {
namespace {

struct Outcome {
  fcclResult_t code = fcclSuccess;
  std::string text;
  bool has_handle = false;
};

// Init of all ranks as threads, with settings of their own; what came of it.
std::vector<Outcome> init_all(int ranks, const fcclConfig& config,
                              const std::function<void(int, fcclConfig&)>& change = nullptr) {
  const fcclUniqueId id = new_id();
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      fcclConfig own = config;
      if (change) change(rank, own);
      fcclComm_t comm = nullptr;
      Outcome& outcome = outcomes[static_cast<size_t>(rank)];
      outcome.code = fcclCommInitRankConfig(&comm, ranks, &id, rank, &own);
      outcome.text = fcclGetLastError(nullptr);
      outcome.has_handle = comm != nullptr;
      if (comm != nullptr) fcclCommDestroy(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::string shown(const std::vector<Outcome>& outcomes) {
  std::string all;
  for (const Outcome& o : outcomes)
    all += std::string(fcclGetErrorString(o.code)) + ": " + o.text + "\n";
  return all;
}

}  // namespace

TEST_CASE("faults: each hook on each rank ends init on all ranks alike") {
  constexpr int kRanks = 3;
  const RanksOptions options = ranks_of(kRanks);
  {
    const Environment clean(Variables{});
    for (const Outcome& o : init_all(kRanks, options.config))
      REQUIRE(o.code == fcclSuccess);  // made once per process
  }
  const Holdings before = own_holdings();
  int failing = 0;
  for (const std::string& phase : fault_phases()) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const Environment environment(
          Variables{{"FCCL_TEST_FAULT", phase + ":" + std::to_string(rank)}});
      const int64_t start = now_ms();
      const auto outcomes = init_all(kRanks, options.config);
      const int64_t took = now_ms() - start;
      INFO(phase << " on rank " << rank << " after " << took << " ms:\n" << shown(outcomes));
      // A hook that this way in does not pass changes nothing.
      if (outcomes[0].code == fcclSuccess) {
        for (const Outcome& o : outcomes) CHECK(o.code == fcclSuccess);
        continue;
      }
      ++failing;
      CHECK(took < bound_ms(25000));
      for (const Outcome& o : outcomes) {
        CHECK(o.code != fcclSuccess);
        CHECK_FALSE(o.has_handle);
        CHECK(o.text.find("rank " + std::to_string(rank)) != std::string::npos);
      }
    }
  }
  CHECK(failing >= 8 * kRanks);
  const Environment environment(Variables{{"FCCL_TEST_FAULT", ""}});
  for (const Outcome& o : init_all(kRanks, options.config)) CHECK(o.code == fcclSuccess);
  CHECK(text_of(settled_holdings(before)) == text_of(before));
}

TEST_CASE("H10 a rank that gets no memory is named by all within 2 s") {
  const Environment environment(Variables{{"FCCL_TEST_FAULT", "memory.alloc:1"}});
  const int64_t start = now_ms();
  const auto outcomes = init_all(2, ranks_of(2).config);
  CHECK(now_ms() - start < bound_ms(2000));
  INFO(shown(outcomes));
  for (const Outcome& o : outcomes) {
    CHECK(o.code == outcomes[0].code);
    CHECK(o.text.find("rank 1") != std::string::npos);
    CHECK(o.text == outcomes[0].text);
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

static const Scenario join_scenario("join with variables", [](ProcessRank& self) -> std::string {
  fcclComm_t comm = nullptr;
  const fcclResult_t joined = self.init(&comm);
  self.tell("ended", joined, fcclGetLastError(nullptr));
  if (comm != nullptr) fcclCommDestroy(comm);
  return "";
});

// Between processes windows are exported and mapped, so more hooks are passed than among threads.
TEST_CASE("faults: each hook between processes ends init on both sides") {
  std::string failed;
  for (const std::string& phase : fault_phases()) {
    auto ranks =
        start_ranks("join with variables", ranks_of(2, {{"FCCL_TEST_FAULT", phase + ":1"}}));
    fcclResult_t codes[2] = {};
    std::string texts[2];
    for (size_t rank = 0; rank < 2; ++rank) {
      const auto ended = ranks[rank].wait_for("ended", bound_ms(30000));
      REQUIRE(ended);
      codes[rank] = static_cast<fcclResult_t>(ended->code);
      texts[rank] = ended->text;
      CHECK(ranks[rank].join(bound_ms(10000)) == 0);
    }
    INFO(phase << "\n" << texts[0] << "\n" << texts[1]);
    CHECK((codes[0] == fcclSuccess) == (codes[1] == fcclSuccess));
    if (codes[0] == fcclSuccess) continue;
    failed += phase + " ";
    for (const std::string& text : texts) CHECK(text.find("rank 1") != std::string::npos);
  }
  for (const char* phase : {"memory.alloc",
                            "memory.export",
                            "memory.map",
                            "init.selftest",
                            "init.ready",
                            "bootstrap.fds"}) {
    INFO("failed: " << failed);
    CHECK(failed.find(phase) != std::string::npos);
  }
}

TEST_CASE("H17 a variable on one rank only is named") {
  const fcclUniqueId id = new_id();
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const RanksOptions options =
        ranks_of(2, rank == 1 ? Variables{{"FCCL_ALGO", "twoshot_rows"}} : Variables{});
    ranks.emplace_back("join with variables", rank, options, id);
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

}  // namespace fccl::test
