// Every fault hook of the bootstrap on every rank: the same error on all ranks, and the next init
// works. Also the joins by the caller's own allgather, which must end together whatever fails.
#include "base/fault.h"

#include <dirent.h>

#include <condition_variable>
#include <cstring>
#include <mutex>

#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

constexpr int kRanks = 3;

// An allgather between threads, as a caller might have one.
class SharedAllgather {
 public:
  explicit SharedAllgather(int ranks) : ranks_(ranks) {}
  struct Seat {
    SharedAllgather* shared;
    int rank;
    int calls = 0;
    int fail_at = 0;
  };
  static int call(void* context, const void* send, void* recv, size_t bytes) {
    Seat& seat = *static_cast<Seat*>(context);
    seat.calls++;
    seat.shared->gather(seat.rank, send, recv, bytes);
    return seat.calls == seat.fail_at ? 5 : 0;
  }

 private:
  void gather(int rank, const void* send, void* recv, size_t bytes) {
    std::unique_lock<std::mutex> lock(mutex_);
    const int round = round_;
    buffer_.resize(bytes * static_cast<size_t>(ranks_));
    std::memcpy(buffer_.data() + static_cast<size_t>(rank) * bytes, send, bytes);
    if (++arrived_ == ranks_) {
      done_ = buffer_;
      arrived_ = 0;
      round_++;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
    std::memcpy(recv, done_.data(), done_.size());
  }
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int round_ = 0;
  int arrived_ = 0;
  std::vector<uint8_t> buffer_;
  std::vector<uint8_t> done_;
};

struct Seats {
  explicit Seats(int ranks) : shared(ranks) {
    for (int rank = 0; rank < ranks; rank++) seats.push_back({&shared, rank});
  }
  SharedAllgather shared;
  std::vector<SharedAllgather::Seat> seats;
};

std::vector<Joined> join_by_allgather(Seats& seats, const Config& config, int64_t timeout_ms) {
  std::vector<Joined> joined(seats.seats.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < joined.size(); i++)
    threads.emplace_back([&, i] {
      AllgatherJoinArgs args;
      args.allgather = SharedAllgather::call;
      args.context = &seats.seats[i];
      args.rank = static_cast<int>(i);
      args.ranks = static_cast<int>(joined.size());
      args.library_version = 100;
      args.config = &config;
      Result<std::shared_ptr<Group>> result = Group::join_allgather(args, limit_ms(timeout_ms));
      joined[i].status = result.status();
      if (result.ok()) joined[i].group = *result;
    });
  for (std::thread& thread : threads) thread.join();
  return joined;
}

// What all ranks say when they go through everything with this fault.
std::vector<Status> walk(const std::string& spec) {
  Config config = plain_config();
  config.test_fault = spec;
  const std::vector<Joined> joined = join_setups(make_id(config), setups_of(kRanks, config));
  std::vector<Status> statuses = statuses_of(joined);
  for (const Status& status : statuses)
    if (!status.ok()) return statuses;
  return status_on_all(groups_of(joined), [](Group& group) -> Status {
    const Limit limit = limit_ms(bound_ms(3000));
    std::vector<std::vector<uint8_t>> all;
    FCCL_TRY(group.allgather("x", 1, all, limit, "facts"));
    FCCL_TRY(group.exchange_fds(0, limit, "windows").status());
    FCCL_TRY(group.split(0, 0, limit).status());
    return group.vote({}, limit, "end");
  });
}

size_t entries_of(const char* folder) {
  size_t count = 0;
  DIR* dir = opendir(folder);
  while (readdir(dir) != nullptr) count++;
  closedir(dir);
  return count;
}

}  // namespace

TEST_CASE("H10 H14 every fault on every rank is the same error on all, and the next init works") {
  int walked = 0;
  for (const std::string& phase : fault_phases()) {
    if (phase.rfind("bootstrap.", 0) != 0) continue;
    for (int rank = 0; rank < kRanks; rank++) {
      const std::string spec = phase + ":" + std::to_string(rank);
      INFO(spec);
      const Deadline since = Deadline::after_ms(0);
      const std::vector<Status> statuses = walk(spec);
      CHECK(since.elapsed_ms() < bound_ms(2000));
      CHECK_FALSE(statuses[0].ok());
      check_same_error(statuses, statuses[0].code(), "rank " + std::to_string(rank));
      walked++;
    }
    for (const Status& status : walk("")) CHECK(status.ok());
  }
  CHECK(walked >= 8 * kRanks);
}

