// Ranks meet by unique id: right, wrong, too late, twice, of another version. Each error is the
// same on all ranks and names the rank.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

constexpr int64_t kShortMs = 1000;

std::vector<RankSetup> short_setups(int ranks, int64_t timeout_ms = kShortMs) {
  std::vector<RankSetup> setups = setups_of(ranks);
  for (RankSetup& setup : setups) setup.timeout_ms = timeout_ms;
  return setups;
}

}  // namespace

TEST_CASE("1 to 16 ranks meet, know each other, and leave") {
  for (int ranks : {1, 2, 3, 8, 16}) {
    const Groups groups = join_ranks(ranks);
    for (int rank = 0; rank < ranks; rank++) {
      Group& group = *groups[static_cast<size_t>(rank)];
      CHECK(group.rank() == rank);
      CHECK(group.ranks() == ranks);
      CHECK(group.owned_by_this_process());
      for (int peer = 0; peer < ranks; peer++) {
        CHECK(group.same_host_socket(peer));
        CHECK(group.process_id(peer) == getpid());
        CHECK(group.host_token(peer) == group.host_token(rank));
        CHECK(group.describe(peer) == groups[0]->describe(peer));
      }
      CHECK(group.health().ok());
    }
    leave_all(groups);
  }
}

TEST_CASE("B11 a missing rank is named at the deadline, to all") {
  const IdBytes id = make_id(plain_config());
  std::vector<RankSetup> setups = short_setups(4, bound_ms(kShortMs));
  setups.erase(setups.begin() + 2);
  const std::vector<Joined> joined = join_setups(id, setups);
  check_same_error(statuses_of(joined),
                   Code::Timeout,
                   "rank 2 did not come within " + std::to_string(bound_ms(kShortMs)) +
                       " ms (3 of 4 ranks came)");
  for (const Joined& one : joined) {
    CHECK(one.status.rank() == 2);
    CHECK(one.ms <= bound_ms(kShortMs) + bound_ms(300));
  }
}

TEST_CASE("several missing ranks are all named") {
  const IdBytes id = make_id(plain_config());
  std::vector<RankSetup> setups = short_setups(4, 300);
  setups.resize(1);
  setups[0].rank = 1;
  check_same_error(
      statuses_of(join_setups(id, setups)), Code::Timeout, "ranks 0, 2 and 3 did not come");
}

TEST_CASE("B11 a rank that comes twice is an error on all ranks, with both processes") {
  std::vector<RankSetup> setups = short_setups(2, bound_ms(5000));
  setups[1].rank = 0;
  const std::vector<Joined> joined = join_setups(make_id(plain_config()), setups);
  check_same_error(statuses_of(joined), Code::InvalidUsage, "rank 0 came twice");
  for (const Joined& one : joined) CHECK(one.ms < bound_ms(2000));
}

TEST_CASE("B11 a rank out of range is an error on all ranks") {
  for (int wrong : {2, -1, 1 << 30}) {
    std::vector<RankSetup> setups = short_setups(2, bound_ms(5000));
    setups[1].rank = wrong;
    check_same_error(statuses_of(join_setups(make_id(plain_config()), setups)),
                     Code::InvalidArgument,
                     "rank " + std::to_string(wrong));
  }
}

TEST_CASE("B11 different numbers of ranks are an error on all, with both numbers") {
  std::vector<RankSetup> setups = short_setups(2, bound_ms(5000));
  setups[1].ranks = 3;
  check_same_error(statuses_of(join_setups(make_id(plain_config()), setups)),
                   Code::InvalidArgument,
                   "rank 0 says 2, rank 1 says 3");
  for (int ranks : {0, -3, kMaxRanks + 1}) {
    setups = short_setups(1, bound_ms(5000));
    setups[0].ranks = ranks;
    check_same_error(statuses_of(join_setups(make_id(plain_config()), setups)),
                     Code::InvalidArgument,
                     "1 to 16 are possible");
  }
}

TEST_CASE("B11 a used unique id is refused at once") {
  const IdBytes id = make_id(plain_config());
  leave_all(groups_of(join_setups(id, setups_of(2))));
  const std::vector<Joined> joined = join_setups(id, setups_of(2));
  for (const Joined& one : joined) {
    INFO(one.status.text());
    CHECK(one.status.code() == Code::InvalidUsage);
    CHECK(contains(one.status.text(), "already used"));
    CHECK(one.ms < bound_ms(1000));
  }
}

TEST_CASE("B12 another wire or library version is an error on all, with both versions") {
  std::vector<RankSetup> setups = short_setups(2, bound_ms(5000));
  setups[1].library_version = 10203;
  check_same_error(statuses_of(join_setups(make_id(plain_config()), setups)),
                   Code::VersionMismatch,
                   "rank 0 has fccl 0.1.0 (wire version 1), rank 1 has fccl 1.2.3");
  setups = short_setups(2, bound_ms(5000));
  setups[1].config.test_fault = "bootstrap.version:1";
  check_same_error(statuses_of(join_setups(make_id(plain_config()), setups)),
                   Code::VersionMismatch,
                   "wire version 2");
}

