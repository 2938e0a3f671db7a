// What a group does once it stands: exchanges, votes, descriptors, messages, events, the end.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>

#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

const Limit soon() {
  return limit_ms(bound_ms(3000));
}

struct Events {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<int, PeerEvent>> seen;
  std::vector<std::string> texts;
  PeerEventFunction function() {
    return [this](int rank, PeerEvent event, const std::string& text) {
      const std::lock_guard<std::mutex> lock(mutex);
      seen.emplace_back(rank, event);
      texts.push_back(text);
      changed.notify_all();
    };
  }
  bool wait(size_t count) {
    std::unique_lock<std::mutex> lock(mutex);
    const Deadline deadline = Deadline::after_ms(bound_ms(2000));
    while (seen.size() < count && !deadline.expired())
      changed.wait_for(lock, std::chrono::milliseconds(10));
    return seen.size() == count;
  }
};

}  // namespace

TEST_CASE("allgather hands every rank's blob to all, of any size up to the bound") {
  const Groups groups = join_ranks(4);
  const size_t sizes[] = {0, 1, 70000, kMaxBlobBytes};
  for (const Status& status : status_on_all(groups, [&](Group& group) -> Status {
         for (size_t round = 0; round < 4; round++) {
           const size_t bytes = sizes[(round + static_cast<size_t>(group.rank())) % 4];
           const std::vector<uint8_t> mine(bytes, static_cast<uint8_t>(group.rank() + 1));
           std::vector<std::vector<uint8_t>> all;
           FCCL_TRY(group.allgather(mine.data(), mine.size(), all, soon(), "blobs"));
           for (size_t peer = 0; peer < 4; peer++)
             if (all[peer] !=
                 std::vector<uint8_t>(sizes[(round + peer) % 4], static_cast<uint8_t>(peer + 1)))
               return error(Code::InternalError, "wrong bytes of rank %zu", peer);
         }
         return {};
       })) {
    INFO(status.text());
    CHECK(status.ok());
  }
  leave_all(groups);
}

TEST_CASE("a blob above the bound is the same error on all ranks") {
  const Groups groups = join_ranks(2);
  const std::vector<uint8_t> large(kMaxBlobBytes + 1);
  check_same_error(
      status_on_all(groups,
                    [&](Group& group) {
                      std::vector<std::vector<uint8_t>> all;
                      return group.allgather(
                          large.data(), group.rank() == 1 ? large.size() : 5, all, soon(), "large");
                    }),
      Code::InvalidArgument,
      "rank 1: ");
}

TEST_CASE("H10 a vote gives all ranks the lowest failing rank's error with its code") {
  const Groups groups = join_ranks(4);
  check_same_error(status_on_all(groups,
                                 [](Group& group) {
                                   Status mine;
                                   if (group.rank() == 1)
                                     mine = error(Code::OutOfResources, "no memory");
                                   if (group.rank() == 3) mine = error(Code::SystemError, "later");
                                   return group.vote(mine, soon(), "windows");
                                 }),
                   Code::OutOfResources,
                   "rank 1: no memory");
  // A failure takes part as a contribution to an allgather too; and the group goes on after both.
  check_same_error(status_on_all(groups,
                                 [](Group& group) {
                                   std::vector<std::vector<uint8_t>> all;
                                   Status mine;
                                   if (group.rank() == 2)
                                     mine = error(Code::Unsupported, "not here");
                                   return group.allgather(mine, "x", 1, all, soon(), "facts");
                                 }),
                   Code::Unsupported,
                   "rank 2: not here");
  for (const Status& status :
       status_on_all(groups, [](Group& group) { return group.vote({}, soon(), "again"); }))
    CHECK(status.ok());
  leave_all(groups);
}

