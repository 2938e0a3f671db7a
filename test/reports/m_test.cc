// Reports about IPC and memory, by their number. (M02 is the fault walk of test/comm; M01, M06,
// M08, M09 and M17 need a GPU, M04 and M05 a peer path that can be taken away.)
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/inits.h"
#include "harness/leftovers.h"
#include "harness/rank_process.h"
#include "reports/calls.h"

namespace fccl::test {
namespace {

std::string sum_once(fcclComm_t comm, int ranks) {
  Matrix data = filled(TypeKind::F32, 1, 100, 1.0);
  const std::string error = sum_in_place(comm, data);
  return error.empty() ? first_difference(data, filled(TypeKind::F32, 1, 100, ranks), "sum")
                       : error;
}

// Joins, calls, leaves. Rank 1 does what the parameter says before.
const Scenario joins_scenario("joins and calls", [](ProcessRank& self) -> std::string {
  if (self.parameter() == "no memory files" && self.rank() == 1) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit little{1 << 16, 1 << 16};
    if (setrlimit(RLIMIT_FSIZE, &little) != 0) return "setrlimit";
  }
  fcclComm_t comm = nullptr;
  const fcclResult_t joined = self.init(&comm);
  self.tell("joined", joined, joined == fcclSuccess ? "" : fcclGetLastError(nullptr));
  if (comm == nullptr) return "";
  std::string error;
  for (int call = 0; call < 20 && error.empty(); ++call) error = sum_once(comm, self.ranks());
  fcclCommDestroy(comm);
  return error;
});

std::vector<Outcome> joined_of(std::vector<RankProcess>& ranks) {
  std::vector<Outcome> outcomes;
  for (RankProcess& rank : ranks) {
    const auto joined = rank.wait_for("joined", bound_ms(30000));
    REQUIRE(joined);
    outcomes.push_back({static_cast<fcclResult_t>(joined->code), joined->text, false});
    const auto end = rank.wait_for("end", bound_ms(30000));
    REQUIRE(end);
    CHECK(std::string(end->text) == "");
    CHECK(rank.join(bound_ms(10000)) == 0);
  }
  return outcomes;
}

// Calls with rows that no vector load fits, so that they take the slow way; logs to a file.
const Scenario slow_scenario("slow rows", [](ProcessRank& self) -> std::string {
  fcclComm_t comm = nullptr;
  FCCL_EXPECT_OK(self.init(&comm), nullptr);
  std::vector<uint16_t> x(301), weight(301), out(301);
  std::string error;
  const auto calls = [&](int count) {
    for (int call = 0; call < count && error.empty(); ++call)
      error = error_text(fcclAllReduceResidualRMSNorm(x.data() + 1,
                                                      nullptr,
                                                      weight.data() + 1,
                                                      nullptr,
                                                      out.data() + 1,
                                                      1,
                                                      300 - call % 2,
                                                      fcclBfloat16,
                                                      1e-6f,
                                                      comm,
                                                      nullptr),
                         "call",
                         comm);
  };
  const auto lines = [&] {
    std::ifstream log(self.parameter());
    return static_cast<int>(
        std::count(std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>(), '\n'));
  };
  calls(10);
  const int before = lines();
  calls(9990);
  const int more = lines() - before;
  fcclCommDestroy(comm);
  if (before == 0) return "the log is empty";
  return error.empty() && more != 0 ? std::to_string(more) + " lines more" : error;
});

}  // namespace

TEST_CASE("M03 a self-test that sees other data ends init on all ranks within 2 s") {
  for (int rank = 0; rank < 2; ++rank) {
    const Environment environment(
        Variables{{"FCCL_TEST_FAULT", "init.selftest:" + std::to_string(rank)}});
    const int64_t start = now_ms();
    const auto outcomes = init_all(2, ranks_of(2).config);
    CHECK(now_ms() - start < bound_ms(2000));
    CHECK(outcomes[0].code != fcclSuccess);
    CHECK(judged(outcomes, rank) == "");
  }
}

TEST_CASE("M07 two jobs on one host at the same time") {
  auto one = start_ranks("joins and calls", ranks_of(2));
  auto two = start_ranks("joins and calls", ranks_of(2));
  for (auto* job : {&one, &two})
    for (const Outcome& o : joined_of(*job)) CHECK(error_text(o.code, o.text.c_str()) == "");
}

TEST_CASE("M10 no room for a window is an error on all ranks that says how much was wanted") {
  auto ranks = start_ranks("joins and calls", ranks_of(2), "no memory files");
  const auto outcomes = joined_of(ranks);
  INFO(shown(outcomes));
  for (const Outcome& o : outcomes) {
    CHECK(o.code == fcclOutOfResources);
    CHECK(o.text.find("rank 1") != std::string::npos);
    CHECK(o.text.find("bytes") != std::string::npos);
  }
}

