// The fault walk: each hook on each rank, on each way into a communicator, ends in one error on all
// ranks that names the rank and the cause, in time, with nothing left behind, and the next init
// works. The hooks are the rows of base/fault_phases.def, which the library's own names are checked
// against; a row that ends nothing fails the walk.
#include <set>

#include "base/fault.h"
#include "harness/catch.h"
#include "harness/inits.h"
#include "harness/leftovers.h"

namespace fccl::test {
namespace {

constexpr int kRanks = 3;

std::string list_of(const std::set<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += name + " ";
  return all;
}

// All hooks on all ranks on one way in; the hooks that ended it.
std::set<std::string> walk(const WayIn& way, const RanksOptions& options, const Holdings& before) {
  std::set<std::string> ended;
  for (const std::string& phase : fault_phases()) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const int64_t start = now_ms();
      const auto outcomes = way.run(options, phase + ":" + std::to_string(rank));
      const int64_t took = now_ms() - start;
      INFO(way.name << ", " << phase << " on rank " << rank << " after " << took << " ms");
      CHECK(took < bound_ms(2000));  // no hook makes anybody wait for a deadline
      CHECK(judged(outcomes, rank) == "");
      if (outcomes[0].code == fcclSuccess) continue;  // this way in does not pass it
      ended.insert(phase);
      CHECK(text_of(settled_holdings(before)) == text_of(before));
    }
    const auto next = way.run(options, "");
    INFO(way.name << ", the init after " << phase << ":\n" << shown(next));
    CHECK(next[0].code == fcclSuccess);
  }
  return ended;
}

}  // namespace

TEST_CASE("M02 faults: each hook on each rank, on each way in, is one error on all") {
  const RanksOptions options = ranks_of(kRanks);
  for (const WayIn& way : ways_in())
    REQUIRE(shown(way.run(options, "")) == shown(way.run(options, "")));
  const Holdings before = own_holdings();
  std::set<std::string> ended;
  for (const WayIn& way : ways_in()) ended.merge(walk(way, options, before));
  const std::set<std::string> all(fault_phases().begin(), fault_phases().end());
  CHECK(list_of(ended) == list_of(all));
}

}  // namespace fccl::test
