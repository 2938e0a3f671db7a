// The kill walk: one of 2, 4 or 8 ranks is killed at a random moment of init, of a call, between
// calls, in a split or at the end. The others get an error that names it in time (within a second
// of the death, or at the init deadline if it had not said hello), can destroy what they have, and
// nothing is left behind. A round is a function of seed and number, so each can be had again:
//   FCCL_TEST_KILLS=500 FCCL_TEST_KILL_SEED=3 FCCL_TEST_KILL_FIRST=17 fccl_test_comm "kill: the
//   walk"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include "harness/catch.h"
#include "harness/leftovers.h"
#include "harness/number.h"
#include "harness/rank_process.h"

namespace fccl::test {
namespace {

constexpr int64_t kInitDeadlineMs = 2000;
constexpr const char* kMoments[] = {"init", "call", "idle", "split", "end"};
constexpr int kMomentCount = 5;

fcclResult_t fused_call(fcclComm_t comm, int call) {
  static std::vector<uint16_t> x(64 * 512), weight(512), out(64 * 512);
  return fcclAllReduceResidualRMSNorm(x.data(),
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
}

fcclResult_t idle_until_failure(fcclComm_t comm) {
  fcclResult_t state = fcclSuccess;
  while (state == fcclSuccess) {
    usleep(500);
    if (fcclCommGetAsyncError(comm, &state) != fcclSuccess) return fcclInternalError;
  }
  return fused_call(comm, 0) == state ? state : fcclInternalError;  // sticky
}

// Splits into changing halves, with calls in them, until the communicator itself has failed. A part
// may fail on its own account; its ranks have other numbers.
fcclResult_t split_until_failure(fcclComm_t comm, int rank) {
  fcclResult_t state = fcclSuccess;
  for (uint64_t round = 0; state == fcclSuccess; ++round) {
    fcclComm_t part = nullptr;
    const int color = static_cast<int>(mix(round, static_cast<uint64_t>(rank)) % 3) - 1;
    const fcclResult_t split = fcclCommSplit(comm, color, 0, &part, nullptr);
    for (int call = 0; part != nullptr && call < 3; ++call) fused_call(part, call);
    if (part != nullptr && fcclCommDestroy(part) != fcclSuccess) return fcclInternalError;
    // The death is known to the reader thread of the communicator in a moment.
    for (int i = 0; split != fcclSuccess && state == fcclSuccess && i < 500; ++i, usleep(1000))
      if (fcclCommGetAsyncError(comm, &state) != fcclSuccess) return fcclInternalError;
    if (split != fcclSuccess && state == fcclSuccess) return fcclInternalError;
  }
  return state;
}

fcclResult_t until_failure(fcclComm_t comm, const std::string& moment, int rank) {
  if (moment == "idle") return idle_until_failure(comm);
  if (moment == "split") return split_until_failure(comm, rank);
  if (moment == "end") {
    usleep(static_cast<useconds_t>(mix(static_cast<uint64_t>(getpid())) % 5000));
    const fcclResult_t called = fused_call(comm, 0);
    return called == fcclSuccess ? fcclCommFinalize(comm) : called;
  }
  fcclResult_t result = fcclSuccess;
  for (int call = 0; result == fcclSuccess; ++call) result = fused_call(comm, call);
  return result;
}

// Joins and does what the parameter says until something fails; tells how it ended, and that
// Destroy worked.
const Scenario life_scenario("a life", [](ProcessRank& self) -> std::string {
  self.tell("started");
  fcclComm_t comm = nullptr;
  const fcclResult_t joined = self.init(&comm);
  if (joined != fcclSuccess) {
    self.tell("ended", joined, fcclGetLastError(nullptr));
    return "";
  }
  self.tell("joined");
  const fcclResult_t result = until_failure(comm, self.parameter(), self.rank());
  self.tell("ended", result, fcclGetLastError(comm));
  const int64_t start = now_ms();
  const fcclResult_t destroyed = fcclCommDestroy(comm);
  self.tell("destroyed", destroyed, std::to_string(now_ms() - start));
  return "";
});

struct Ending {
  int code = -1;
  std::string text = "it told nothing";
  int64_t when_ms = 0;
  bool joined = false;
  bool clean = false;  // ended with Destroy, or never had a communicator
};

// Reads a survivor to its end.
Ending ending_of(RankProcess& process, bool joined) {
  Ending ending;
  ending.joined = joined;
  for (const int64_t end = now_ms() + bound_ms(15000); now_ms() < end;) {
    const auto message = process.receive(end - now_ms());
    if (!message) break;
    const std::string word = message->word;
    if (word == "joined") ending.joined = true;
    if (word == "ended")
      ending.code = message->code, ending.text = message->text, ending.when_ms = message->when_ms;
    if (word == "destroyed")
      ending.clean = message->code == fcclSuccess && std::stoll(message->text) < bound_ms(1000);
    if (word == "end") {
      ending.clean = ending.clean || !ending.joined;
      break;
    }
  }
  return ending;
}

struct Tally {
  int by_moment[kMomentCount] = {};
  int at_deadline = 0;  // rounds in which the others learned it at the init deadline only
  int64_t slowest_ms = 0;  // from a death to the last survivor's return, elsewhere
  std::set<std::string> sockets;
};

struct Round {
  int ranks = 4;
  int victim = 0;
  int moment = 0;
  bool started =
      true;  // the delay counts from when all had started, else from when they were told to
  int64_t delay_us = 0;
};

Round round_of(uint64_t seed, uint64_t number) {
  constexpr int64_t kSpanUs[kMomentCount] = {200000, 30000, 20000, 60000, 8000};
  constexpr int64_t kStartSpanUs = 90000;
  const auto random = [&](uint64_t what) { return mix(seed, number, what); };
  Round round;
  round.moment = static_cast<int>(number % kMomentCount);
  round.ranks = 2 << (number / kMomentCount % 3);
  round.victim = static_cast<int>(random(1) % static_cast<uint64_t>(round.ranks));
  round.started = round.moment != 0 || random(3) % 4 != 0;
  const int64_t span = round.started ? kSpanUs[round.moment] : kStartSpanUs;
  round.delay_us = static_cast<int64_t>(random(2) % static_cast<uint64_t>(span));
  return round;
}

// `died` is when the victim was gone for its parent.
void check_survivor(const Round& round, const Ending& ending, int64_t died, pid_t victim,
                    Tally& tally) {
  const int64_t took = ending.when_ms - died;
  INFO((ending.joined ? "it had joined; " : "it had not joined; ")
       << fcclGetErrorString(static_cast<fcclResult_t>(ending.code)) << ": " << ending.text
       << ", after " << took << " ms");
  CHECK(ending.clean);
  // It may have been done before the death.
  if (std::string(kMoments[round.moment]) == "end" && ending.code == fcclSuccess) return;
  const bool at_deadline = !ending.joined && ending.code == fcclTimeout;
  CHECK((ending.code == fcclRemoteError || at_deadline));
  const bool named =
      ending.text.find("rank " + std::to_string(round.victim)) != std::string::npos ||
      ending.text.find("pid " + std::to_string(victim)) != std::string::npos;
  CHECK(named);
  CHECK(took < (at_deadline ? bound_ms(kInitDeadlineMs + 1000) : bound_ms(1000)));
  if (at_deadline)
    CHECK(ending.text.find("did not come") != std::string::npos);
  else
    tally.slowest_ms = std::max(tally.slowest_ms, took);
}

void kill_one(const Round& round, Tally& tally) {
  RanksOptions options = ranks_of(round.ranks);
  const bool in_init = round.moment == 0;
  if (in_init) options.config.init_timeout_ms = bound_ms(kInitDeadlineMs);
  auto ranks = start_ranks("a life", options, kMoments[round.moment]);
  for (RankProcess& rank : ranks)
    if (round.started) REQUIRE(rank.wait_for(in_init ? "started" : "joined", bound_ms(20000)));
  usleep(static_cast<useconds_t>(round.delay_us));
  for (RankProcess& rank : ranks) {
    tally.sockets.merge(socket_names(rank.pid()));
  }
  RankProcess& victim = ranks[static_cast<size_t>(round.victim)];
  const pid_t victim_pid = victim.pid();
  victim.kill();
  const int status = victim.join(bound_ms(5000));
  const int64_t died = now_ms();
  // At the end it may have been faster than the signal.
  CHECK((WIFSIGNALED(status) || std::string(kMoments[round.moment]) == "end"));
  bool at_deadline = false;
  for (int rank = 0; rank < round.ranks; ++rank) {
    if (rank == round.victim) continue;
    INFO("rank " << rank);
    RankProcess& survivor = ranks[static_cast<size_t>(rank)];
    const Ending ending = ending_of(survivor, !in_init);
    check_survivor(round, ending, died, victim_pid, tally);
    at_deadline = at_deadline || ending.code == fcclTimeout;
    CHECK(survivor.join(bound_ms(5000)) == 0);
  }
  tally.at_deadline += at_deadline ? 1 : 0;
  ++tally.by_moment[round.moment];
}

// Processes that want all CPUs all the time, while this object lives.
class Hogs {
 public:
  Hogs() {
    for (unsigned i = 0; i < 3 * std::thread::hardware_concurrency(); ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned turns = 0;;) turns = turns + 1;
      }
      if (pid > 0) pids_.push_back(pid);
    }
  }
  ~Hogs() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;

