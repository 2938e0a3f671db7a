// See rank_process.h. The order travels over a pipe (the id is a secret: no argument, no
// environment).
#include "harness/rank_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "harness/catch.h"

namespace fccl::test {
namespace {

constexpr int kOrderFd = 100;
constexpr int kReportFd = 101;
constexpr char kChildTest[] = "a process that runs a scenario";

using ScenarioFunction = std::string (*)(ProcessRank&);
std::map<std::string, ScenarioFunction>& scenarios() {
  static std::map<std::string, ScenarioFunction> all;
  return all;
}

bool read_whole(int fd, void* data, size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = read(fd, to, bytes);
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

template <size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  std::snprintf(to, N, "%s", from.c_str());
}

void set_environment(const char* lines) {
  std::string rest = lines;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string line = rest.substr(0, end);
    const size_t equals = line.find('=');
    if (equals != std::string::npos)
      setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
}

}  // namespace

Scenario::Scenario(const char* name, ScenarioFunction run) {
  scenarios()[name] = run;
}

fcclResult_t ProcessRank::init(fcclComm_t* comm) const {
  return fcclCommInitRankConfig(comm, order_.ranks, &order_.id, order_.rank, &order_.config);
}

void ProcessRank::tell(const char* word, int code, const std::string& text) const {
  ProcessMessage message;
  copy_text(message.word, word);
  copy_text(message.text, text);
  message.code = code;
  message.when_ms = now_ms();
  if (write(kReportFd, &message, sizeof message) != sizeof message) _exit(103);
}

RankProcess::RankProcess(const char* scenario, int rank, const RanksOptions& options,
                         const fcclUniqueId& id, const std::string& parameter) {
  ProcessOrder order;
  copy_text(order.scenario, scenario);
  copy_text(order.parameter, parameter);
  order.rank = rank;
  order.ranks = options.ranks;
  order.id = id;
  order.config = options.config;
  std::string lines;
  for (const auto& [name, value] : options.environment) lines += name + "=" + value + "\n";
  copy_text(order.environment, lines);
  int orders[2], reports[2];
  REQUIRE(pipe2(orders, O_CLOEXEC) == 0);
  REQUIRE(pipe2(reports, O_CLOEXEC) == 0);
  const char* const arguments[] = {"rank", kChildTest, nullptr};
  const pid_t parent = getpid();
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int quiet = open("/dev/null", O_WRONLY);
    if (getppid() != parent || dup2(quiet, 1) < 0 || dup2(orders[0], kOrderFd) < 0 ||
        dup2(reports[1], kReportFd) < 0)
      _exit(101);
    execv("/proc/self/exe", const_cast<char* const*>(arguments));
    _exit(102);
  }
  close(orders[0]);
  close(reports[1]);
  report_ = reports[0];
  const bool sent = write(orders[1], &order, sizeof order) == sizeof order;
  close(orders[1]);
  REQUIRE(sent);
}

RankProcess::RankProcess(RankProcess&& other) noexcept : pid_(other.pid_), report_(other.report_) {
  other.pid_ = -1;
  other.report_ = -1;
}

RankProcess::~RankProcess() {
  if (pid_ > 0) {
    kill();
    join(10000);
  }
  if (report_ >= 0) close(report_);
}

std::optional<ProcessMessage> RankProcess::receive(int64_t ms) {
  pollfd wait{report_, POLLIN, 0};
  if (poll(&wait, 1, static_cast<int>(ms < 0 ? 0 : ms)) <= 0) return std::nullopt;
  ProcessMessage message;
  if (!read_whole(report_, &message, sizeof message)) return std::nullopt;
  return message;
}

std::optional<ProcessMessage> RankProcess::wait_for(const char* word, int64_t ms) {
  const int64_t end = now_ms() + ms;
  for (;;) {
    auto message = receive(end - now_ms());
    if (!message || std::strcmp(message->word, word) == 0) return message;
  }
}

void RankProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

int RankProcess::join(int64_t ms) {
  if (pid_ <= 0) return -1;
  int status = 0;
  for (const int64_t end = now_ms() + ms; now_ms() < end; usleep(1000)) {
    if (waitpid(pid_, &status, WNOHANG) != pid_) continue;
    pid_ = -1;
    return status;
  }
  kill();
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return -1;
}

std::vector<RankProcess> start_ranks(const char* scenario, const RanksOptions& options,
                                     const std::string& parameter) {
  const fcclUniqueId id = new_id();
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < options.ranks; ++rank)
    processes.emplace_back(scenario, rank, options, id, parameter);
  return processes;
}

std::string as_processes(const char* scenario, const RanksOptions& options,
                         const std::string& parameter) {
  constexpr int64_t kPatienceMs = 200000;
  auto processes = start_ranks(scenario, options, parameter);
  std::string all;
  for (int rank = 0; rank < options.ranks; ++rank) {
    RankProcess& process = processes[static_cast<size_t>(rank)];
    const auto message = process.wait_for("end", kPatienceMs);
    const int status = process.join(bound_ms(10000));
    std::string error = message ? message->text : "it told nothing";
    if (error.empty() && status != 0) error = "exit status " + std::to_string(status);
    if (!error.empty()) all += "rank " + std::to_string(rank) + ": " + error + "\n";
  }
  return all;
}

// Not a test of its own: what RankProcess starts.
TEST_CASE("a process that runs a scenario", "[.]") {
  struct stat info {};
  if (fstat(kOrderFd, &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  (void)fcntl(kOrderFd, F_SETFD, FD_CLOEXEC);
  (void)fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  ProcessOrder order;
  REQUIRE(read_whole(kOrderFd, &order, sizeof order));
  close(kOrderFd);
  const Environment clean({});
  set_environment(order.environment);
  ProcessRank self(order);
  const auto found = scenarios().find(order.scenario);
  self.tell("end", 0, found == scenarios().end() ? "unknown scenario" : found->second(self));
}

}  // namespace fccl::test
