// By hand: how much 1000 strangers of five kinds slow down the init of 4 ranks (it should stay
// below 20 %). They come from another process, nice and at a steady pace, most before the ranks and
// the rest among them, so that what is measured is what they cost the library, not what it costs to
// make them. Runs with and without them take turns.
//   fccl_test_comm "benchmark: init among 1000 strangers"
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "harness/catch.h"
#include "harness/rank_process.h"
#include "harness/strangers.h"

namespace fccl::test {
namespace {

constexpr int kRanks = 4;
constexpr int kStrangers = 1000;
constexpr int kBefore = 900;
constexpr int kPairs = 31;
constexpr useconds_t kPaceUs = 100;

// rank() is 1 if strangers are wanted; all of them stay until this process is killed.
const Scenario strangers_scenario("strangers", [](ProcessRank& self) -> std::string {
  if (nice(10) == -1) return "nice";
  const fcclUniqueId id = self.unique_id();
  const std::vector<Endpoint> doors = doors_of(reinterpret_cast<const uint8_t*>(id.internal));
  Result<UniqueId> decoded = decode_unique_id(reinterpret_cast<const uint8_t*>(id.internal));
  const std::vector<uint8_t> replay = client_hello(decoded->secret);
  std::vector<GuardedFd> crowd;
  for (int i = 0; i < kStrangers; ++i) {
    if (i == kBefore) self.tell("before");
    usleep(kPaceUs);
    if (self.rank() == 0) continue;
    crowd.push_back(connect_to(doors[static_cast<size_t>(i) % doors.size()]));
    behave(crowd.back(), i, replay);
  }
  self.tell("all");
  pause();
  return "";
});

struct Cost {
  double wall_ms = 0;
  double cpu_ms = 0;  // of this process: the ranks and the rendezvous
};

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

Cost cost_of_init(bool strangers) {
  const RanksOptions options = ranks_of(kRanks);
  const fcclUniqueId id = new_id();
  RankProcess crowd("strangers", strangers ? 1 : 0, options, id);
  REQUIRE(crowd.wait_for("before", bound_ms(20000)));
  std::vector<fcclComm_t> comms(kRanks);
  std::vector<fcclResult_t> results(kRanks);
  std::vector<std::thread> threads;
  const double cpu_before = cpu_ms();
  const auto start = std::chrono::steady_clock::now();
  for (size_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      results[rank] = fcclCommInitRankConfig(
          &comms[rank], kRanks, &id, static_cast<int>(rank), &options.config);
    });
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const double cpu = cpu_ms() - cpu_before;
  for (const fcclResult_t result : results) REQUIRE(result == fcclSuccess);
  threads.clear();
  for (fcclComm_t comm : comms) threads.emplace_back([comm] { fcclCommDestroy(comm); });
  for (std::thread& thread : threads) thread.join();
  REQUIRE(crowd.wait_for("all", bound_ms(20000)));
  return {took.count(), cpu};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("benchmark: init among 1000 strangers", "[.benchmark][slow]") {
  const Environment clean(Variables{});
  std::vector<double> wall[2], cpu[2], growth;
  cost_of_init(false);
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool first = pair % 2 == 0;
    Cost costs[2];
    costs[first] = cost_of_init(first);
    costs[!first] = cost_of_init(!first);
    for (int i = 0; i < 2; ++i) {
      wall[i].push_back(costs[i].wall_ms);
      cpu[i].push_back(costs[i].cpu_ms);
    }
    growth.push_back(costs[1].wall_ms / costs[0].wall_ms);
  }
  const auto growth_of = [](double without, double with) { return 100 * (with / without - 1); };
  const auto least = [](const std::vector<double>& v) {
    return *std::min_element(v.begin(), v.end());
  };
  std::printf("init of %d ranks without and with %d strangers, %d runs each in turn:\n",
              kRanks,
              kStrangers,
              kPairs);
  const auto line = [&](const char* what, double without, double with) {
    std::printf(
        "  %-22s %8.2f ms %8.2f ms  %+.0f %%\n", what, without, with, growth_of(without, with));
  };
  line("median time", median(wall[0]), median(wall[1]));
  line("least time", least(wall[0]), least(wall[1]));
  line("median CPU time", median(cpu[0]), median(cpu[1]));
  std::printf("  median of the pairs' growth %+.0f %%\n", 100 * (median(growth) - 1));
}

}  // namespace fccl::test
