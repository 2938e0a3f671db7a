#include "fccl_perf/launcher.h"

#include <fccl/fccl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "fccl_perf/foreign.h"
#include "fccl_perf/runner.h"

namespace perf {
namespace {

constexpr double kGraceUs = 3e6;  // for the other ranks to say what they saw
constexpr useconds_t kPollUs = 5000;

// A private folder that goes with the run.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/fccl_perf.XXXXXX";
    if (mkdtemp(path) != nullptr) path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool has_peer(const Options& options, const char* name) {
  for (const std::string& peer : options.peers) {
    if (peer == name) return true;
  }
  return false;
}

// Runs the ranks of this process in threads of their own; gives the exit status of the process.
int run_threads(const std::vector<RankSetup>& setups) {
  std::vector<std::thread> threads;
  std::atomic<int> running = static_cast<int>(setups.size());
  std::atomic<int> worst = 0;
  std::atomic<bool> failed = false;
  for (const RankSetup& setup : setups) {
    threads.emplace_back([&setup, &running, &worst, &failed] {
      int status = 0;
      const Outcome outcome = run_rank(setup, status);
      if (!outcome.ok()) {
        status = 1;
        failed.store(true);
        if (setup.block != nullptr) {
          SharedBlock::Rank& mine = setup.block->rank[setup.rank];
          std::snprintf(mine.error, sizeof(mine.error), "%s", outcome.text().c_str());
        } else {
          std::fprintf(stderr, "fccl_perf: rank %d: %s\n", setup.rank, outcome.text().c_str());
        }
      }
      if (setup.block != nullptr)
        setup.block->rank[setup.rank].state.store(outcome.ok() ? 1 : 2, std::memory_order_release);
      if (status != 0) worst.store(status);
      running.fetch_sub(1);
      running.notify_all();
    });
  }
  // Blocks without polling while all is well, so that the ranks have the CPUs.
  for (int left = running.load(); left > 0 && !failed.load(); left = running.load())
    running.wait(left);
  for (double waited = 0; running.load() > 0 && waited < kGraceUs; waited += kPollUs)
    usleep(kPollUs);
  if (running.load() > 0) {
    std::fflush(nullptr);
    _exit(1);  // ranks still wait for the one that failed
  }
  for (std::thread& thread : threads) thread.join();
  return worst.load();
}

void report_failure(const SharedBlock& block) {
  int laggard = 0;
  for (int rank = 0; rank < block.ranks; ++rank) {
    const SharedBlock::Rank& one = block.rank[rank];
    if (one.state.load() == 2) std::fprintf(stderr, "fccl_perf: rank %d: %s\n", rank, one.error);
    if (one.started.load() < block.rank[laggard].started.load()) laggard = rank;
  }
  bool called = false;
  for (int rank = 0; rank < block.ranks; ++rank)
    called = called || block.rank[rank].started.load() > 0;
  if (!called) return;  // it failed before the first call: the texts say it all
  std::string ranks;
  for (int rank = 0; rank < block.ranks; ++rank) {
    const SharedBlock::Rank& one = block.rank[rank];
    ranks += fmt::format("{}{{\"rank\":{},\"last_started\":{},\"last_finished\":{}}}",
                         rank ? "," : "",
                         rank,
                         one.started.load(),
                         one.finished.load());
  }
  const bool behind =
      block.rank[laggard].started.load() < block.rank[(laggard + 1) % block.ranks].started.load();
  std::fprintf(
      stderr,
      "{\"schema\":\"fccl_perf.failure\",\"schema_version\":1,\"ranks\":[%s],\"laggard\":%s}\n",
      ranks.c_str(),
      behind ? std::to_string(laggard).c_str() : "null");
}

std::string ended_text(int process, int status) {
  if (WIFSIGNALED(status))
    return fmt::format("process {} was killed by signal {} ({})",
                       process,
                       WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("process {} ended with status {}", process, WEXITSTATUS(status));
}

// Waits for all children; after the first bad end the others get some seconds, then SIGKILL.
int watch(const std::vector<pid_t>& children, const SharedBlock& block, bool quiet) {
  std::vector<bool> gone(children.size(), false);
  std::size_t left = children.size();
  int worst = 0;
  bool failed = false;
  double waited = 0;
  while (left > 0) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, failed ? WNOHANG : 0);
    if (pid == 0) {
      waited += kPollUs;
      usleep(kPollUs);
      for (std::size_t i = 0; waited > kGraceUs && i < children.size(); ++i) {
        if (!gone[i]) kill(children[i], SIGKILL);
      }
      continue;
    }
    if (pid < 0) break;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (children[i] != pid) continue;
      gone[i] = true;
      --left;
      if (status == 0) continue;
      worst = std::max(worst, 1);
      const bool died = WIFSIGNALED(status) && !failed && !quiet;
      if (died)
        std::fprintf(stderr, "fccl_perf: %s\n", ended_text(static_cast<int>(i), status).c_str());
      failed = true;
    }
  }
  bool told = false;
  for (int rank = 0; rank < block.ranks; ++rank) told = told || block.rank[rank].state.load() != 1;
  if (worst != 0 && told && !quiet) report_failure(block);
  return worst;
}

