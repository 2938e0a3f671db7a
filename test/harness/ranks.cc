// See ranks.h.
#include "harness/ranks.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

extern char** environ;

namespace fccl::test {
namespace {

constexpr char kPrefix[] = "FCCL_";

std::string run_rank(const RanksOptions& options, const fcclUniqueId& id, int rank,
                     const RankBody& body) {
  fcclComm_t comm = nullptr;
  FCCL_EXPECT_OK(fcclCommInitRankConfig(&comm, options.ranks, &id, rank, &options.config), nullptr);
  std::string error = body(comm, rank);
  if (!error.empty()) fcclCommAbort(comm);  // so that peers do not wait for a rank that gave up
  const fcclResult_t destroyed = fcclCommDestroy(comm);
  return error.empty() ? error_text(destroyed, "fcclCommDestroy") : error;
}

}  // namespace

int64_t bound_ms(int64_t ms) {
  if (const char* factor = std::getenv("FCCL_TEST_SLOW_FACTOR")) return ms * std::atoll(factor);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return ms * 10;
#else
  return ms;
#endif
}

int64_t now_ms() {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

Environment::Environment(const Variables& variables) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* value = std::strchr(*entry, '=');
    if (value == nullptr || std::strncmp(*entry, kPrefix, sizeof kPrefix - 1) != 0) continue;
    const std::string name(*entry, static_cast<size_t>(value - *entry));
    if (name != "FCCL_TEST_SLOW_FACTOR") saved_.emplace_back(name, value + 1);
  }
  for (const auto& [name, value] : saved_) unsetenv(name.c_str());
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  // What a set variable replaced comes back; what was not there goes.
  for (const auto& [name, value] : variables) {
    bool known = false;
    for (const auto& saved : saved_) known = known || saved.first == name;
    if (!known) saved_.emplace_back(name, "\x01");
  }
}

Environment::~Environment() {
  for (const auto& [name, value] : saved_) {
    if (value == "\x01") {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
}

RanksOptions ranks_of(int ranks, Variables environment) {
  RanksOptions options;
  options.ranks = ranks;
  options.config.backend = fcclBackendCpu;
  options.config.init_timeout_ms = bound_ms(20000);
  options.config.call_timeout_ms = bound_ms(20000);
  options.config.destroy_timeout_ms = bound_ms(10000);
  options.environment = std::move(environment);
  return options;
}

fcclUniqueId new_id() {
  fcclUniqueId id{};
  if (fcclGetUniqueId(&id) != fcclSuccess) std::memset(&id, 0, sizeof id);
  return id;
}

std::string error_text(fcclResult_t result, const char* what, fcclComm_t comm) {
  if (result == fcclSuccess) return "";
  return std::string(what) + ": " + fcclGetErrorString(result) + ": " + fcclGetLastError(comm);
}

std::string as_threads(const RanksOptions& options, const RankBody& body) {
  const Environment environment(options.environment);
  const fcclUniqueId id = new_id();
  std::vector<std::string> errors(static_cast<size_t>(options.ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank)
    threads.emplace_back(
        [&, rank] { errors[static_cast<size_t>(rank)] = run_rank(options, id, rank, body); });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (int rank = 0; rank < options.ranks; ++rank)
    if (!errors[static_cast<size_t>(rank)].empty())
      all += "rank " + std::to_string(rank) + ": " + errors[static_cast<size_t>(rank)] + "\n";
  return all;
}

}  // namespace fccl::test
