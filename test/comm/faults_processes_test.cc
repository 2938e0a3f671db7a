// The fault walk between processes, where windows are exported, sent and mapped: each hook on each
// rank ends in one error on all, in time, with nothing left behind, and the next init works. One
// set of processes walks all; a communicator without faults carries ids and outcomes between them.
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/fault.h"
#include "harness/catch.h"
#include "harness/inits.h"
#include "harness/leftovers.h"
#include "harness/rank_process.h"

namespace fccl::test {
namespace {

constexpr int kRanks = 3;

// What a rank shows the others after an init.
struct Shown {
  fcclUniqueId next = {};  // of rank 0: for the next init
  int32_t code = 0;
  int32_t has_handle = 0;
  char text[512] = {};
};

// A byte travels as a float: a gather need not keep the bits of what is no number.
std::string exchange(fcclComm_t control, const Shown& mine, Shown (&all)[kRanks]) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&mine);
  std::vector<float> send(bytes, bytes + sizeof mine), received(kRanks * sizeof mine);
  FCCL_EXPECT_OK(
      fcclAllGather(send.data(), received.data(), send.size(), fcclFloat32, control, nullptr),
      control);
  auto* out = reinterpret_cast<unsigned char*>(all);
  for (size_t i = 0; i < received.size(); ++i) out[i] = static_cast<unsigned char>(received[i]);
  return "";
}

class Walker {
 public:
  Walker(fcclComm_t control, ProcessRank& self) : control_(control), self_(self) {}

  // One init with this fault; what is wrong, or "".
  std::string init(const std::string& fault, int faulty, bool* ended) {
    Shown mine, all[kRanks];
    if (self_.rank() == 0) mine.next = new_id();
    std::string error = exchange(control_, mine, all);
    if (!error.empty()) return error;
    setenv("FCCL_TEST_FAULT", fault.c_str(), 1);
    const fcclConfig config = ranks_of(kRanks).config;
    fcclComm_t comm = nullptr;
    const int64_t start = now_ms();
    mine.code = fcclCommInitRankConfig(&comm, kRanks, &all[0].next, self_.rank(), &config);
    const int64_t took = now_ms() - start;
    mine.has_handle = comm != nullptr;
    if (mine.code != fcclSuccess)
      std::snprintf(mine.text, sizeof mine.text, "%s", fcclGetLastError(nullptr));
    if (comm != nullptr && fcclCommDestroy(comm) != fcclSuccess) error = "Destroy failed";
    setenv("FCCL_TEST_FAULT", "", 1);
    const std::string broken = exchange(control_, mine, all);
    if (!broken.empty()) return broken;
    *ended = mine.code != fcclSuccess;
    if (error.empty() && took > bound_ms(2000)) error = "it took " + std::to_string(took) + " ms";
    std::vector<Outcome> outcomes;
    for (const Shown& one : all)
      outcomes.push_back({static_cast<fcclResult_t>(one.code), one.text, one.has_handle != 0});
    if (error.empty()) error = judged(outcomes, faulty);
    return error.empty() ? "" : fault + ": " + error;
  }

 private:
  fcclComm_t control_;
  ProcessRank& self_;
};

const Scenario walk_scenario("fault walk", [](ProcessRank& self) -> std::string {
  fcclComm_t control = nullptr;
  FCCL_EXPECT_OK(self.init(&control), nullptr);
  Walker walker(control, self);
  bool ended = false;
  std::string error = walker.init("", 0, &ended);
  settled_holdings(own_holdings());
  const Holdings before = own_holdings();
  for (const std::string& phase : fault_phases()) {
    for (int rank = 0; rank < kRanks && error.empty(); ++rank) {
      error = walker.init(phase + ":" + std::to_string(rank), rank, &ended);
      if (!error.empty() || !ended) continue;
      if (rank == 0) self.tell("failed", 0, phase);
      const Holdings after = settled_holdings(before);
      if (!(after == before))
        error = phase + " leaves " + text_of(after) + "; before: " + text_of(before);
    }
    if (error.empty()) error = walker.init("", 0, &ended);
    if (error.empty() && ended) error = "the init after " + phase + " failed";
  }
  if (!error.empty()) fcclCommAbort(control);
  fcclCommDestroy(control);
  return error;
});

}  // namespace

TEST_CASE("M02 faults: each hook on each rank is one error in all processes") {
  const auto named = named_things();
  auto ranks = start_ranks("fault walk", ranks_of(kRanks));
  std::set<std::string> failed;
  for (RankProcess& rank : ranks) {
    for (;;) {
      const auto message = rank.receive(bound_ms(60000));
      REQUIRE(message);
      if (std::strcmp(message->word, "failed") == 0) failed.insert(message->text);
      if (std::strcmp(message->word, "end") != 0) continue;
      CHECK(std::string(message->text) == "");
      break;
    }
    CHECK(rank.join(bound_ms(10000)) == 0);
  }
  // Only the hooks of a split are not passed.
  for (const std::string& phase : fault_phases()) {
    INFO(phase);
    CHECK(failed.count(phase) == (phase.rfind("bootstrap.split", 0) == 0 ? 0 : 1));
  }
  CHECK(named_things() == named);
}

}  // namespace fccl::test