TEST_CASE("an exchange that not all ranks make ends at the deadline and names the rank") {
  const Groups groups = join_ranks(3);
  const std::vector<Status> statuses = status_on_all(groups, [](Group& group) -> Status {
    if (group.rank() == 2) return {};
    return group.barrier(limit_ms(200), "facts");
  });
  for (int rank : {0, 1}) {
    const Status& status = statuses[static_cast<size_t>(rank)];
    CHECK(status.code() == Code::Timeout);
    CHECK(contains(status.text(), "barrier 'facts' with rank 2 (pid "));
    CHECK(contains(status.text(), "200 ms"));
  }
  // The late rank makes it alone: the others' parts are there. Then all are at the same point
  // again.
  CHECK(groups[2]->barrier(soon(), "facts").ok());
  for (const Status& status :
       status_on_all(groups, [](Group& group) { return group.vote({}, soon(), "after"); }))
    CHECK(status.ok());
}

TEST_CASE("ranks at different points are told apart, on all ranks alike") {
  const Groups groups = join_ranks(3);
  check_same_error(status_on_all(groups,
                                 [](Group& group) -> Status {
                                   if (group.rank() == 1) return group.vote({}, soon(), "map");
                                   return group.barrier(soon(), "facts");
                                 }),
                   Code::Mismatch,
                   "rank 0 in barrier 'facts' (exchange 0), rank 1 in vote 'map' (exchange 0)");
}