int launch_own(const Options& options, const std::string& folder, bool quiet) {
  const int processes = std::max(1, options.processes);
  const int per_process = options.threads * options.gpus;
  const int ranks = processes * per_process;
  SharedBlock* block = SharedBlock::make(ranks);
  if (block == nullptr) {
    std::fprintf(stderr, "fccl_perf: no memory for the ranks' shared block\n");
    return 1;
  }
  std::fflush(nullptr);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = fork();
    if (child < 0) {
      std::fprintf(stderr, "fccl_perf: fork: %s\n", std::strerror(errno));
      for (const pid_t started : children) kill(started, SIGKILL);
      watch(children, *block, quiet);
      return 1;
    }
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    std::vector<RankSetup> setups;
    for (int i = 0; i < per_process; ++i) {
      const int rank = process * per_process + i;
      setups.push_back({&options, rank, ranks, rank, block, "", folder + "/"});
    }
    const int status = run_threads(setups);
    std::fflush(nullptr);
    _exit(status);
  }
  return watch(children, *block, quiet);
}

int launch_foreign(const Options& options, const Place& place) {
  const int per_process = options.threads * options.gpus;
  const int ranks = place.processes * per_process;
  if (ranks > kMostRanks) {
    std::fprintf(
        stderr,
        "fccl_perf: %s started %d processes, that makes %d ranks; at most %d are possible\n",
        place.launcher,
        place.processes,
        ranks,
        kMostRanks);
    return 2;
  }
  const std::string id_file = options.id_file.empty() ? place.default_id_file : options.id_file;
  std::vector<RankSetup> setups;
  for (int i = 0; i < per_process; ++i) {
    setups.push_back({&options,
                      place.process * per_process + i,
                      ranks,
                      place.local_process * per_process + i,
                      nullptr,
                      id_file,
                      id_file + "."});
  }
  return run_threads(setups);
}

// MPI must start the ranks itself: becomes mpirun of this program, with the same options.
int become_mpirun(const Options& options) {
  const int processes = std::max(1, options.processes);
  std::vector<std::string> words = {
      "mpirun", "-np", std::to_string(processes), "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  for (std::size_t i = 1; i < options.command_line.size(); ++i) {
    if (options.command_line[i] == "--np")
      ++i;
    else if (!options.command_line[i].starts_with("--np="))
      words.push_back(options.command_line[i]);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp("mpirun", arguments.data());
  std::fprintf(stderr, "fccl_perf: --vs mpi needs mpirun: %s\n", std::strerror(errno));
  return 1;
}

}  // namespace

int launch(const Options& options, bool quiet) {
  if (!options.algo.empty()) setenv("FCCL_ALGO", options.algo.c_str(), 1);
  const auto place = foreign_place();
  if (place && options.processes == 0) return launch_foreign(options, *place);
  if (has_peer(options, "mpi")) return become_mpirun(options);
  const Folder folder;
  return launch_own(options, folder.path(), quiet);
}

}  // namespace perf
