// Soak: random rounds of a communicator's life for some seconds, every result checked.
//
//   fccl_soak [--ranks threads|processes] [--seconds S] [--seed N] [--round K] [--times T]
//
// A round is a function of the seed and its number: ranks, communicators, shapes, types,
// algorithms, delays, and what goes wrong. With --round only that round is played, T times. When a
// round fails, the command that plays it again is printed and the program ends with 1; when one
// does not end, with SIGABRT, so that a debugger or a core shows where.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "world.h"

namespace fccl::test {
namespace {

struct Options {
  RankKind kind = RankKind::Threads;
  int64_t seconds = 10;
  uint64_t seed = 0;
  std::optional<uint64_t> round;
  uint64_t times = 1;
  std::optional<int> rank;  // a process of play_round
};

int usage() {
  std::fprintf(stderr,
               "usage: fccl_soak [--ranks threads|processes] [--seconds S] [--seed N] [--round K] "
               "[--times T]\n");
  return 2;
}

bool parse(int count, char** words, Options& o) {
  o.seed = static_cast<uint64_t>(now_ms()) * 1000 + static_cast<uint64_t>(getpid()) % 1000;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i], value = words[i + 1];
    if (name == "--ranks") {
      if (value != "threads" && value != "processes") return false;
      o.kind = value == "threads" ? RankKind::Threads : RankKind::Processes;
      continue;
    }
    char* end = nullptr;
    const uint64_t number = std::strtoull(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0') return false;
    if (name == "--seconds") {
      o.seconds = static_cast<int64_t>(number);
    } else if (name == "--seed") {
      o.seed = number;
    } else if (name == "--round") {
      o.round = number;
    } else if (name == "--times") {
      o.times = number;
    } else if (name == "--rank") {
      o.rank = static_cast<int>(number);
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

// Ends the program if a round does not.
class Watchdog {
 public:
  explicit Watchdog(std::string replay) : replay_(std::move(replay)) {
    std::thread([this] {
      for (;; sleep(1)) {
        const int64_t since = since_.load();
        if (since == 0 || now_ms() - since < bound_ms(120000)) continue;
        std::printf(
            "round %llu does not end; %s --round %llu\n", round(), replay_.c_str(), round());
        std::fflush(stdout);
        std::abort();
      }
    }).detach();
  }
  void begin(uint64_t round) {
    round_ = round;
    since_ = now_ms();
  }
  void end() { since_ = 0; }

 private:
  unsigned long long round() const { return round_.load(); }
  const std::string replay_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int64_t> since_{0};
};

struct Tally {
  uint64_t rounds = 0, calls = 0;
  std::map<Fault, uint64_t> faults;

  void add(const RoundPlan& plan) {
    ++rounds;
    ++faults[plan.fault];
    for (const CommunicatorPlan& c : plan.communicators)
      calls += c.calls.size() * static_cast<uint64_t>(plan.ranks);
  }
  void print() const {
    std::printf("%llu rounds, up to %llu calls of ranks; faults:",
                static_cast<unsigned long long>(rounds),
                static_cast<unsigned long long>(calls));
    for (const auto& [fault, count] : faults)
      std::printf(" %s %llu", fault_name(fault), static_cast<unsigned long long>(count));
    std::printf("\n");
  }
};

int soak(const Options& o) {
  const char* kind = o.kind == RankKind::Threads ? "threads" : "processes";
  const std::string replay =
      std::string("replay: fccl_soak --ranks ") + kind + " --seed " + std::to_string(o.seed);
  std::printf("seed %llu, ranks as %s\n", static_cast<unsigned long long>(o.seed), kind);
  static Watchdog* const watchdog = new Watchdog(replay);  // its thread never ends
  Tally tally;
  const int64_t end = now_ms() + o.seconds * 1000;
  for (uint64_t i = 0; o.round ? i < o.times : now_ms() < end; ++i) {
    const RoundPlan plan = make_plan(o.seed, o.round.value_or(i), o.kind);
    watchdog->begin(plan.round);
    const std::string errors = play_round(plan);
    watchdog->end();
    tally.add(plan);
    if (o.round) std::printf("%s\n", plan.text().c_str());
    if (errors.empty()) continue;
    std::printf("FAILED %s\n%s%s --round %llu\n",
                plan.text().c_str(),
                errors.c_str(),
                replay.c_str(),
                static_cast<unsigned long long>(plan.round));
    return 1;
  }
  tally.print();
  return 0;
}

}  // namespace
}  // namespace fccl::test

int main(int count, char** words) {
  using namespace fccl::test;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Options options;
  if (!parse(count, words, options)) return usage();
  if (options.rank) {
    if (!options.round) return usage();
    return play_rank(make_plan(options.seed, *options.round, RankKind::Processes), *options.rank);
  }
  return soak(options);
}