TEST_CASE("a fault hook has a known phase and a rank") {
  CHECK(set_fault("bootstrap.mesh:1:hard").ok());
  CHECK(fault("bootstrap.mesh", 1));
  CHECK_FALSE(fault("bootstrap.mesh", 0));
  CHECK_FALSE(fault("bootstrap.hello", 1));
  CHECK(fault_how("bootstrap.mesh", 1) == "hard");
  CHECK(fault_status("bootstrap.mesh", 1).code() == Code::SystemError);
  CHECK(set_fault("bootstrap.mesh:*").ok());
  CHECK(fault("bootstrap.mesh", 15));
  CHECK(set_fault("nosuch:1").code() == Code::InvalidArgument);
  CHECK(set_fault("bootstrap.mesh").code() == Code::InvalidArgument);
  CHECK(set_fault("").ok());
  CHECK_FALSE(fault("bootstrap.mesh", 1));
}

TEST_CASE("ranks meet through the caller's allgather, in exactly the promised number of calls") {
  for (int ranks : {1, 2, 5}) {
    Seats seats(ranks);
    const Groups groups = groups_of(join_by_allgather(seats, plain_config(), bound_ms(3000)));
    for (const SharedAllgather::Seat& seat : seats.seats)
      CHECK(seat.calls == Group::kAllgatherCalls);
    for (const Status& status : status_on_all(
             groups, [](Group& group) { return group.barrier(limit_ms(bound_ms(2000)), "x"); }))
      CHECK(status.ok());
    leave_all(groups);
  }
}

TEST_CASE("the caller's allgather is called as often when ranks fail, and all fail alike") {
  for (const char* spec : {"bootstrap.listen:0",
                           "bootstrap.listen:1",
                           "bootstrap.hello:2",
                           "bootstrap.version:1",
                           "bootstrap.mesh:1",
                           "bootstrap.thread:2"}) {
    INFO(spec);
    Config config = plain_config();
    config.test_fault = spec;
    Seats seats(kRanks);
    const std::vector<Joined> joined = join_by_allgather(seats, config, bound_ms(300));
    CHECK_FALSE(joined[0].status.ok());
    check_same_error(statuses_of(joined),
                     joined[0].status.code(),
                     "rank " + std::string(spec + std::strlen(spec) - 1));
    for (const SharedAllgather::Seat& seat : seats.seats)
      CHECK(seat.calls == Group::kAllgatherCalls);
  }
}

TEST_CASE("an allgather function that fails, or a wrong rank, leaves nobody waiting") {
  for (int fail_at : {1, 2}) {
    Seats seats(2);
    seats.seats[1].fail_at = fail_at;
    const std::vector<Joined> joined = join_by_allgather(seats, plain_config(), bound_ms(300));
    CHECK(joined[1].status.code() == Code::SystemError);
    CHECK(contains(joined[1].status.text(), "returned 5"));
    for (const SharedAllgather::Seat& seat : seats.seats)
      CHECK(seat.calls == Group::kAllgatherCalls);
    if (fail_at == 1) CHECK_FALSE(joined[0].status.ok());
  }
  AllgatherJoinArgs args;
  const Config config = plain_config();
  args.config = &config;
  args.allgather = [](void*, const void*, void* recv, size_t bytes) {
    std::memset(recv, 0, bytes * 2);
    return 0;
  };
  args.rank = 0;
  args.ranks = 2;
  CHECK(Group::join_allgather(args, limit_ms(100)).status().code() == Code::InvalidUsage);
  args.rank = 2;
  CHECK(Group::join_allgather(args, limit_ms(100)).status().code() == Code::InvalidArgument);
}

TEST_CASE("100 rounds leave no descriptor and no thread behind") {
  walk("");
  walk("bootstrap.mesh:1");
  const auto settle = [](const char* folder, size_t before) {
    // The rendezvous' thread is not waited for by the ranks.
    const Deadline patience = Deadline::after_ms(bound_ms(3000));
    while (entries_of(folder) > before && !patience.expired())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return entries_of(folder);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const size_t fds = entries_of("/proc/self/fd");
  const size_t threads = entries_of("/proc/self/task");
  const char* const specs[] = {"", "bootstrap.hello:1", "bootstrap.mesh:2", "bootstrap.fds:0"};
  for (int round = 0; round < (kPatience > 1 ? 20 : 100); round++) walk(specs[round % 4]);
  CHECK(settle("/proc/self/fd", fds) <= fds);
  CHECK(settle("/proc/self/task", threads) <= threads);
}
