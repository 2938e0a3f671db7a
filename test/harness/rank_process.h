// Ranks as processes: this very program is started anew (fork and exec, so that it works under
// every sanitizer) and runs one registered scenario. It tells its parent what happens over a pipe;
// the parent may kill it at any moment. Whatever becomes of a test, its processes end with it.
#pragma once
#include <fccl/fccl.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "harness/ranks.h"

namespace fccl::test {

// What a process is told.
struct ProcessOrder {
  char scenario[32] = {};
  char parameter[512] = {};
  int32_t rank = 0;
  int32_t ranks = 2;
  fcclUniqueId id = {};
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  char environment[512] = {};  // NAME=value, one a line
};

// What a process tells: a word, a result code, a time, a text.
struct ProcessMessage {
  char word[16] = {};
  int32_t code = 0;
  int64_t when_ms = 0;
  char text[480] = {};
};

// The child's side.
class ProcessRank {
 public:
  explicit ProcessRank(const ProcessOrder& order) : order_(order) {}
  int rank() const { return order_.rank; }
  int ranks() const { return order_.ranks; }
  const fcclUniqueId& unique_id() const { return order_.id; }
  std::string parameter() const { return order_.parameter; }
  fcclResult_t init(fcclComm_t* comm) const;
  void tell(const char* word, int code = 0, const std::string& text = "") const;

 private:
  const ProcessOrder& order_;
};

// Registers `run` as a scenario. What it returns is told as the word "end".
struct Scenario {
  Scenario(const char* name, std::string (*run)(ProcessRank& self));
};

// The parent's side: one process.
class RankProcess {
 public:
  RankProcess(const char* scenario, int rank, const RanksOptions& options, const fcclUniqueId& id,
              const std::string& parameter = "");
  ~RankProcess();
  RankProcess(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t pid() const { return pid_; }
  // The next message, or nothing if the process ended or the time is over.
  std::optional<ProcessMessage> receive(int64_t ms);
  // Reads until a message with this word comes.
  std::optional<ProcessMessage> wait_for(const char* word, int64_t ms);
  void kill();  // SIGKILL
  // Waits for the end; the exit status as waitpid gives it, -1 if it did not end in time (it is
  // killed).
  int join(int64_t ms);

 private:
  pid_t pid_ = -1;
  int report_ = -1;
};

std::vector<RankProcess> start_ranks(const char* scenario, const RanksOptions& options,
                                     const std::string& parameter = "");

// All ranks of one scenario to their end: the errors, one a line, or "".
std::string as_processes(const char* scenario, const RanksOptions& options,
                         const std::string& parameter = "");

}  // namespace fccl::test
