// Strangers at the doors: whatever connects without the secret is dropped under bounds, gets no
// answer, and neither delays nor disturbs the ranks.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/log.h"
#include "bootstrap/ranks.h"
#include "bootstrap/secure_channel.h"
#include "harness/strangers.h"

using namespace fccl;
using namespace fccl::test;

namespace {

// What arrives until the other side closes, and how long that took; -1 if it stays open.
int64_t closed_after_ms(const GuardedFd& fd, int64_t patience_ms, std::string& received) {
  const Deadline deadline = Deadline::after_ms(patience_ms);
  while (!deadline.expired()) {
    pollfd polled{fd.get(), POLLIN, 0};
    (void)poll(&polled, 1, deadline.slice_ms());
    char buffer[1024];
    const ssize_t got = recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) received.append(buffer, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN)) return deadline.elapsed_ms();
  }
  return -1;
}

}  // namespace

TEST_CASE("B13 a wrong secret is closed within 100 ms without a byte of answer") {
  const IdBytes id = make_id(plain_config());
  for (const Endpoint& door : doors_of(id.bytes)) {
    const GuardedFd fd = connect_to(door);
    REQUIRE(fd.valid());
    const std::vector<uint8_t> hello = client_hello(*random_secret());
    std::string received;
    send_to(fd, hello.data(), hello.size());
    const int64_t ms = closed_after_ms(fd, bound_ms(3000), received);
    CHECK(ms >= 0);
    CHECK(ms <= bound_ms(100));
    CHECK(received.empty());
  }
  leave_all(groups_of(join_setups(id, setups_of(2))));
}

TEST_CASE("a replayed hello gets an answer that helps nobody, and is dropped") {
  const IdBytes id = make_id(plain_config());
  Result<UniqueId> decoded = decode_unique_id(id.bytes);
  REQUIRE(decoded.ok());
  const std::vector<uint8_t> hello = client_hello(decoded->secret);
  std::string answers[2];
  for (std::string& answer : answers) {
    const GuardedFd fd = connect_to(doors_of(id.bytes)[0]);
    send_to(fd, hello.data(), hello.size());
    // Without keys of its own the replay can only guess the first frame.
    const std::vector<uint8_t> guess(24 + 4 + 17 + 40, 0x11);
    send_to(fd, guess.data(), guess.size());
    CHECK(closed_after_ms(fd, bound_ms(3000), answer) >= 0);
    CHECK((answer.empty() || answer.size() == kHelloBytes + 24));
  }
  CHECK((answers[0].empty() || answers[0] != answers[1]));
  leave_all(groups_of(join_setups(id, setups_of(2))));
}

TEST_CASE("a silent and a slow stranger are dropped at the handshake deadline") {
  const IdBytes id = make_id(plain_config());
  const GuardedFd silent = connect_to(doors_of(id.bytes)[0]);
  const GuardedFd slow = connect_to(doors_of(id.bytes)[0]);
  const std::vector<uint8_t> hello = client_hello(*random_secret());
  std::atomic<bool> done{false};
  std::thread dripping([&] {
    for (size_t i = 0; i < hello.size() && !done; i++) {
      send_to(slow, &hello[i], 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  std::string received;
  const int64_t ms = closed_after_ms(silent, bound_ms(4000), received);
  CHECK(ms >= 0);
  CHECK(closed_after_ms(slow, bound_ms(4000), received) >= 0);
  done = true;
  dripping.join();
  CHECK(received.empty());
}

TEST_CASE(
    "ranks meet through a crowd of strangers of five kinds, at the rendezvous and in the mesh") {
  const IdBytes id = make_id(plain_config());
  const std::vector<Endpoint> doors = doors_of(id.bytes);
  Result<UniqueId> decoded = decode_unique_id(id.bytes);
  REQUIRE(decoded.ok());
  const std::vector<uint8_t> replay = client_hello(decoded->secret);
  std::vector<GuardedFd> crowd;
  const auto add = [&](int count) {
    for (int i = 0; i < count; i++) {
      crowd.push_back(connect_to(doors[static_cast<size_t>(i) % doors.size()]));
      behave(crowd.back(), i, replay);
    }
  };
  add(300);  // more than the acceptor keeps
  std::atomic<bool> done{false};
  std::thread more([&] {
    while (!done) {
      add(5);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  const std::vector<Joined> joined = join_setups(id, setups_of(4));
  done = true;
  more.join();
  const Groups groups = groups_of(joined);
  for (const Joined& one : joined) CHECK(one.ms < bound_ms(2000));
  leave_all(groups);
}

TEST_CASE("a process that runs out of descriptors recovers when there are some again") {
  const IdBytes id = make_id(plain_config());
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  std::vector<GuardedFd> crowd;
  std::vector<Endpoint> doors = doors_of(id.bytes);
  rlimit tight = before;
  const int next = dup(0);
  REQUIRE(next >= 0);
  close(next);
  tight.rlim_cur = static_cast<rlim_t>(next) + 12;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &tight) == 0);
  for (int i = 0; i < 30; i++) crowd.push_back(connect_to(doors[0]));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  crowd.clear();
  leave_all(groups_of(join_setups(id, setups_of(3))));
}

TEST_CASE("B13 the secret and the unique id never reach the log, at trace level") {
  static std::string* log = nullptr;
  static std::mutex mutex;
  log = new std::string;
  set_log_callback(
      [](void*, int32_t, const char* line) {
        const std::lock_guard<std::mutex> lock(mutex);
        *log += line;
        *log += '\n';
      },
      nullptr);
  Config config = plain_config();
  config.debug = "TRACE";
  configure_log(config);
  const IdBytes id = make_id(config);
  const std::vector<uint8_t> hello = client_hello(*random_secret());
  const GuardedFd fd = connect_to(doors_of(id.bytes)[0]);
  send_to(fd, hello.data(), hello.size());
  leave_all(groups_of(join_setups(id, setups_of(3, config))));
  set_log_callback(nullptr, nullptr);
  configure_log(plain_config());
  Result<UniqueId> decoded = decode_unique_id(id.bytes);
  REQUIRE(decoded.ok());
  const std::lock_guard<std::mutex> lock(mutex);
  CHECK(contains(*log, "all 3 ranks have come"));
  const uint8_t* secret = decoded->secret.bytes.data();
  for (size_t start = 0; start + 4 <= kSecretBytes; start += 4) {
    CHECK_FALSE(contains(*log, hex(secret + start, 4)));
    CHECK_FALSE(contains(*log, std::string(reinterpret_cast<const char*>(secret) + start, 4)));
  }
}