 private:
  std::vector<pid_t> pids_;
};

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

void walk(uint64_t seed, uint64_t first, uint64_t rounds) {
  const auto named = named_things();
  std::thread([] {}).join();  // ThreadSanitizer starts a thread of its own with the first
  const Holdings before = own_holdings();
  Tally tally;
  for (uint64_t number = first; number < first + rounds; ++number) {
    const Round round = round_of(seed, number);
    INFO("FCCL_TEST_KILL_SEED=" << seed << " FCCL_TEST_KILL_FIRST=" << number
                                << " FCCL_TEST_KILLS=1: rank " << round.victim << " of "
                                << round.ranks << " in '" << kMoments[round.moment] << "', "
                                << round.delay_us << " us");
    kill_one(round, tally);
  }
  // A rendezvous to which a dead rank never came lives to its deadline in this process.
  const auto more = [&](const Holdings& now) {
    return now.descriptors > before.descriptors || now.threads > before.threads ||
           now.memory_files > before.memory_files;
  };
  Holdings after = own_holdings();
  for (const int64_t end = now_ms() + bound_ms(kInitDeadlineMs + 1000);
       more(after) && now_ms() < end;
       usleep(5000))
    after = own_holdings();
  INFO("left: " << text_of(after) << "; before: " << text_of(before));
  CHECK_FALSE(more(after));
  CHECK(named_things() == named);
  const std::set<std::string> living = socket_names();
  int sockets_left = 0;
  for (const std::string& name : tally.sockets) sockets_left += living.count(name) != 0 ? 1 : 0;
  CHECK(sockets_left == 0);
  CHECK((waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));  // no process either
  std::printf("kill walk: seed %llu, %llu rounds of 2, 4 and 8 ranks",
              static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(rounds));
  for (int i = 0; i < kMomentCount; ++i) std::printf(", %s %d", kMoments[i], tally.by_moment[i]);
  std::printf(
      "; %d before the hello; else the slowest return was %lld ms after the death; "
      "%zu sockets seen, %d left\n",
      tally.at_deadline,
      static_cast<long long>(tally.slowest_ms),
      tally.sockets.size(),
      sockets_left);
}

}  // namespace