TEST_CASE("an abort word frees a waiting rank within 100 ms") {
  const Groups groups = join_ranks(2);
  std::atomic<uint32_t> abort{0};
  Status status;
  std::thread waiter(
      [&] { status = groups[0]->barrier(limit_ms(bound_ms(20000), &abort), "facts"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const Deadline since = Deadline::after_ms(0);
  abort.store(1);
  waiter.join();
  CHECK(since.elapsed_ms() <= bound_ms(100));
  CHECK(status.code() == Code::Aborted);
}

TEST_CASE("two threads in exchanges of one group: the second gets Busy") {
  const Groups groups = join_ranks(2);
  Status first;
  std::thread waiter([&] { first = groups[0]->barrier(limit_ms(bound_ms(1500)), "a"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(groups[0]->barrier(soon(), "b").code() == Code::Busy);
  CHECK(groups[0]->exchange_fds(-1, soon(), "b").status().code() == Code::Busy);
  waiter.join();
  CHECK(first.code() == Code::Timeout);
}

TEST_CASE("descriptors reach every peer on the host, once, and none is left over") {
  const Groups groups = join_ranks(4);
  std::vector<std::string> wrong = on_all<std::string>(groups, [](Group& group) -> std::string {
    const UniqueFd mine(memfd_create("fccl-test", MFD_CLOEXEC));
    const int value = group.rank() * 11;
    if (write(mine.get(), &value, sizeof value) != sizeof value) return "write";
    for (int round = 0; round < 3; round++) {
      Result<std::vector<UniqueFd>> fds =
          group.exchange_fds(group.rank() == 2 ? -1 : mine.get(), soon(), "windows");
      if (!fds.ok()) return fds.status().text();
      for (int peer = 0; peer < 4; peer++) {
        const UniqueFd& fd = (*fds)[static_cast<size_t>(peer)];
        const bool expected = peer != group.rank() && peer != 2;
        if (fd.valid() != expected) return "descriptor of rank " + std::to_string(peer);
        int seen = -1;
        if (expected &&
            (pread(fd.get(), &seen, sizeof seen, 0) != sizeof seen || seen != peer * 11))
          return "content of rank " + std::to_string(peer);
        if (expected && (fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) == 0) return "not close-on-exec";
      }
    }
    return "";
  });
  for (const std::string& text : wrong) CHECK(text == "");
  leave_all(groups);
}

TEST_CASE("messages arrive in order for each tag, and a wait for one names the peer") {
  const Groups groups = join_ranks(2);
  const Status wait = groups[0]->receive(1, 7, limit_ms(50), "ping").status();
  CHECK(wait.code() == Code::Timeout);
  CHECK(contains(wait.text(), "'ping' from rank 1"));
  REQUIRE(groups[1]->send(0, 7, "a", 1, soon()).ok());
  REQUIRE(groups[1]->send(0, 8, "b", 1, soon()).ok());
  REQUIRE(groups[1]->send(0, 7, "c", 1, soon()).ok());
  CHECK(*groups[0]->receive(1, 8, soon(), "ping") == std::vector<uint8_t>{'b'});
  CHECK(*groups[0]->receive(1, 7, soon(), "ping") == std::vector<uint8_t>{'a'});
  CHECK(*groups[0]->receive(1, 7, soon(), "ping") == std::vector<uint8_t>{'c'});
  for (int wrong : {-1, 0, 2}) {
    CHECK(groups[0]->send(wrong, 1, "x", 1, soon()).code() == Code::InvalidArgument);
    CHECK(groups[0]->receive(wrong, 1, soon(), "x").status().code() == Code::InvalidArgument);
  }
  leave_all(groups);
}

TEST_CASE("a rank that vanishes is a death: event, error of every wait, health") {
  Groups groups = join_ranks(3);
  Events events;
  groups[0]->set_event_function(events.function());
  const std::string name = groups[0]->describe(2);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    groups[2].reset();
  });
  const Deadline since = Deadline::after_ms(0);
  const std::vector<Status> statuses = status_on_all(
      {groups[0], groups[1]}, [](Group& group) { return group.barrier(soon(), "facts"); });
  killer.join();
  check_same_error(statuses, Code::RemoteError, name + " closed its connection");
  CHECK(since.elapsed_ms() < 50 + bound_ms(1000));
  CHECK(statuses[0].rank() == 2);
  REQUIRE(events.wait(1));
  CHECK(events.seen[0] == std::make_pair(2, PeerEvent::Died));
  CHECK(events.texts[0] == statuses[0].text());
  CHECK(groups[0]->health().text() == statuses[0].text());
  CHECK(groups[0]->send(2, 0, "x", 1, soon()).text() == statuses[0].text());
  CHECK(groups[0]->receive(2, 0, soon(), "x").status().text() == statuses[0].text());
  // The survivors still reach each other, and a vote still ends.
  REQUIRE(groups[0]->send(1, 5, "y", 1, soon()).ok());
  CHECK(groups[1]->receive(0, 5, soon(), "y").ok());
  check_same_error(status_on_all({groups[0], groups[1]},
                                 [](Group& group) {
                                   return group.vote(error(Code::SystemError, "own"), soon(), "v");
                                 }),
                   Code::RemoteError,
                   name);
}

TEST_CASE("a rank that leaves is no death, and what it sent before still counts") {
  Groups groups = join_ranks(3);
  Events events;
  std::vector<Status> votes(3);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 3; rank++)
    threads.emplace_back([&, rank] {
      votes[rank] = groups[rank]->vote({}, soon(), "last");
      if (rank == 2) CHECK(groups[2]->leave(soon()).ok());
    });
  for (std::thread& thread : threads) thread.join();
  groups[2].reset();
  for (const Status& vote : votes) CHECK(vote.ok());
  // Set late: the event that came before is told now.
  const Deadline deadline = Deadline::after_ms(bound_ms(2000));
  while (groups[0]->send(2, 0, "x", 1, soon()).ok() && !deadline.expired())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  groups[0]->set_event_function(events.function());
  REQUIRE(events.wait(1));
  CHECK(events.seen[0] == std::make_pair(2, PeerEvent::Left));
  CHECK(groups[0]->health().ok());
  const Status status = groups[0]->barrier(soon(), "more");
  CHECK(status.code() == Code::RemoteError);
  CHECK(contains(status.text(), "has left"));
}

TEST_CASE("H15 leave does not wait for ranks that leave later") {
  const Groups groups = join_ranks(2);
  const Deadline since = Deadline::after_ms(0);
  CHECK(groups[0]->leave(limit_ms(bound_ms(5000))).ok());
  CHECK(groups[0]->leave(limit_ms(bound_ms(5000))).ok());
  CHECK(since.elapsed_ms() < bound_ms(1000));
  CHECK(groups[0]->barrier(soon(), "x").code() == Code::InvalidUsage);
  CHECK(groups[1]->health().ok());
  CHECK(groups[1]->leave(limit_ms(bound_ms(5000))).ok());
}

TEST_CASE("a broadcast failure ends the waits of all peers with its own words") {
  Groups groups = join_ranks(3);
  Events events;
  groups[1]->set_event_function(events.function());
  std::thread failing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    groups[0]->broadcast_failure(error(Code::Aborted, "aborted by the user"));
    groups[0]->broadcast_failure(error(Code::SystemError, "only the first counts"));
  });
  check_same_error(status_on_all({groups[1], groups[2]},
                                 [](Group& group) { return group.barrier(soon(), "facts"); }),
                   Code::Aborted,
                   "rank 0: aborted by the user");
  failing.join();
  groups[0].reset();
  REQUIRE(events.wait(1));
  CHECK(events.seen[0] == std::make_pair(0, PeerEvent::Failed));
  // Its hang-up afterwards is no second event.
  CHECK(groups[1]->send(2, 0, "x", 1, soon()).ok());
  CHECK(groups[2]->receive(1, 0, soon(), "x").ok());
  CHECK(events.wait(1));
}

TEST_CASE("an event function that is taken away is not running afterwards") {
  Groups groups = join_ranks(2);
  std::atomic<bool> gone{false};
  std::atomic<int> late{0};
  groups[0]->set_event_function([&](int, PeerEvent, const std::string&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (gone.load()) late++;
  });
  groups[1].reset();
  groups[0]->set_event_function({});
  gone.store(true);
  groups[0].reset();
  CHECK(late == 0);
}

TEST_CASE("H13 subgroups of any shape, one after the other, from one parent") {
  constexpr int kRanks = 5;
  const Groups groups = join_ranks(kRanks);
  std::mt19937 random(20240607);
  for (int round = 0; round < 12; round++) {
    int colors[kRanks];
    int keys[kRanks];
    for (int rank = 0; rank < kRanks; rank++) {
      colors[rank] = static_cast<int>(random() % 4) - 1;
      keys[rank] = static_cast<int>(random() % 3);
    }
    std::vector<std::string> wrong = on_all<std::string>(groups, [&](Group& group) -> std::string {
      const int me = group.rank();
      Result<std::shared_ptr<Group>> part = group.split(colors[me], keys[me], soon());
      if (!part.ok()) return part.status().text();
      if (colors[me] < 0) return *part == nullptr ? "" : "a group for a negative color";
      int expected_rank = 0;
      int expected_ranks = 0;
      for (int other = 0; other < kRanks; other++) {
        if (colors[other] != colors[me]) continue;
        expected_ranks++;
        expected_rank += keys[other] < keys[me] || (keys[other] == keys[me] && other < me) ? 1 : 0;
      }
      if ((*part)->rank() != expected_rank || (*part)->ranks() != expected_ranks)
        return "wrong place";
      std::vector<std::vector<uint8_t>> all;
      const Status status = (*part)->allgather(&me, sizeof me, all, soon(), "sub");
      if (!status.ok()) return status.text();
      for (const std::vector<uint8_t>& blob : all) {
        int from = -1;
        std::memcpy(&from, blob.data(), sizeof from);
        if (colors[from] != colors[me]) return "a rank of another color";
      }
      const Status left = (*part)->leave(soon());
      return left.text();
    });
    for (const std::string& text : wrong) CHECK(text == "");
  }
  for (const Status& status :
       status_on_all(groups, [](Group& group) { return group.barrier(soon(), "parent lives"); }))
    CHECK(status.ok());
  leave_all(groups);
}

TEST_CASE("a subgroup outlives its parent") {
  Groups groups = join_ranks(2);
  Groups parts = on_all<std::shared_ptr<Group>>(groups, [](Group& group) {
    Result<std::shared_ptr<Group>> part = group.split(0, -group.rank(), soon());
    return part.ok() ? *part : nullptr;
  });
  REQUIRE(parts[0] != nullptr);
  REQUIRE(parts[1] != nullptr);
  CHECK(parts[0]->rank() == 1);
  leave_all(groups);
  groups.clear();
  for (const Status& status :
       status_on_all(parts, [](Group& group) { return group.barrier(soon(), "alone"); }))
    CHECK(status.ok());
}
