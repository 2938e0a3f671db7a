// Ranks for the bootstrap's tests: as threads of this process (join_ranks, on_all) and as processes
// that are started anew (process.h).
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/config.h"
#include "bootstrap/group.h"
#include "harness/catch.h"

namespace fccl {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int64_t kPatience = 10;
#else
constexpr int64_t kPatience = 1;
#endif
// A bound that we promise, with allowance for sanitizers.
constexpr int64_t bound_ms(int64_t ms) {
  return ms * kPatience;
}

inline Limit limit_ms(int64_t ms, const std::atomic<uint32_t>* abort = nullptr) {
  return Limit{Deadline::after_ms(ms), abort};
}

// No setting of the machine's environment reaches the tests.
inline Config plain_config() {
  Result<Config> config = parse_config([](const char*) -> const char* { return nullptr; });
  return *config;
}

struct IdBytes {
  uint8_t bytes[kUniqueIdBytes] = {};
};

inline IdBytes make_id(const Config& config) {
  IdBytes id;
  const Status status = create_unique_id(config, id.bytes);
  INFO(status.text());
  REQUIRE(status.ok());
  return id;
}

struct Joined {
  Status status;
  std::shared_ptr<Group> group;
  int64_t ms = 0;
};

struct RankSetup {
  int rank = 0;
  int ranks = 0;
  int64_t timeout_ms = bound_ms(5000);
  uint32_t library_version = 100;
  Config config = plain_config();
  const std::atomic<uint32_t>* abort = nullptr;
};

inline Joined join_one(const IdBytes& id, const RankSetup& setup) {
  JoinArgs args;
  args.unique_id = id.bytes;
  args.rank = setup.rank;
  args.ranks = setup.ranks;
  args.library_version = setup.library_version;
  args.config = &setup.config;
  const Deadline started = Deadline::after_ms(0);
  Result<std::shared_ptr<Group>> result =
      Group::join(args, limit_ms(setup.timeout_ms, setup.abort));
  Joined joined{result.status(), nullptr, started.elapsed_ms()};
  if (result.ok()) joined.group = *result;
  return joined;
}

// One thread per setup.
inline std::vector<Joined> join_setups(const IdBytes& id, const std::vector<RankSetup>& setups) {
  std::vector<Joined> joined(setups.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < setups.size(); i++)
    threads.emplace_back([&, i] { joined[i] = join_one(id, setups[i]); });
  for (std::thread& thread : threads) thread.join();
  return joined;
}

inline std::vector<RankSetup> setups_of(int ranks, const Config& config = plain_config()) {
  std::vector<RankSetup> setups(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; rank++) {
    setups[static_cast<size_t>(rank)].rank = rank;
    setups[static_cast<size_t>(rank)].ranks = ranks;
    setups[static_cast<size_t>(rank)].config = config;
  }
  return setups;
}

using Groups = std::vector<std::shared_ptr<Group>>;

inline Groups groups_of(const std::vector<Joined>& joined) {
  Groups groups;
  for (const Joined& one : joined) {
    INFO(one.status.text());
    REQUIRE(one.status.ok());
    groups.push_back(one.group);
  }
  return groups;
}

inline Groups join_ranks(int ranks, const Config& config = plain_config()) {
  return groups_of(join_setups(make_id(config), setups_of(ranks, config)));
}

// Runs `body` on every rank at the same time and collects what it answers.
template <class Answer>
std::vector<Answer> on_all(const Groups& groups, std::function<Answer(Group&)> body) {
  std::vector<Answer> answers(groups.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < groups.size(); i++)
    threads.emplace_back([&, i] { answers[i] = body(*groups[i]); });
  for (std::thread& thread : threads) thread.join();
  return answers;
}

inline std::vector<Status> status_on_all(const Groups& groups, std::function<Status(Group&)> body) {
  return on_all<Status>(groups, std::move(body));
}

inline void leave_all(const Groups& groups) {
  for (const Status& status :
       status_on_all(groups, [](Group& group) { return group.leave(limit_ms(bound_ms(2000))); })) {
    INFO(status.text());
    CHECK(status.ok());
  }
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// All failed, with the same code and the same words.
inline void check_same_error(const std::vector<Status>& statuses, Code code,
                             const std::string& part) {
  for (const Status& status : statuses) {
    INFO(status.text());
    CHECK(code_name(status.code()) == std::string(code_name(code)));
    CHECK(contains(status.text(), part));
    CHECK(status.text() == statuses[0].text());
  }
}

inline std::vector<Status> statuses_of(const std::vector<Joined>& joined) {
  std::vector<Status> statuses;
  for (const Joined& one : joined) statuses.push_back(one.status);
  return statuses;
}

}  // namespace fccl
