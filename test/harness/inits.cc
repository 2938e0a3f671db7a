// See inits.h.
#include "harness/inits.h"

#include <unistd.h>

#include <barrier>
#include <cstring>
#include <thread>

namespace fccl::test {
namespace {

using Join = std::function<Outcome(int rank)>;

std::vector<Outcome> on_threads(int ranks, const Join& join) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { outcomes[static_cast<size_t>(rank)] = join(rank); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// Notes what a call said on this thread.
Outcome outcome_of(fcclResult_t code, fcclComm_t comm) {
  return {code, code == fcclSuccess ? "" : fcclGetLastError(nullptr), comm != nullptr};
}

Outcome and_destroy(fcclResult_t code, fcclComm_t comm) {
  Outcome outcome = outcome_of(code, comm);
  if (comm != nullptr && fcclCommDestroy(comm) != fcclSuccess) {
    outcome.code = fcclInternalError;
    outcome.text += " and Destroy failed";
  }
  return outcome;
}

Variables variables_of(const RanksOptions& options, const std::string& fault) {
  Variables all = options.environment;
  all.emplace_back("FCCL_TEST_FAULT", fault);
  return all;
}

std::vector<Outcome> by_id(const RanksOptions& options, const std::string& fault) {
  const Environment environment(variables_of(options, fault));
  return init_all(options.ranks, options.config);
}

std::vector<Outcome> in_background(const RanksOptions& options, const std::string& fault) {
  const Environment environment(variables_of(options, fault));
  const fcclUniqueId id = new_id();
  fcclConfig config = options.config;
  config.blocking = -1;
  return on_threads(options.ranks, [&](int rank) -> Outcome {
    fcclComm_t comm = nullptr;
    const fcclResult_t begun = fcclCommInitRankConfig(&comm, options.ranks, &id, rank, &config);
    if (begun != fcclInProgress) return and_destroy(begun, comm);
    fcclResult_t state = fcclInProgress;
    for (const int64_t end = now_ms() + bound_ms(30000); state == fcclInProgress && now_ms() < end;
         usleep(500))
      if (fcclCommGetAsyncError(comm, &state) != fcclSuccess) state = fcclInternalError;
    const std::string text = state == fcclSuccess ? "" : fcclGetLastError(comm);
    const Outcome destroyed = and_destroy(fcclSuccess, comm);
    // The handle of an init in the background is valid although it failed.
    return {destroyed.code == fcclSuccess ? state : destroyed.code, text, false};
  });
}

std::vector<Outcome> by_init_all(const RanksOptions& options, const std::string& fault) {
  const Environment environment(variables_of(options, fault));
  std::vector<fcclComm_t> comms(static_cast<size_t>(options.ranks));
  const fcclResult_t code =
      fcclCommInitAllConfig(comms.data(), options.ranks, nullptr, &options.config);
  Outcome outcome = outcome_of(code, comms[0]);
  for (fcclComm_t comm : comms) and_destroy(code, comm);
  return {outcome};
}

struct Board {
  explicit Board(int ranks) : cells(static_cast<size_t>(ranks) * 4096), meeting(ranks) {}
  std::vector<char> cells;
  std::barrier<> meeting;
};
struct Seat {
  Board* board;
  int rank;
  int ranks;
};
int gather(void* context, const void* send, void* receive, size_t bytes) {
  const Seat& seat = *static_cast<Seat*>(context);
  std::memcpy(seat.board->cells.data() + static_cast<size_t>(seat.rank) * bytes, send, bytes);
  seat.board->meeting.arrive_and_wait();
  std::memcpy(receive, seat.board->cells.data(), bytes * static_cast<size_t>(seat.ranks));
  seat.board->meeting.arrive_and_wait();
  return 0;
}

std::vector<Outcome> by_allgather(const RanksOptions& options, const std::string& fault) {
  const Environment environment(variables_of(options, fault));
  Board board(options.ranks);
  return on_threads(options.ranks, [&](int rank) {
    Seat seat{&board, rank, options.ranks};
    fcclComm_t comm = nullptr;
    const fcclResult_t code =
        fcclCommInitAllgather(&comm, options.ranks, rank, gather, &seat, &options.config);
    return and_destroy(code, comm);
  });
}

std::string one_sum(fcclComm_t comm, int ranks) {
  float one = 1;
  FCCL_EXPECT_OK(fcclAllReduce(&one, &one, 1, fcclFloat32, fcclSum, comm, nullptr), comm);
  return one == static_cast<float>(ranks) ? "" : "a wrong sum";
}

std::vector<Outcome> by_split(const RanksOptions& options, const std::string& fault) {
  std::vector<fcclComm_t> parents(static_cast<size_t>(options.ranks));
  const auto parent_of = [&](int rank) -> fcclComm_t& {
    return parents[static_cast<size_t>(rank)];
  };
  // The hook of a group that splits is set when that group is made.
  const bool in_parent = fault.rfind("bootstrap.split", 0) == 0;
  {
    const Environment environment(variables_of(options, in_parent ? fault : ""));
    const fcclUniqueId id = new_id();
    std::vector<Outcome> made = on_threads(options.ranks, [&](int rank) {
      const fcclResult_t code =
          fcclCommInitRankConfig(&parent_of(rank), options.ranks, &id, rank, &options.config);
      return outcome_of(code, nullptr);
    });
    if (made[0].code != fcclSuccess) return made;
  }
  const Environment environment(variables_of(options, fault));
  return on_threads(options.ranks, [&](int rank) {
    fcclComm_t part = nullptr;
    const fcclResult_t code = fcclCommSplit(parent_of(rank), 0, 0, &part, &options.config);
    Outcome outcome = and_destroy(code, part);
    const std::string broken = one_sum(parent_of(rank), options.ranks);
    if (!broken.empty()) outcome = {fcclInternalError, "the parent is broken: " + broken, true};
    fcclCommDestroy(parent_of(rank));
    return outcome;
  });
}

}  // namespace

std::vector<Outcome> init_all(int ranks, const fcclConfig& config,
                              const std::function<void(int, fcclConfig&)>& change) {
  const fcclUniqueId id = new_id();
  return on_threads(ranks, [&](int rank) {
    fcclConfig own = config;
    if (change) change(rank, own);
    fcclComm_t comm = nullptr;
    const fcclResult_t code = fcclCommInitRankConfig(&comm, ranks, &id, rank, &own);
    return and_destroy(code, comm);
  });
}

std::string shown(const std::vector<Outcome>& outcomes) {
  std::string all;
  for (const Outcome& o : outcomes)
    all += std::string(fcclGetErrorString(o.code)) + ": " + o.text + "\n";
  return all;
}

std::string judged(const std::vector<Outcome>& outcomes, int rank) {
  const std::string name = "rank " + std::to_string(rank);
  for (const Outcome& o : outcomes) {
    if (o.code != outcomes[0].code) return "the codes differ:\n" + shown(outcomes);
    if (o.code == fcclSuccess) continue;
    if (o.has_handle) return "a handle was given out:\n" + shown(outcomes);
    if (o.text.find(name) == std::string::npos) return name + " is not named:\n" + shown(outcomes);
    if (o.text.find("fault hook") == std::string::npos &&
        o.text.find("wire version") == std::string::npos)
      return "the cause is not named:\n" + shown(outcomes);
  }
  return "";
}

const std::vector<WayIn>& ways_in() {
  static const std::vector<WayIn> ways{{"InitRank", by_id},
                                       {"InitRank in the background", in_background},
                                       {"InitAll", by_init_all},
                                       {"InitAllgather", by_allgather},
                                       {"Split", by_split}};
  return ways;
}

}  // namespace fccl::test
