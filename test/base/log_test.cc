// The log says nothing unless asked, and then one whole line per event where it was asked for.
#include "base/log.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/config.h"
#include "harness/catch.h"

using namespace fccl;

namespace {

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A folder that goes away, and the log as it was.
struct Scene {
  std::string folder;
  Scene() {
    char name[] = "/tmp/fccl_log_test_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder = name;
  }
  ~Scene() {
    set_log_callback(nullptr, nullptr);
    configure_log(Config());
    REQUIRE(std::system(("rm -rf " + folder).c_str()) == 0);
  }
};

Config asking(const std::string& debug, const std::string& file = "", const std::string& sub = "") {
  Config config;
  config.debug = debug;
  config.debug_file = file;
  config.debug_subsys = sub;
  return config;
}

// What `body` writes to descriptors 1 and 2.
template <class Body>
std::string output_of(const std::string& folder, Body body) {
  const std::string path = folder + "/output";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  REQUIRE(file >= 0);
  std::fflush(nullptr);
  const int out = ::dup(1), err = ::dup(2);
  ::dup2(file, 1);
  ::dup2(file, 2);
  body();
  std::fflush(nullptr);
  ::dup2(out, 1);
  ::dup2(err, 2);
  ::close(out);
  ::close(err);
  ::close(file);
  return slurp(path);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What follows "host:pid:tid ", which must be there and name this process.
std::string after_head(const std::string& line) {
  char host[64] = {};
  int pid = 0, used = 0;
  long tid = 0;
  if (std::sscanf(line.c_str(), "%63[^: ]:%d:%ld %n", host, &pid, &tid, &used) != 3) return "";
  return pid == ::getpid() && tid > 0 ? line.substr(static_cast<size_t>(used)) : "";
}

struct Seen {
  std::vector<std::string> lines;
  std::vector<int> levels;
};
void remember(void* context, int32_t level, const char* line) {
  static_cast<Seen*>(context)->lines.emplace_back(line);
  static_cast<Seen*>(context)->levels.push_back(level);
}

}  // namespace

TEST_CASE("log_is_silent_by_default") {
  Scene scene;
  const std::string output = output_of(scene.folder, [] {
    configure_log(asking(""));
    FCCL_LOG(Warn, kLogInit, "not asked for");
    FCCL_LOG(Version, kLogInit, "not asked for");
  });
  CHECK(output.empty());
  CHECK_FALSE(log_enabled(LogLevel::Warn, kLogInit));
}

TEST_CASE("log_line_has_host_process_thread_rank_level_and_subsystem") {
  Scene scene;
  const std::string output = output_of(scene.folder, [] {
    configure_log(asking("INFO"));
    FCCL_LOG(Info, kLogMemory, "window of %d bytes", 42);
    const LogRank rank(3);
    FCCL_LOG(Warn, kLogHealth, "peer\n%s", "left");
  });
  const std::vector<std::string> lines = lines_of(output);
  REQUIRE(lines.size() == 2);
  CHECK(after_head(lines[0]) == "[-] fccl INFO memory window of 42 bytes");
  CHECK(after_head(lines[1]) == "[3] fccl WARN health peer left");
}

TEST_CASE("log_levels_and_subsystems_select") {
  Scene scene;
  configure_log(asking("WARN"));
  CHECK(log_enabled(LogLevel::Version, kLogInit));
  CHECK(log_enabled(LogLevel::Warn, kLogInit));
  CHECK_FALSE(log_enabled(LogLevel::Info, kLogInit));
  configure_log(asking("TRACE", "", "init,Memory"));
  CHECK(log_enabled(LogLevel::Trace, kLogInit));
  CHECK(log_enabled(LogLevel::Info, kLogMemory));
  CHECK_FALSE(log_enabled(LogLevel::Info, kLogSelect));
  CHECK(log_enabled(LogLevel::Warn, kLogSelect));
  configure_log(asking("INFO", "", "^bootstrap"));
  CHECK_FALSE(log_enabled(LogLevel::Info, kLogBootstrap));
  CHECK(log_enabled(LogLevel::Info, kLogInit));
  CHECK_FALSE(log_enabled(LogLevel::Trace, kLogInit));
}

TEST_CASE("log_subsystem_grammar") {
  CHECK(*parse_log_subsystems("") == kLogAll);
  CHECK(*parse_log_subsystems("ALL") == kLogAll);
  CHECK(*parse_log_subsystems("init,env") == (kLogInit | kLogEnv));
  CHECK(*parse_log_subsystems("^init,env") == (kLogAll & ~(kLogInit | kLogEnv)));
  for (const char* bad : {"^", ",", "init,", ",init", "init;env", "initial", "^^init", " init"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_log_subsystems(bad).ok());
  }
}

TEST_CASE("log_file_takes_all_lines_and_stderr_none") {
  Scene scene;
  char host[64] = {};
  REQUIRE(::gethostname(host, sizeof host - 1) == 0);
  const std::string output = output_of(scene.folder, [&] {
    configure_log(asking("INFO", scene.folder + "/%h.%p.%%.%x.log"));
    for (int i = 0; i < 10; ++i) FCCL_LOG(Info, kLogCall, "call %d", i);
  });
  CHECK(output.empty());
  const std::string text =
      slurp(scene.folder + "/" + host + "." + std::to_string(::getpid()) + ".%.%x.log");
  CHECK(std::count(text.begin(), text.end(), '\n') == 10);
  CHECK(text.find("call 9") != std::string::npos);
}

TEST_CASE("log_file_is_appended_so_that_processes_may_share_it") {
  Scene scene;
  const std::string path = scene.folder + "/shared.log";
  for (int i = 0; i < 2; ++i) {
    configure_log(asking("INFO", path));
    FCCL_LOG(Info, kLogCall, "turn %d", i);
  }
  const std::string text = slurp(path);
  CHECK(text.find("turn 0") != std::string::npos);
  CHECK(text.find("turn 1") != std::string::npos);
}

TEST_CASE("log_file_without_debug_is_not_made") {
  Scene scene;
  configure_log(asking("", scene.folder + "/none.log"));
  FCCL_LOG(Warn, kLogCall, "nobody asked");
  CHECK(::access((scene.folder + "/none.log").c_str(), F_OK) != 0);
}

TEST_CASE("log_file_that_cannot_be_opened_costs_one_warning") {
  Scene scene;
  const std::string path = scene.folder + "/missing/folder/log";
  const auto talk = [&](const char* debug) {
    configure_log(asking(debug, path));
    for (int i = 0; i < 5; ++i) FCCL_LOG(Warn, kLogCall, "line %d", i);
  };
  CHECK(output_of(scene.folder, [&] { talk(""); }).empty());
  const std::string output = output_of(scene.folder, [&] { talk("INFO"); });
  CHECK(std::count(output.begin(), output.end(), '\n') == 1);
  CHECK(output.find("FCCL_DEBUG_FILE: cannot open " + path) != std::string::npos);

  Seen seen;
  set_log_callback(remember, &seen);
  CHECK(output_of(scene.folder, [&] { talk("INFO"); }).empty());
  REQUIRE(seen.lines.size() == 6);
  CHECK(seen.lines[0].find("cannot open") != std::string::npos);
}

TEST_CASE("log_callback_alone_gets_warnings_and_nothing_is_printed") {
  Scene scene;
  Seen seen;
  const std::string output = output_of(scene.folder, [&] {
    configure_log(asking(""));
    set_log_callback(remember, &seen);
    FCCL_LOG(Warn, kLogInit, "one");
    FCCL_LOG(Info, kLogInit, "two");
    FCCL_LOG(Version, kLogInit, "three");
    set_log_callback(nullptr, nullptr);
    FCCL_LOG(Warn, kLogInit, "four");
  });
  CHECK(output.empty());
  REQUIRE(seen.lines.size() == 2);
  CHECK(seen.lines[0].find("fccl WARN init one") != std::string::npos);
  CHECK(seen.lines[0].find('\n') == std::string::npos);
  CHECK(seen.levels == std::vector<int>{2, 1});
}

TEST_CASE("log_callback_may_log_and_may_remove_itself") {
  Scene scene;
  static int calls;
  calls = 0;
  set_log_callback(
      [](void*, int32_t, const char*) {
        ++calls;
        FCCL_LOG(Warn, kLogInit, "from inside");
        set_log_callback(nullptr, nullptr);
      },
      nullptr);
  FCCL_LOG(Warn, kLogInit, "first");
  FCCL_LOG(Warn, kLogInit, "second");
  CHECK(calls == 1);
}

TEST_CASE("log_keeps_errno_and_cuts_long_lines") {
  Scene scene;
  Seen seen;
  set_log_callback(remember, &seen);
  errno = ENOTTY;
  FCCL_LOG(Warn, kLogInit, "%s", std::string(5000, 'x').c_str());
  CHECK(errno == ENOTTY);
  REQUIRE(seen.lines.size() == 1);
  CHECK(seen.lines[0].size() < 1024);
}

TEST_CASE("log_lines_of_threads_stay_whole") {
  Scene scene;
  const std::string path = scene.folder + "/threads.log";
  configure_log(asking("INFO", path));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([rank] {
      const LogRank shown(rank);
      for (int i = 0; i < 50; ++i) FCCL_LOG(Info, kLogCall, "begin %d end", i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = lines_of(slurp(path));
  CHECK(lines.size() == 200);
  for (const std::string& line : lines) {
    int rank = -1, call = -1, used = 0;
    const std::string rest = after_head(line);
    std::sscanf(rest.c_str(), "[%d] fccl INFO call begin %d end%n", &rank, &call, &used);
    CAPTURE(line);
    CHECK(used == static_cast<int>(rest.size()));
  }
}

TEST_CASE("log_is_silent_in_a_forked_child") {
  Scene scene;
  const std::string path = scene.folder + "/fork.log";
  configure_log(asking("INFO", path));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    FCCL_LOG(Warn, kLogCall, "from the child");
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  FCCL_LOG(Warn, kLogCall, "from the parent");
  CHECK(slurp(path).find("child") == std::string::npos);
  CHECK(slurp(path).find("parent") != std::string::npos);
}
