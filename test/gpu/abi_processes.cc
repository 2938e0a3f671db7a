// Ranks as processes: this program is started anew (fork and exec). The id goes through the child's
// standard input, its report comes back through its standard output.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "gpu/abi_checks.h"
#include "gpu/abi_speed.h"
#include "gpu/abi_world.h"

namespace fccl::test {
namespace {

constexpr int64_t kPatienceMs = 30000;

class Child {
 public:
  Child(const char* what, int rank, int ranks, const fcclUniqueId& id,
        const Variables& environment) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) std::abort();
    const std::string r = std::to_string(rank), n = std::to_string(ranks);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      dup2(in[0], 0);
      dup2(out[1], 1);
      execl("/proc/self/exe", "gpu_abi", "child", what, r.c_str(), n.c_str(), nullptr);
      _exit(102);
    }
    close(in[0]);
    close(out[1]);
    report_ = out[0];
    if (write(in[1], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) std::abort();
    close(in[1]);
  }
  ~Child() {
    kill();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    close(report_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  // A line of the report; empty at its end.
  std::string line() {
    std::string text;
    for (char c = 0; read(report_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  // All that is left, and the exit status.
  std::string rest(int* status) {
    std::string text;
    for (char c = 0; read(report_, &c, 1) == 1;) text += c;
    waitpid(pid_, status, 0);
    pid_ = -1;
    return text;
  }

 private:
  pid_t pid_ = -1;
  int report_ = -1;
};

std::string run_children(const char* what, int ranks, const std::vector<Variables>& environments) {
  const fcclUniqueId id = new_id();
  std::vector<std::unique_ptr<Child>> children;
  for (int r = 0; r < ranks; ++r)
    children.push_back(
        std::make_unique<Child>(what, r, ranks, id, environments[static_cast<size_t>(r)]));
  std::string wrong;
  for (int r = 0; r < ranks; ++r) {
    int status = 0;
    const std::string text = children[static_cast<size_t>(r)]->rest(&status);
    if (status != 0)
      wrong += "process " + std::to_string(r) + ": status " + std::to_string(status) + ": " + text +
               "; ";
    else
      std::printf("%s", text.c_str());
  }
  return wrong;
}

// ---------------------------------------------------------------- the children

int visible_device(int rank) {
  return rank % device_count();
}

std::string child_exact(AbiRank& rank, int calls, int64_t most_elements) {
  auto mine = on_rank(random_jobs(calls, 1234, rank.ranks, most_elements), rank.rank);
  for (int round = 0; round < 3; ++round) {
    for (const RankJob& job : mine) ABI_EXPECT_OK(job.issue(rank, rank.stream));
    ABI_EXPECT_OK(rank.wait(rank.stream, kPatienceMs));
    ABI_EXPECT_OK(check_all(mine));
  }
  return "";
}

// Calls until the peer is gone, then a communicator of two ranks in this process alone.
std::string child_survives(AbiRank& rank) {
  auto mine = on_rank(random_jobs(4, 55, rank.ranks, 100000), rank.rank);
  std::printf("running\n");
  std::fflush(stdout);
  fcclResult_t code = fcclSuccess;
  for (const int64_t end = now_ms() + 15000; code == fcclSuccess && now_ms() < end;) {
    for (const RankJob& job : mine) static_cast<void>(job.issue(rank, rank.stream));
    ABI_EXPECT_OK(rank.wait(rank.stream, 5000));
    FCCL_EXPECT_OK(fcclCommGetAsyncError(rank.comm, &code), rank.comm);
  }
  std::printf("told %lld code %d: %s\n",
              static_cast<long long>(now_ms()),
              code,
              fcclGetLastError(rank.comm));
  std::fflush(stdout);
  FCCL_EXPECT_OK(fcclCommDestroy(rank.comm), nullptr);
  rank.comm = nullptr;
  const FusedJobs jobs = random_jobs(4, 56, 2, 100000);
  return abi_threads(abi_options(2), [&](AbiRank& fresh) -> std::string {
    auto again = on_rank(jobs, fresh.rank);
    fresh.meet();
    for (const RankJob& job : again) ABI_EXPECT_OK(job.issue(fresh, fresh.stream));
    ABI_EXPECT_OK(fresh.wait(fresh.stream, 5000));
    ABI_EXPECT_OK(check_all(again));
    fresh.meet();
    return "";
  });
}

}  // namespace

int abi_child(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string what = argv[2];
  const int r = std::atoi(argv[3]), ranks = std::atoi(argv[4]);
  fcclUniqueId id;
  if (read(0, &id, sizeof id) != static_cast<ssize_t>(sizeof id)) return 2;
  AbiRank rank(r, ranks, visible_device(r));
  fcclConfig config = abi_options(ranks).config;
  config.shared_device = ranks > 2 ? 1 : 0;
  std::string wrong = rank.init(id, config);
  if (wrong.empty()) {
    if (what == "exact") wrong = child_exact(rank, 10, 300000);
    if (what == "share") wrong = child_exact(rank, 2, 5000);
    if (what == "speed") wrong = print_speed(rank, "processes");
    if (what == "survive") wrong = child_survives(rank);
  }
  const fcclResult_t destroyed = fcclCommDestroy(rank.comm);
  if (wrong.empty()) wrong = error_text(destroyed, "fcclCommDestroy");
  if (!wrong.empty()) std::printf("%s\n", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

// ---------------------------------------------------------------- the parent

std::string abi_processes_exact(int ranks, bool hide_other_gpus) {
  const int devices = devices_to_use();
  std::vector<Variables> environments(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks && hide_other_gpus; ++r)
    environments[static_cast<size_t>(r)] = {{"CUDA_VISIBLE_DEVICES", std::to_string(r % devices)}};
  return run_children("exact", ranks, environments);
}

std::string abi_processes_share() {
  return run_children("share", 4, std::vector<Variables>(4));
}

std::string abi_process_speed() {
  return run_children("speed", 2, std::vector<Variables>(2));
}

std::string abi_process_killed() {
  const fcclUniqueId id = new_id();
  Child survivor("survive", 0, 2, id, {}), victim("survive", 1, 2, id, {});
  const std::string first = survivor.line(), second = victim.line();
  if (first != "running" || second != "running")
    return "the ranks do not run: " + first + " / " + second;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const int64_t killed = now_ms();
  victim.kill();
  const std::string told = survivor.line();
  long long when = 0;
  int code = 0;
  if (std::sscanf(told.c_str(), "told %lld code %d", &when, &code) != 2)
    return "the survivor says: " + told;
  std::printf(
      "  %lld ms after the kill: %s\n", when - static_cast<long long>(killed), told.c_str());
  int status = 0;
  const std::string rest = survivor.rest(&status);
  if (status != 0) return "the survivor's next communicator: " + rest;
  if (code != fcclRemoteError || told.find("rank 1") == std::string::npos)
    return "wrong error: " + told;
  if (when - killed > 1500) return "the death was told late";
  return "";
}

}  // namespace fccl::test
