// Reports about packaging and ABI, by their number. (A05 is test/install, A08 and the symbol list
// of A01 are test/abi. A02 asks about engines, which are plugins and not part of this library.)
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/leftovers.h"
#include "harness/rank_process.h"
#include "reports/calls.h"

namespace fccl::test {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the test.
struct Folder {
  Folder() {
    char name[] = "/tmp/reports-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

std::string content(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// What the calls below say on descriptor 1 or 2 while this object lives goes to a file.
class Captured {
 public:
  Captured(int fd, const fs::path& file) : fd_(fd), saved_(dup(fd)) {
    const int to = open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    dup2(to, fd_);
    close(to);
  }
  ~Captured() {
    dup2(saved_, fd_);
    close(saved_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

 private:
  int fd_;
  int saved_;
};

std::string sum_once(fcclComm_t comm, int rank) {
  Matrix data = filled(TypeKind::F32, 1, 100, 1.0 + rank);
  const std::string error = sum_in_place(comm, data);
  return error.empty() ? first_difference(data, filled(TypeKind::F32, 1, 100, 3.0), "sum") : error;
}

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// One rank and one sum through a library that was opened by hand.
std::string use_library(void* library) {
  auto* const get_id = find<decltype(fcclGetUniqueId)>(library, "fcclGetUniqueId");
  auto* const init = find<decltype(fcclCommInitRankConfig)>(library, "fcclCommInitRankConfig");
  auto* const sum = find<decltype(fcclAllReduce)>(library, "fcclAllReduce");
  auto* const destroy = find<decltype(fcclCommDestroy)>(library, "fcclCommDestroy");
  if (get_id == nullptr || init == nullptr || sum == nullptr || destroy == nullptr)
    return "a function is missing";
  fcclUniqueId id{};
  if (get_id(&id) != fcclSuccess) return "no id";
  std::string errors[2];
  std::thread ranks[2];
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = std::thread([&, rank] {
      fcclConfig config = ranks_of(2).config;
      fcclComm_t comm = nullptr;
      float data[16];
      for (float& x : data) x = 1;
      if (init(&comm, 2, &id, rank, &config) != fcclSuccess) errors[rank] = "no communicator";
      if (comm != nullptr &&
          sum(data, data, 16, fcclFloat32, fcclSum, comm, nullptr) != fcclSuccess)
        errors[rank] = "no sum";
      if (errors[rank].empty() && data[15] != 2) errors[rank] = "a wrong sum";
      if (comm != nullptr) destroy(comm);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return errors[0] + errors[1];
}

}  // namespace

TEST_CASE("A01 two copies and a library with NCCL's names live in one process") {
  const fs::path built = fs::path(FCCL_TEST_BUILD) / "lib" / "libfccl.so";
  if (!fs::exists(built)) {
    WARN("libfccl.so is not built");
    return;
  }
  const Environment clean(Variables{});
  const Folder folder;
  for (const char* name : {"one.so", "two.so"})
    fs::copy_file(fs::canonical(built), folder.path / name);
  std::ofstream(folder.path / "fake.c") << "int ncclAllReduce(void) { return 77; }\nint "
                                           "ncclGetVersion(int* v) { return *v = 1, 0; }\n";
  const std::string compile = "cc -shared -fPIC -o " + (folder.path / "fake.so").string() + " " +
                              (folder.path / "fake.c").string();
  REQUIRE(std::system(compile.c_str()) == 0);
  void* const fake = dlopen((folder.path / "fake.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const global = dlopen((folder.path / "one.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const local = dlopen((folder.path / "two.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(fake != nullptr);
  REQUIRE(global != nullptr);
  REQUIRE(local != nullptr);
  CHECK(dlsym(global, "fcclAllReduce") != dlsym(local, "fcclAllReduce"));
  CHECK(use_library(global) == "");
  CHECK(use_library(local) == "");
  CHECK(find<int()>(fake, "ncclAllReduce")() == 77);
}

TEST_CASE("A03 CPU ranks need no driver and load none") {
  CHECK(as_threads(ranks_of(2), sum_once) == "");
  const std::string maps = content("/proc/self/maps");
  for (const char* library : {"libcuda", "libcudart", "libamdhip", "libnccl", "librccl"})
    CHECK(maps.find(library) == std::string::npos);
}

TEST_CASE("A04 structs of other versions, and one at the end of a page") {
  const Environment clean(Variables{});
  struct Newer {
    fcclConfig config = FCCL_CONFIG_INITIALIZER;
    char tail[64] = {};
  } newer;
  newer.config.size = sizeof newer;
  int64_t bytes = 0;
  CHECK(fcclWorkspaceBytes(2, &newer.config, &bytes) == fcclSuccess);
  newer.tail[40] = 1;
  CHECK(fcclWorkspaceBytes(2, &newer.config, &bytes) == fcclInvalidArgument);
  CHECK(std::string(fcclGetLastError(nullptr))
            .find("offset " + std::to_string(sizeof(fcclConfig) + 40)) != std::string::npos);
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  config.size = 0;
  CHECK(fcclWorkspaceBytes(2, &config, &bytes) == fcclInvalidArgument);
  config = FCCL_CONFIG_INITIALIZER;
  config.magic ^= 1;
  CHECK(fcclWorkspaceBytes(2, &config, &bytes) == fcclInvalidArgument);
  // No byte behind the struct is read.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const pages = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(mprotect(pages + page, page, PROT_NONE) == 0);
  const fcclConfig whole = FCCL_CONFIG_INITIALIZER;
  const fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
  auto* const last_config = reinterpret_cast<fcclConfig*>(pages + page - sizeof whole);
  std::memcpy(static_cast<void*>(last_config), &whole, sizeof whole);
  CHECK(fcclWorkspaceBytes(2, last_config, &bytes) == fcclSuccess);
  auto* const last_args = reinterpret_cast<fcclFusedArgs*>(pages + page - sizeof args);
  std::memcpy(static_cast<void*>(last_args), &args, sizeof args);
  fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
  CHECK(fcclQuerySupport(2, nullptr, last_args, &info) ==
        fcclInvalidArgument);  // hidden is 0: it was read
  munmap(pages, 2 * page);
}

TEST_CASE("A06 header and library agree about the version") {
  int version = 0;
  REQUIRE(fcclGetVersion(&version) == fcclSuccess);
  CHECK(version == FCCL_VERSION_CODE);
  const fs::path lib = fs::path(FCCL_TEST_BUILD) / "lib";
  if (fs::exists(lib / "libfccl.so")) CHECK(fs::exists(lib / "libfccl.so.0"));
}

// A fresh process, since a log is opened once: calls with descriptors 1 and 2 going to files.
static const Scenario captured_scenario("captured calls", [](ProcessRank& self) -> std::string {
  const fs::path folder = self.parameter();
  const Captured out(1, folder / "out"), err(2, folder / "err");
  RanksOptions options = ranks_of(2);
  for (const char* name : {"FCCL_DEBUG", "FCCL_DEBUG_FILE"})
    if (const char* value = std::getenv(name)) options.environment.emplace_back(name, value);
  return as_threads(options, sum_once);
});

TEST_CASE("A07 nothing is printed; the log goes to its file") {
  const Folder folder;
  const auto run = [&](const Variables& variables) {
    return as_processes("captured calls", ranks_of(1, variables), folder.path.string());
  };
  CHECK(run({}) == "");
  CHECK(content(folder.path / "out") + content(folder.path / "err") == "");
  const fs::path log = folder.path / "log";
  CHECK(run({{"FCCL_DEBUG", "INFO"}, {"FCCL_DEBUG_FILE", log.string()}}) == "");
  CHECK(content(folder.path / "out") + content(folder.path / "err") == "");
  CHECK(content(log).size() > 0);
  // A log that cannot be opened costs one warning and no more.
  CHECK(run({{"FCCL_DEBUG", "INFO"},
             {"FCCL_DEBUG_FILE", (folder.path / "no" / "such" / "log").string()}}) == "");
  CHECK(content(folder.path / "out") == "");
  const std::string warning = content(folder.path / "err");
  CHECK(std::count(warning.begin(), warning.end(), '\n') == 1);
  CHECK(warning.find("FCCL_DEBUG_FILE") != std::string::npos);
}

// Runs in the forked child: 0 if every call answered InvalidUsage in time.
static int child_of_fork(fcclComm_t comm) {
  const int64_t start = now_ms();
  float data[16] = {};
  int count = 0;
  fcclResult_t async = fcclSuccess;
  if (fcclAllReduce(data, data, 16, fcclFloat32, fcclSum, comm, nullptr) != fcclInvalidUsage)
    return 1;
  if (fcclCommFinalize(comm) != fcclInvalidUsage) return 2;
  static_cast<void>(fcclCommGetAsyncError(comm, &async));
  static_cast<void>(fcclCommCount(comm, &count));
  return now_ms() - start < bound_ms(100) ? 0 : 3;
}

TEST_CASE("A09 a forked child gets InvalidUsage and harms nothing of its parent") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int rank) -> std::string {
          std::string error = sum_once(comm, rank);
          if (rank == 0 && error.empty()) {
            const pid_t child = fork();
            if (child == 0) _exit(child_of_fork(comm));
            int status = 0;
            if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
              error = "the child ended with " + std::to_string(status);
          }
          for (int call = 0; call < 100 && error.empty(); ++call) error = sum_once(comm, rank);
          return error;
        }) == "");
}

}  // namespace fccl::test
