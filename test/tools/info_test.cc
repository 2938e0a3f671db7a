// fccl_info as a program: what it prints can be read by programs, names what is wrong, and follows
// FCCL_TOPO_FILE.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/catch.h"

namespace {

struct Outcome {
  int status = -1;
  std::string output;
};

const std::string kProgram = FCCL_TEST_BUILD "/bin/fccl_info";

bool built() {
  return ::access(kProgram.c_str(), X_OK) == 0;
}

// `before` are variables for the environment.
Outcome run(const std::string& before, const std::string& arguments) {
  Outcome outcome;
  const std::string line = before + ' ' + kProgram + ' ' + arguments + " 2>&1";
  FILE* stream = ::popen(line.c_str(), "r");
  REQUIRE(stream != nullptr);
  char buffer[4096];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, stream)) > 0;) {
    outcome.output.append(buffer, got);
  }
  const int status = ::pclose(stream);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

bool has(const Outcome& outcome, const std::string& text) {
  return outcome.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("info_json_holds_every_part") {
  if (!built()) return;
  const Outcome outcome = run("FCCL_SPIN_US=12", "--json -b -m -e --plan 16,4096,bf16,2");
  INFO(outcome.output);
  REQUIRE(outcome.status == 0);
  const auto all = nlohmann::json::parse(outcome.output, nullptr, false);
  REQUIRE(all.is_object());
  CHECK(all["backends"].size() == 3);
  CHECK(all["backends"][0]["name"] == "cpu");
  CHECK(all["backends"][0]["usable"] == true);
  CHECK(all["machine"]["cpus"].get<int>() >= 1);
  CHECK(all["variables"].size() > 20);
  for (const auto& row : all["variables"]) {
    CAPTURE(row.dump());
    CHECK_FALSE(row["doc"].get<std::string>().empty());
    const bool ours = row["name"] == "FCCL_SPIN_US";
    if (ours) CHECK(row["value"] == "12");
    if (ours) CHECK(row["source"] == "environment");
  }
  REQUIRE(all["plans"].size() == 1);
  CHECK(all["plans"][0]["supported"] == true);
  CHECK_FALSE(all["plans"][0]["algorithm"].get<std::string>().empty());
}

TEST_CASE("info_names_misspelled_variables_and_illegal_values") {
  if (!built()) return;
  const Outcome misspelled = run("FCCL_CHEKC=1", "-e");
  CHECK(misspelled.status == 0);
  CHECK(has(misspelled, "FCCL_CHEKC is set, but fccl has no such variable"));
  const Outcome illegal = run("FCCL_CHECK=3", "");
  INFO(illegal.output);
  CHECK(illegal.status == 1);
  CHECK(has(illegal, "FCCL_CHECK=3 is not legal; allowed: 0 or 1"));
  CHECK_FALSE(has(illegal, "FCCL_CHECK is set, but"));
}

TEST_CASE("info_draws_the_machine_of_a_topology_file") {
  if (!built()) return;
  const std::string file =
      "FCCL_TOPO_FILE=" FCCL_TEST_SOURCE "/test/topology/data/nvlink_mesh_switch_8gpu.xml";
  const Outcome outcome = run(file, "-m");
  INFO(outcome.output);
  CHECK(outcome.status == 0);
  CHECK(has(outcome, "|   |-- gpu 0000:11:00.0, GPU 0, 4 links, 450 GB/s"));
  CHECK(has(outcome, "`-- device switch 0000:09:00.0, 8 links, 900 GB/s"));
  const Outcome absent = run("FCCL_TOPO_FILE=/no/such/file.xml", "-m");
  CHECK(absent.status == 1);
  CHECK(has(absent, "FCCL_TOPO_FILE: cannot open /no/such/file.xml"));
}

TEST_CASE("info_log_goes_where_the_environment_says") {
  if (!built()) return;
  const std::string silent = run("", "-m").output;
  CHECK(silent.find("fccl INFO") == std::string::npos);

  const Outcome loud = run("FCCL_DEBUG=INFO", "-m");
  CHECK(has(loud, "[-] fccl INFO topology machine by "));
  CHECK(has(loud, silent));
  CHECK_FALSE(has(run("FCCL_DEBUG=INFO FCCL_DEBUG_SUBSYS=^topology", "-m"), "machine by"));
  CHECK_FALSE(has(run("FCCL_DEBUG=WARN", "-m"), "machine by"));

  char folder[] = "/tmp/fccl_info_test_XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string file = std::string("FCCL_DEBUG=INFO FCCL_DEBUG_FILE=") + folder;
  CHECK(run(file + "/log.%h.%p", "-m").output == silent);
  CHECK(std::system((std::string("grep -q 'machine by' ") + folder + "/log.*").c_str()) == 0);
  REQUIRE(std::system((std::string("rm -r ") + folder).c_str()) == 0);

  // The folder is gone: one warning, nothing else.
  const Outcome lost = run(file + "/log", "-m");
  CHECK(has(lost, "FCCL_DEBUG_FILE: cannot open"));
  CHECK(std::count(lost.output.begin(), lost.output.end(), '\n') ==
        std::count(silent.begin(), silent.end(), '\n') + 1);
}

TEST_CASE("info_usage") {
  if (!built()) return;
  CHECK(run("", "--help").status == 0);
  for (const char* bad :
       {"--plan 1,2,f64,2", "--plan 1,2", "--plan 1,2,f32,2x", "--what", "extra"}) {
    CAPTURE(bad);
    CHECK(run("", bad).status == 2);
  }
  const Outcome ranks = run("", "--plan 1,4096,f32,99");
  CHECK(ranks.status == 0);
  CHECK(has(ranks, "not supported: nranks is 99; allowed: 1 to 16"));
}

TEST_CASE("info_markdown_has_one_row_for_each_variable") {
  if (!built()) return;
  const Outcome outcome = run("", "--markdown");
  CHECK(outcome.status == 0);
  const auto rows = std::count(outcome.output.begin(), outcome.output.end(), '\n') - 2;
  const auto all = nlohmann::json::parse(run("", "--json -e").output, nullptr, false);
  CHECK(rows == static_cast<long>(all["variables"].size()));
}
