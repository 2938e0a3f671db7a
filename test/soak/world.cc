// See world.h. A rank's process is this program with `--rank`; ids travel over a pipe, because they
// are secrets.
#include "world.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "harness/leftovers.h"
#include "life.h"

namespace fccl::test {
namespace {

constexpr int64_t kPatienceMs = 60000;

std::vector<fcclUniqueId> new_ids(const RoundPlan& plan) {
  std::vector<fcclUniqueId> ids;
  for (size_t c = 0; c < plan.communicators.size(); ++c) ids.push_back(new_id());
  return ids;
}

std::string with_name(int rank, const std::string& error) {
  return error.empty() ? "" : "rank " + std::to_string(rank) + ": " + error + "\n";
}

std::string play_threads(const RoundPlan& plan) {
  const Environment environment(plan.environment);
  const Holdings before = own_holdings();
  std::string all;
  {
    const std::vector<fcclUniqueId> ids = new_ids(plan);
    std::vector<std::string> errors(static_cast<size_t>(plan.ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      threads.emplace_back([&plan, &ids, rank, &error = errors[static_cast<size_t>(rank)]] {
        error = run_rank(plan, rank, ids);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < plan.ranks; ++rank)
      all += with_name(rank, errors[static_cast<size_t>(rank)]);
  }
  static bool is_first = true;  // what the library makes once for the process stays
  const Holdings after = is_first ? before : settled_holdings(before);
  is_first = false;
  if (!(after == before))
    all += "left behind: " + text_of(after) + ", before: " + text_of(before) + "\n";
  return all;
}

struct Child {
  pid_t pid = -1;
  int errors = -1;  // reads its standard output
};

Child start_child(const RoundPlan& plan, int rank, const std::vector<fcclUniqueId>& ids) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return {};
  const std::string numbers[] = {
      std::to_string(rank), std::to_string(plan.seed), std::to_string(plan.round)};
  const char* const arguments[] = {"fccl_soak",
                                   "--rank",
                                   numbers[0].c_str(),
                                   "--seed",
                                   numbers[1].c_str(),
                                   "--round",
                                   numbers[2].c_str(),
                                   nullptr};
  const pid_t parent = getpid();
  Child child;
  child.pid = fork();
  if (child.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0) _exit(101);
    execv("/proc/self/exe", const_cast<char* const*>(arguments));
    _exit(102);
  }
  close(in[0]);
  close(out[1]);
  const size_t bytes = ids.size() * sizeof(fcclUniqueId);
  const bool is_told = write(in[1], ids.data(), bytes) == static_cast<ssize_t>(bytes);
  close(in[1]);
  child.errors = out[0];
  if (!is_told && child.pid > 0) kill(child.pid, SIGKILL);
  return child;
}

// All that the child writes until it ends.
std::string read_errors(int fd, int64_t until_ms) {
  std::string all;
  for (;;) {
    const int64_t left = until_ms - now_ms();
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0) return all + "it never ended\n";
    char text[512];
    const ssize_t got = read(fd, text, sizeof text);
    if (got <= 0) return all;
    all.append(text, static_cast<size_t>(got));
  }
}

std::string end_of_child(const RoundPlan& plan, int rank, Child& child, int64_t until_ms) {
  if (child.pid < 0) return "it did not start\n";
  std::string error = read_errors(child.errors, until_ms);
  close(child.errors);
  if (now_ms() >= until_ms) kill(child.pid, SIGKILL);
  int status = 0;
  waitpid(child.pid, &status, 0);
  const bool may_be_killed =
      rank == plan.victim && (plan.fault == Fault::KillInInit || plan.fault == Fault::KillInCall);
  if (may_be_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return "";
  if (status != 0) error += "it ended with status " + std::to_string(status) + "\n";
  return error;
}

std::string play_processes(const RoundPlan& plan) {
  const std::vector<fcclUniqueId> ids = new_ids(plan);
  std::vector<Child> children;
  for (int rank = 0; rank < plan.ranks; ++rank) children.push_back(start_child(plan, rank, ids));
  const int64_t until = now_ms() + bound_ms(kPatienceMs);
  std::string all;
  for (int rank = 0; rank < plan.ranks; ++rank)
    all += with_name(rank, end_of_child(plan, rank, children[static_cast<size_t>(rank)], until));
  return all;
}

}  // namespace

std::string play_round(const RoundPlan& plan) {
  return plan.kind == RankKind::Threads ? play_threads(plan) : play_processes(plan);
}

int play_rank(const RoundPlan& plan, int rank) {
  const Environment environment(plan.environment);
  std::vector<fcclUniqueId> ids(plan.communicators.size());
  const size_t bytes = ids.size() * sizeof(fcclUniqueId);
  if (read(0, ids.data(), bytes) != static_cast<ssize_t>(bytes)) return 103;
  if (plan.fault == Fault::KillInInit && rank == plan.victim) {
    std::thread([delay = static_cast<useconds_t>(plan.fault_delay_us)] {
      usleep(delay);
      (void)kill(getpid(), SIGKILL);
    }).detach();
  }
  const std::string errors = run_rank(plan, rank, ids);
  if (write(1, errors.data(), errors.size()) != static_cast<ssize_t>(errors.size())) return 104;
  return 0;
}

}  // namespace fccl::test
