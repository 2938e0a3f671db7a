// All ways into a communicator and out of it: InitAll, the caller's allgather, Split, init in the
// background, Finalize; and windows of the communicator's memory.
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <thread>

#include "harness/catch.h"
#include "harness/number.h"
#include "harness/ranks.h"

namespace fccl::test {
namespace {

// Sums 1 + rank over the ranks of `comm` and checks it.
std::string check_sum(fcclComm_t comm) {
  int ranks = 0, rank = -1;
  FCCL_EXPECT_OK(fcclCommCount(comm, &ranks), comm);
  FCCL_EXPECT_OK(fcclCommUserRank(comm, &rank), comm);
  float data[40];
  for (float& x : data) x = static_cast<float>(1 + rank);
  FCCL_EXPECT_OK(fcclAllReduce(data, data, 40, fcclFloat32, fcclSum, comm, nullptr), comm);
  const auto want = static_cast<float>(ranks * (ranks + 1) / 2);
  return data[0] == want && data[39] == want
             ? ""
             : "a wrong sum over " + std::to_string(ranks) + " ranks";
}

std::string on_threads(int ranks, const std::function<std::string(int)>& body) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { errors[static_cast<size_t>(rank)] = body(rank); });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (int rank = 0; rank < ranks; ++rank)
    if (!errors[static_cast<size_t>(rank)].empty())
      all += std::to_string(rank) + ": " + errors[static_cast<size_t>(rank)] + "\n";
  return all;
}

// An allgather among threads, as a program with its own means would bring it.
struct Board {
  explicit Board(int ranks) : cells(static_cast<size_t>(ranks) * 4096), meeting(ranks) {}
  std::vector<char> cells;
  std::barrier<> meeting;
  std::atomic<int> calls{0};
};
struct Seat {
  Board* board;
  int rank;
  int ranks;
};
int gather(void* context, const void* send, void* receive, size_t bytes) {
  const Seat& seat = *static_cast<Seat*>(context);
  ++seat.board->calls;
  if (bytes > 4096) return 1;
  std::memcpy(seat.board->cells.data() + static_cast<size_t>(seat.rank) * bytes, send, bytes);
  seat.board->meeting.arrive_and_wait();
  std::memcpy(receive, seat.board->cells.data(), bytes * static_cast<size_t>(seat.ranks));
  seat.board->meeting.arrive_and_wait();
  return 0;
}

}  // namespace

TEST_CASE("ways in: InitAll makes a communicator for each thread") {
  const Environment environment(Variables{{"FCCL_BACKEND", "cpu"}});
  fcclComm_t comms[4] = {};
  REQUIRE(fcclCommInitAll(comms, 4, nullptr) == fcclSuccess);
  CHECK(on_threads(4, [&](int rank) -> std::string {
          fcclComm_t comm = comms[rank];
          int own = -1, device = 0;
          int32_t backend = 0;
          FCCL_EXPECT_OK(fcclCommUserRank(comm, &own), comm);
          FCCL_EXPECT_OK(fcclCommDevice(comm, &device), comm);
          FCCL_EXPECT_OK(fcclCommBackend(comm, &backend), comm);
          if (own != rank || device != -1 || backend != fcclBackendCpu)
            return "rank, device or backend is wrong";
          std::string error = check_sum(comm);
          FCCL_EXPECT_OK(fcclCommDestroy(comm), nullptr);
          return error;
        }) == "");
}

TEST_CASE("ways in: the caller's allgather, called a fixed number of times") {
  const Environment clean(Variables{});
  for (const int ranks : {1, 2, 4}) {
    Board board(ranks);
    const RanksOptions options = ranks_of(ranks);
    CHECK(on_threads(ranks, [&](int rank) -> std::string {
            Seat seat{&board, rank, ranks};
            fcclComm_t comm = nullptr;
            FCCL_EXPECT_OK(
                fcclCommInitAllgather(&comm, ranks, rank, gather, &seat, &options.config), nullptr);
            std::string error = check_sum(comm);
            FCCL_EXPECT_OK(fcclCommDestroy(comm), nullptr);
            return error;
          }) == "");
    CHECK(board.calls % ranks == 0);
    CHECK(board.calls / ranks <= 6);
  }
}

TEST_CASE("ways in: a callback that fails is an error on that rank") {
  const Environment clean(Variables{});
  const RanksOptions options = ranks_of(2);
  fcclComm_t comm = nullptr;
  const fcclAllgather_t broken = [](void*, const void*, void*, size_t) { return 7; };
  CHECK(fcclCommInitAllgather(&comm, 2, 0, broken, nullptr, &options.config) != fcclSuccess);
  CHECK(comm == nullptr);
  CHECK(std::string(fcclGetLastError(nullptr)).find("allgather") != std::string::npos);
  CHECK(fcclCommInitAllgather(&comm, 2, 0, nullptr, nullptr, &options.config) ==
        fcclInvalidArgument);
}

TEST_CASE("ways in: Split by color and key, some ranks in none") {
  CHECK(as_threads(ranks_of(5), [](fcclComm_t comm, int rank) -> std::string {
          // Ranks 0, 2, 4 in reverse order; 1 and 3 in none.
          fcclComm_t part = nullptr;
          FCCL_EXPECT_OK(fcclCommSplit(comm, rank % 2 == 0 ? 1 : -1, -rank, &part, nullptr), comm);
          if (rank % 2 != 0)
            return part == nullptr ? check_sum(comm) : "a communicator for a rank in none";
          int own = -1, count = 0;
          FCCL_EXPECT_OK(fcclCommUserRank(part, &own), part);
          FCCL_EXPECT_OK(fcclCommCount(part, &count), part);
          if (count != 3 || own != (4 - rank) / 2)
            return "rank " + std::to_string(own) + " of " + std::to_string(count);
          // Calls of both take turns; each keeps its own counters.
          std::string error;
          for (int i = 0; i < 5 && error.empty(); ++i) error = check_sum(part);
          if (error.empty()) error = check_sum(comm);
          FCCL_EXPECT_OK(fcclCommDestroy(part), nullptr);
          return error;
        }) == "");
}