TEST_CASE("an abort frees a rank that waits for others, and tells the others") {
  const IdBytes id = make_id(plain_config());
  std::atomic<uint32_t> abort{0};
  std::vector<RankSetup> setups = short_setups(3, bound_ms(20000));
  setups.pop_back();
  setups[1].abort = &abort;
  std::thread aborter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    abort.store(1);
  });
  const std::vector<Joined> joined = join_setups(id, setups);
  aborter.join();
  CHECK(joined[1].status.code() == Code::Aborted);
  CHECK(joined[1].ms <= 100 + bound_ms(100));
  CHECK(joined[0].status.code() == Code::Aborted);
  CHECK(contains(joined[0].status.text(), "rank 1: "));
  CHECK(joined[0].ms <= 100 + bound_ms(1000));
}

TEST_CASE("ranks meet over TCP, IPv4 and IPv6, where no unix socket joins them") {
  struct Case {
    const char* ifname;
    const char* family;
  };
  for (const Case& one : {Case{"lo", "AF_INET"}, Case{"lo", "AF_INET6"}, Case{"", ""}}) {
    Config config = plain_config();
    config.socket_ifname = one.ifname;
    config.socket_family = one.family;
    const IdBytes id = make_id(config);
    Result<UniqueId> decoded = decode_unique_id(id.bytes);
    REQUIRE(decoded.ok());
    if (decoded->addresses.empty()) continue;  // a host without a network
    std::vector<RankSetup> setups = setups_of(3, config);
    // Each rank believes to be on a host of its own, and looks for paths that do not exist.
    char folder[] = "/tmp/fccl-test-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    for (RankSetup& setup : setups) {
      setup.config.hostid = "host" + std::to_string(setup.rank);
      setup.config.socket_dir = folder;
    }
    const Groups groups = groups_of(join_setups(id, setups));
    CHECK_FALSE(groups[0]->same_host_socket(1));
    CHECK(groups[0]->same_host_socket(0));
    CHECK(groups[0]->host_token(0) != groups[0]->host_token(1));
    CHECK(contains(groups[0]->describe(2), "host2"));
    for (const Status& status : status_on_all(
             groups, [](Group& group) { return group.barrier(limit_ms(bound_ms(2000)), "tcp"); }))
      CHECK(status.ok());
    leave_all(groups);
    CHECK(rmdir(folder) == 0);  // the sockets in it are gone
  }
}

TEST_CASE("unix sockets with a path need a folder of one's own, and leave nothing in it") {
  char folder[] = "/tmp/fccl-test-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  Config config = plain_config();
  config.socket_dir = folder;
  const Groups groups = join_ranks(3, config);
  CHECK(groups[0]->same_host_socket(2));
  leave_all(groups);
  uint8_t bytes[kUniqueIdBytes];
  REQUIRE(chmod(folder, 0755) == 0);
  const Status status = create_unique_id(config, bytes);
  CHECK(status.code() == Code::InvalidArgument);
  CHECK(contains(status.text(), "0700"));
  CHECK(rmdir(folder) == 0);
  CHECK(create_unique_id(config, bytes).code() == Code::InvalidArgument);
  config.socket_dir = "relative";
  CHECK(create_unique_id(config, bytes).code() == Code::InvalidArgument);
  config.socket_dir = "/tmp/" + std::string(200, 'x');
  CHECK(create_unique_id(config, bytes).code() == Code::InvalidArgument);
}

TEST_CASE("a wrong setting on one rank is told to all") {
  struct Case {
    std::string Config::*field;
    const char* value;
    const char* part;
  };
  for (const Case& one :
       {Case{&Config::socket_ifname, "nosuch0", "rank 1: FCCL_SOCKET_IFNAME=nosuch0"},
        Case{&Config::socket_ifname, "a,,b", "rank 1: FCCL_SOCKET_IFNAME=a,,b"},
        Case{&Config::socket_dir, "/nonexistent", "rank 1: FCCL_SOCKET_DIR"}}) {
    std::vector<RankSetup> setups = short_setups(3, bound_ms(5000));
    setups[1].config.*one.field = one.value;
    const std::vector<Joined> joined = join_setups(make_id(plain_config()), setups);
    check_same_error(statuses_of(joined), Code::InvalidArgument, one.part);
    for (const Joined& rank : joined) CHECK(rank.ms < bound_ms(2000));
  }
}

TEST_CASE("B06 many communicators at once in one process do not meet each other") {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int job = 0; job < 4; job++)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; round++) {
        const Config config = plain_config();
        IdBytes id;
        if (!create_unique_id(config, id.bytes).ok()) return;
        for (const Joined& one : join_setups(id, setups_of(3))) good += one.status.ok() ? 1 : 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 4 * 5 * 3);
}
