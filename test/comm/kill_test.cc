// One of four ranks is killed at a random moment: before its hello, in init, in a call, in between.
// The others get an error that names it in time, can destroy what they have, and nothing is left
// behind.
#include <signal.h>
#include <sys/wait.h>

#include "harness/catch.h"
#include "harness/leftovers.h"
#include "harness/number.h"
#include "harness/rank_process.h"

namespace fccl::test {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kInitDeadlineMs = 2000;

// Joins, then calls until something fails; tells how it ended, and that Destroy worked.
const Scenario calls_scenario("calls until a failure", [](ProcessRank& self) -> std::string {
  self.tell("started");
  fcclComm_t comm = nullptr;
  const fcclResult_t joined = self.init(&comm);
  if (joined != fcclSuccess) {
    self.tell("ended", joined, fcclGetLastError(nullptr));
    return "";
  }
  self.tell("joined");
  std::vector<uint16_t> x(64 * 512), weight(512), out(64 * 512);
  fcclResult_t result = fcclSuccess;
  for (int call = 0; result == fcclSuccess; ++call)
    result = fcclAllReduceResidualRMSNorm(x.data(),
                                          nullptr,
                                          weight.data(),
                                          nullptr,
                                          out.data(),
                                          1 + call % 64,
                                          512,
                                          fcclBfloat16,
                                          1e-6f,
                                          comm,
                                          nullptr);
  self.tell("ended", result, fcclGetLastError(comm));
  const int64_t start = now_ms();
  const fcclResult_t destroyed = fcclCommDestroy(comm);
  self.tell("destroyed", destroyed, std::to_string(now_ms() - start));
  return "";
});

struct Ending {
  int code = 0;
  std::string text;
  int64_t when_ms = 0;
  bool joined = false;
};

// Reads a survivor to its end.
Ending ending_of(RankProcess& process) {
  Ending ending;
  for (const int64_t end = now_ms() + bound_ms(15000); now_ms() < end;) {
    const auto message = process.receive(end - now_ms());
    if (!message) break;
    const std::string word = message->word;
    if (word == "joined") ending.joined = true;
    if (word == "ended")
      ending.code = message->code, ending.text = message->text, ending.when_ms = message->when_ms;
    if (word == "destroyed") {
      INFO("Destroy: " << message->code << " after " << message->text << " ms");
      CHECK(std::stoll(message->text) < bound_ms(10500));
    }
    if (word == "end") break;
  }
  return ending;
}

// Kills rank `victim` `delay_us` after all have started.
void kill_one(int victim, int64_t delay_us) {
  RanksOptions options = ranks_of(kRanks);
  options.config.init_timeout_ms = bound_ms(kInitDeadlineMs);
  auto ranks = start_ranks("calls until a failure", options);
  for (RankProcess& rank : ranks) REQUIRE(rank.wait_for("started", bound_ms(20000)));
  usleep(static_cast<useconds_t>(delay_us));
  ranks[static_cast<size_t>(victim)].kill();
  const int64_t killed = now_ms();
  INFO("rank " << victim << " killed " << delay_us << " us after the start");
  const int status = ranks[static_cast<size_t>(victim)].join(bound_ms(5000));
  CHECK(WIFSIGNALED(status));
  const std::string name = "rank " + std::to_string(victim);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    const Ending ending = ending_of(ranks[static_cast<size_t>(rank)]);
    INFO("rank " << rank << (ending.joined ? " had joined, " : " had not joined, ")
                 << fcclGetErrorString(static_cast<fcclResult_t>(ending.code)) << ": "
                 << ending.text << ", after " << ending.when_ms - killed << " ms");
    CHECK((ending.code == fcclRemoteError || (!ending.joined && ending.code == fcclTimeout)));
    CHECK(ending.text.find(name) != std::string::npos);
    // Before the victim's hello the others learn it at their init deadline, afterwards within 1 s.
    CHECK(ending.when_ms - killed <
          (ending.code == fcclTimeout ? bound_ms(kInitDeadlineMs + 1000) : bound_ms(1000)));
    CHECK(ranks[static_cast<size_t>(rank)].join(bound_ms(15000)) == 0);
  }
}

}  // namespace

TEST_CASE("kill: one of 4 ranks, before it has said anything") {
  RanksOptions options = ranks_of(kRanks);
  options.config.init_timeout_ms = bound_ms(kInitDeadlineMs);
  const fcclUniqueId id = new_id();
  std::vector<RankProcess> ranks;
  const int64_t start = now_ms();
  for (int rank = 0; rank < kRanks - 1; ++rank)
    ranks.emplace_back("calls until a failure", rank, options, id);
  for (RankProcess& rank : ranks) {
    const Ending ending = ending_of(rank);
    INFO(ending.text);
    CHECK(ending.code == fcclTimeout);
    CHECK(ending.text.find("rank 3") != std::string::npos);
    CHECK(ending.when_ms - start < bound_ms(kInitDeadlineMs + 2000));
    CHECK(rank.join(bound_ms(5000)) == 0);
  }
}

TEST_CASE("kill: one of 4 ranks at 50 random moments", "[slow]") {
  const auto named = named_things();
  const Holdings before = own_holdings();
  for (uint64_t round = 0; round < 50; ++round) {
    // Most moments fall into init (the first 100 ms or so), the rest into calls.
    const uint64_t span = round % 3 == 0 ? 400000 : 60000;
    kill_one(static_cast<int>(mix(round, 1) % kRanks), static_cast<int64_t>(mix(round, 2) % span));
  }
  CHECK(named_things() == named);
  CHECK(text_of(settled_holdings(before)) == text_of(before));
}

TEST_CASE("kill: one of 4 ranks while all are in calls") {
  for (int victim = 0; victim < kRanks; ++victim) kill_one(victim, 300000 + 1000 * victim);
}

}  // namespace fccl::test