TEST_CASE("M12 rounds of init and destroy, and of register and deregister, keep nothing") {
  const auto round = [] {
    return as_threads(ranks_of(2), [](fcclComm_t comm, int) -> std::string {
      std::string error;
      for (int call = 0; call < 3 && error.empty(); ++call) error = sum_once(comm, 2);
      return error;
    });
  };
  for (int i = 0; i < 10; ++i) REQUIRE(round() == "");
  const Holdings before = own_holdings();
  for (int i = 0; i < 200; ++i) REQUIRE(round() == "");
  CHECK(text_of(settled_holdings(before)) == text_of(before));

  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int rank) -> std::string {
          void* memory = nullptr;
          FCCL_EXPECT_OK(fcclMemAlloc(comm, &memory, 4096), comm);
          Holdings after_10;
          for (int i = 0; i < 1000; ++i) {
            fcclWindow_t window = nullptr;
            FCCL_EXPECT_OK(fcclCommWindowRegister(comm, memory, 4096, &window), comm);
            FCCL_EXPECT_OK(fcclCommWindowDeregister(comm, window), comm);
            if (i == 10) after_10 = own_holdings();
          }
          // Both ranks are one process, and the other may not be out of its last call.
          const auto more = [&] {
            const Holdings now = own_holdings();
            return now.descriptors > after_10.descriptors || now.threads > after_10.threads ||
                   now.memory_files > after_10.memory_files;
          };
          const int64_t end = now_ms() + bound_ms(5000);
          while (rank == 0 && more() && now_ms() < end) usleep(1000);
          if (rank == 0 && more())
            return text_of(own_holdings()) + "; after 10 rounds: " + text_of(after_10);
          FCCL_EXPECT_OK(fcclCommFinalize(comm), comm);
          FCCL_EXPECT_OK(fcclMemFree(comm, memory), comm);
          return "";
        }) == "");
}

TEST_CASE("M13 an init that fails again and again answers at once and keeps nothing") {
  const Environment environment(Variables{{"FCCL_TEST_FAULT", "memory.map:0"}});
  init_all(2, ranks_of(2).config);
  const Holdings before = settled_holdings(own_holdings());
  for (int i = 0; i < 20; ++i) {
    const int64_t start = now_ms();
    const auto outcomes = init_all(2, ranks_of(2).config);
    CHECK(now_ms() - start < bound_ms(2000));
    CHECK(outcomes[0].code == fcclSystemError);
  }
  CHECK(text_of(settled_holdings(before)) == text_of(before));
}

TEST_CASE("M15 10000 calls the slow way add no line to the log") {
  char name[] = "/tmp/reports-test-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const std::string log = std::string(name) + "/log";
  CHECK(as_processes("slow rows",
                     ranks_of(1, {{"FCCL_DEBUG", "INFO"}, {"FCCL_DEBUG_FILE", log}}),
                     log) == "");
  std::filesystem::remove_all(name);
}

TEST_CASE("M16 one rank maps nothing of anybody; the query tells what init takes") {
  for (const int ranks : {1, 2, 4}) {
    CHECK(as_threads(ranks_of(ranks), [&](fcclComm_t comm, int) -> std::string {
            fcclMemoryInfo memory = FCCL_MEMORY_INFO_INITIALIZER;
            FCCL_EXPECT_OK(fcclCommMemory(comm, &memory), comm);
            const fcclConfig config = ranks_of(ranks).config;
            int64_t foretold = 0;
            FCCL_EXPECT_OK(fcclWorkspaceBytes(ranks, &config, &foretold), comm);
            if (memory.workspace_bytes != foretold) return "another size than was foretold";
            if (memory.mapped_bytes != memory.workspace_bytes * (ranks - 1))
              return std::to_string(memory.mapped_bytes) + " bytes are mapped";
            const Holdings before = own_holdings();
            std::string error = sum_once(comm, ranks);
            fcclMemoryInfo after = FCCL_MEMORY_INFO_INITIALIZER;
            FCCL_EXPECT_OK(fcclCommMemory(comm, &after), comm);
            if (error.empty() && (after.workspace_bytes != memory.workspace_bytes ||
                                  own_holdings().memory_files != before.memory_files))
              error = "a call took memory";
            return error;
          }) == "");
  }
}

TEST_CASE("M18 ranks that are threads share plain memory") {
  const size_t before = own_holdings().memory_files;
  CHECK(as_threads(ranks_of(2), [&](fcclComm_t comm, int) -> std::string {
          const size_t files = own_holdings().memory_files;
          // Each rank's own window may be a memfd; a peer's is not mapped a second time.
          if (files > before + 2)
            return std::to_string(files - before) + " memory files are mapped";
          return sum_once(comm, 2);
        }) == "");
}

}  // namespace fccl::test