TEST_CASE("kill: one of 4 ranks, before it has said anything") {
  constexpr int kRanks = 4;
  RanksOptions options = ranks_of(kRanks);
  options.config.init_timeout_ms = bound_ms(kInitDeadlineMs);
  const fcclUniqueId id = new_id();
  std::vector<RankProcess> ranks;
  const int64_t start = now_ms();
  for (int rank = 0; rank < kRanks - 1; ++rank)
    ranks.emplace_back("a life", rank, options, id, "init");
  for (RankProcess& rank : ranks) {
    const Ending ending = ending_of(rank, false);
    INFO(ending.text);
    CHECK(ending.code == fcclTimeout);
    CHECK(ending.text.find("rank 3") != std::string::npos);
    CHECK(ending.when_ms - start < bound_ms(kInitDeadlineMs + 2000));
    CHECK(rank.join(bound_ms(5000)) == 0);
  }
}

TEST_CASE("kill: a rank at 15 moments") {
  walk(7, 0, 15);
}

TEST_CASE("kill: a rank of 8 in calls, beside programs that keep the CPUs", "[serial]") {
  Tally tally;
  const Hogs hogs;
  for (const int victim : {0, 3, 7}) {
    Round round;
    round.ranks = 8;
    round.victim = victim;
    round.moment = 1;
    round.delay_us = 10000;
    kill_one(round, tally);
  }
}

TEST_CASE("kill: the walk", "[slow]") {
  walk(number_from("FCCL_TEST_KILL_SEED", 1),
       number_from("FCCL_TEST_KILL_FIRST", 0),
       number_from("FCCL_TEST_KILLS", 40));
}

}  // namespace fccl::test