TEST_CASE("H13 subgroups of any kind, one after the other") {
  CHECK(as_threads(ranks_of(3), [](fcclComm_t comm, int rank) -> std::string {
          for (uint64_t round = 0; round < 50; ++round) {
            const auto members = 1 + mix(round, 0x48) % 7;  // a bit per rank
            const bool in = (members >> rank & 1) != 0;
            fcclComm_t part = nullptr;
            FCCL_EXPECT_OK(fcclCommSplit(comm, in ? 0 : -1, 0, &part, nullptr), comm);
            std::string error = in ? check_sum(part) : "";
            FCCL_EXPECT_OK(fcclCommDestroy(part), nullptr);
            if (!error.empty()) return error;
          }
          return check_sum(comm);
        }) == "");
}

TEST_CASE("ways in: init in the background") {
  const Environment clean(Variables{});
  RanksOptions options = ranks_of(3);
  options.config.blocking = -1;
  const fcclUniqueId id = new_id();
  CHECK(on_threads(3, [&](int rank) -> std::string {
          fcclComm_t comm = nullptr;
          const fcclResult_t begun = fcclCommInitRankConfig(&comm, 3, &id, rank, &options.config);
          if (begun != fcclInProgress && begun != fcclSuccess)
            return "code " + std::to_string(begun);
          fcclResult_t state = fcclInProgress;
          for (const int64_t end = now_ms() + bound_ms(20000);
               state == fcclInProgress && now_ms() < end;
               usleep(1000))
            FCCL_EXPECT_OK(fcclCommGetAsyncError(comm, &state), comm);
          if (state != fcclSuccess) return "init ended with " + std::to_string(state);
          std::string error = check_sum(comm);
          FCCL_EXPECT_OK(fcclCommDestroy(comm), nullptr);
          return error;
        }) == "");
}

TEST_CASE("the way out: Finalize waits for all, and only Destroy is legal after it") {
  CHECK(as_threads(ranks_of(3), [](fcclComm_t comm, int rank) -> std::string {
          std::string error = check_sum(comm);
          if (rank == 1) usleep(100000);
          FCCL_EXPECT_OK(fcclCommFinalize(comm), comm);
          float x[4] = {};
          if (fcclAllReduce(x, x, 4, fcclFloat32, fcclSum, comm, nullptr) != fcclInvalidUsage)
            return "a call after Finalize was taken";
          fcclResult_t state = fcclInternalError;
          FCCL_EXPECT_OK(fcclCommGetAsyncError(comm, &state), comm);
          return state == fcclSuccess ? error : "Finalize left a failure";
        }) == "");
}

TEST_CASE("H15 ranks that leave at different times see no failure") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int rank) -> std::string {
          std::string error;
          for (int i = 0; i < 100 && error.empty(); ++i) error = check_sum(comm);
          if (rank == 1) usleep(500000);
          fcclResult_t state = fcclInternalError;
          FCCL_EXPECT_OK(fcclCommGetAsyncError(comm, &state), comm);
          return state == fcclSuccess ? error : "the peer's good-bye is taken for a failure";
        }) == "");
}

TEST_CASE("H16 two threads on one communicator are serialised") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int) -> std::string {
          // All calls are alike, so that their order over threads does not matter.
          std::string errors[2];
          std::thread other([&] {
            for (int i = 0; i < 200 && errors[1].empty(); ++i) errors[1] = check_sum(comm);
          });
          for (int i = 0; i < 200 && errors[0].empty(); ++i) errors[0] = check_sum(comm);
          other.join();
          return errors[0] + errors[1];
        }) == "");
}

TEST_CASE("windows: memory of the communicator is seen by its peers") {
  CHECK(as_threads(ranks_of(3), [](fcclComm_t comm, int rank) -> std::string {
          void* memory = nullptr;
          FCCL_EXPECT_OK(fcclMemAlloc(comm, &memory, 8192), comm);
          std::memset(memory, 0x10 + rank, 8192);
          fcclWindow_t window = nullptr;
          FCCL_EXPECT_OK(fcclCommWindowRegister(comm, memory, 8192, &window), comm);
          std::string error;
          for (int peer = 0; peer < 3; ++peer) {
            void* there = nullptr;
            FCCL_EXPECT_OK(fcclCommWindowPeer(comm, window, peer, &there), comm);
            const auto* bytes = static_cast<const unsigned char*>(there);
            if (bytes[0] != 0x10 + peer || bytes[8191] != 0x10 + peer)
              error = "the window of rank " + std::to_string(peer);
          }
          void* nobody = nullptr;
          if (fcclCommWindowPeer(comm, window, 3, &nobody) != fcclInvalidArgument)
            error = "a window of rank 3";
          if (error.empty()) error = check_sum(comm);  // all have looked
          FCCL_EXPECT_OK(fcclCommWindowDeregister(comm, window), comm);
          FCCL_EXPECT_OK(fcclMemFree(comm, memory), comm);
          if (fcclMemFree(comm, memory) != fcclInvalidArgument) error = "memory was freed twice";
          return error;
        }) == "");
}

}  // namespace fccl::test
