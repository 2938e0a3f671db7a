// Selection as a pure function: three machines give three different written plans, forced
// algorithms are obeyed or refused with a reason, sizes never overflow, and once two-shot wins it
// stays.
#include "select/plan.h"

#include <cstdlib>

#include "base/config.h"
#include "comm/settings.h"
#include "harness/catch.h"
#include "harness/cpu_facts.h"
#include "memory/workspace.h"
#include "select/algorithms.h"
#include "select/tuner_file.h"
#include "topology/detect.h"

using namespace fccl;

namespace {

Situation situation_of(const CommFacts& facts, BackendKind backend, uint64_t capacity = 0) {
  Situation s;
  s.backend = backend;
  s.facts = facts;
  s.layout = workspace_layout(backend, facts.ranks, capacity);
  s.costs = builtin_costs(backend, facts);
  return s;
}

Situation situation_of_file(const std::string& file, int ranks) {
  Config config;
  config.topo_file = std::string(FCCL_TEST_SOURCE) + "/test/topology/data/" + file;
  auto machine = detect_machine(config);
  REQUIRE(machine.ok());
  auto all = facts_from_machine(*machine, ranks);
  REQUIRE(all.ok());
  const CommFacts facts = classify(*all);
  return situation_of(facts, facts.of_devices ? BackendKind::Cuda : BackendKind::Cpu);
}

Situation cpu_ranks(int ranks, uint64_t cpus = 0xFFFF) {
  return situation_of(test::cpu_facts(ranks, cpus), BackendKind::Cpu);
}

Request fused(int64_t rows, int64_t hidden, TypeKind type = TypeKind::BF16) {
  Request r;
  r.rows = rows;
  r.hidden = hidden;
  r.type = type;
  return r;
}

std::string written_plan(const Situation& s) {
  std::string text;
  for (const int64_t rows : {1, 4, 16, 64, 256, 1024, 4096}) {
    const Plan plan = make_plan(fused(rows, 4096), s);
    REQUIRE(plan.supported);
    text += std::to_string(rows) + ":" + algorithm_name(plan.algo, plan.protocol) + "x" +
            std::to_string(plan.launches) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("select_three_machines_give_three_written_plans") {
  const std::string mesh = written_plan(situation_of_file("nvlink_mesh_switch_8gpu.xml", 8));
  const std::string islands = written_plan(situation_of_file("pci_islands_4gpu.xml", 4));
  const std::string sockets = written_plan(situation_of_file("two_sockets_no_gpu.xml", 4));
  INFO("mesh    " << mesh);
  INFO("islands " << islands);
  INFO("sockets " << sockets);
  CHECK(mesh != islands);
  CHECK(islands != sockets);
  CHECK(mesh != sockets);
  CHECK(mesh.find("1:oneshot_lamport") == 0);
  CHECK(sockets.find("lamport") == std::string::npos);  // CPU ranks take flags
}

TEST_CASE("select_once_two_shot_stays_two_shot") {
  for (const int ranks : {2, 4, 8, 16}) {
    const Situation s = cpu_ranks(ranks);
    bool twoshot = false;
    for (int64_t rows = 1; rows <= 65536; rows *= 2) {
      const Plan plan = make_plan(fused(rows, 4096), s);
      REQUIRE(plan.supported);
      const bool now = plan.algo != AlgoKind::Oneshot;
      CHECK((now || !twoshot));
      twoshot = now;
    }
    CHECK(twoshot);
  }
}

TEST_CASE("select_depends_on_bytes_not_on_tokens") {
  for (const int ranks : {2, 4, 8}) {
    const Situation s = cpu_ranks(ranks);
    const Plan wide = make_plan(fused(8, 8192), s);
    const Plan narrow = make_plan(fused(16, 4096), s);
    CHECK(wide.algo == narrow.algo);
    CHECK(wide.protocol == narrow.protocol);
  }
}

TEST_CASE("select_huge_tensors_are_cut_and_sizes_do_not_overflow") {
  const Situation s = cpu_ranks(8);
  const Plan plan = make_plan(fused(131072, 16384), s);
  REQUIRE(plan.supported);
  CHECK(plan.launches > 1);
  CHECK(plan.chunk_rows * 16384 * 2 <= static_cast<int64_t>(plan.capacity_bytes));
  CHECK(plan.wire_bytes > (uint64_t{1} << 32));
  int64_t rows = 0;
  for (int64_t i = 0; i < plan.launches; ++i) rows += plan.chunk_rows;
  CHECK(rows * (plan.algo == AlgoKind::TwoshotRows ? 8 : 1) >= 131072);
}

TEST_CASE("select_what_a_config_asks_room_for_runs_in_one_launch_by_every_path") {
  for (const int ranks : {2, 3, 4, 8})
    for (const int64_t tokens : {1, 2, 3, 5, 9, 64})
      for (const int64_t hidden : {64, 4096, 8191, 16384}) {
        fcclConfig config = FCCL_CONFIG_INITIALIZER;
        config.max_tokens = tokens;
        config.hidden = hidden;
        config.datatype = fcclBfloat16;
        auto settings = make_settings(config);
        REQUIRE(settings.ok());
        Situation s = cpu_ranks(ranks);
        s.layout = workspace_layout(BackendKind::Cpu, ranks, settings->capacity_bytes);
        for (const auto& [algo, protocol] : all_algorithms()) {
          if (protocol == ProtocolKind::LL) continue;  // for small messages; its room is fixed
          s.algo = algorithm_name(algo, protocol);
          const Plan plan = make_plan(fused(tokens, hidden), s);
          INFO(s.algo << ", " << ranks << " ranks, " << tokens << " x " << hidden << ": "
                      << plan.reason);
          REQUIRE(plan.supported);
          CHECK(plan.launches == 1);
        }
      }
}

TEST_CASE("select_a_row_that_fits_nowhere_is_out_of_resources") {
  const Plan plan = make_plan(fused(1, int64_t{1} << 29), cpu_ranks(2));
  CHECK_FALSE(plan.supported);
  CHECK(plan.code == Code::OutOfResources);
  CHECK(plan.reason.find("FCCL_WORKSPACE_BYTES") != std::string::npos);
}

TEST_CASE("select_forced_algorithms_are_obeyed_by_size_or_refused") {
  Situation s = cpu_ranks(2);
  s.algo = "oneshot_lamport:8K,twoshot_rows";
  CHECK(make_plan(fused(1, 4096), s).protocol == ProtocolKind::Lamport);
  CHECK(make_plan(fused(2, 4096), s).algo == AlgoKind::TwoshotRows);
  Request sharded = fused(1, 4096);
  sharded.row_sharded = true;
  const Plan refused = make_plan(sharded, s);
  CHECK_FALSE(refused.supported);
  CHECK(refused.code == Code::Unsupported);
  CHECK(refused.reason.find("row ownership") != std::string::npos);
  CHECK(check_algo_setting("").ok());
  CHECK_FALSE(check_algo_setting("nonsense").ok());
  CHECK_FALSE(check_algo_setting("oneshot_ll:12Q").ok());
  CHECK(check_algo_setting("nonsense").text().find("twoshot_cols") != std::string::npos);
}

TEST_CASE("select_a_sharded_residual_and_a_wanted_sum_find_what_serves_them") {
  const Situation s = cpu_ranks(4);
  Request sharded = fused(64, 4096);
  sharded.row_sharded = true;
  CHECK(make_plan(sharded, s).algo == AlgoKind::TwoshotRows);
  Request sum = fused(4096, 4096);
  sum.wants_sum = true;
  CHECK(make_plan(sum, s).algo == AlgoKind::Oneshot);
}

TEST_CASE("select_zero_rows_launch_nothing") {
  const Plan plan = make_plan(fused(0, 4096), cpu_ranks(4));
  CHECK(plan.supported);
  CHECK(plan.launches == 0);
}

TEST_CASE("select_a_tuner_file_changes_the_choice_and_bad_ones_are_named") {
  auto costs =
      parse_tuner_text("fccl-tuner 1\n# all\noneshot_ll 2 0.1 0 0\ntwoshot_rows 2 9 1 1\n");
  REQUIRE(costs.ok());
  Situation s = cpu_ranks(2);
  s.costs = *costs;
  CHECK(make_plan(fused(1, 4096), s).protocol == ProtocolKind::LL);
  CHECK(make_plan(fused(1, 4096), s).max_blocks == 0);
  costs = parse_tuner_text("fccl-tuner 1\noneshot_ll 2 0.1 0 0 24\n");
  REQUIRE(costs.ok());
  s.costs = *costs;
  CHECK(make_plan(fused(1, 4096), s).max_blocks == 24);
  for (const char* bad : {"",
                          "fccl-tuner 2\n",
                          "fccl-tuner 1\n",
                          "fccl-tuner 1\nnothing 2 1 1 1\n",
                          "fccl-tuner 1\noneshot_ll 2 nan 1 1\n",
                          "fccl-tuner 1\noneshot_ll 2 1 1\n",
                          "fccl-tuner 1\noneshot_ll 99 1 1 1\n",
                          "fccl-tuner 1\noneshot_ll 2 1 1 1 -1\n",
                          "fccl-tuner 1\noneshot_ll 2 1 1 1 few\n",
                          "fccl-tuner 1\noneshot_ll 2 1 1 1 2000\n",
                          "fccl-tuner 1\noneshot_ll 2 1 1 1 1 1\n"})
    CHECK_FALSE(parse_tuner_text(bad).ok());
}

TEST_CASE("select_a_tuner_file_has_measured_the_roll_call_itself") {
  Situation s = cpu_ranks(8, 3);
  auto costs = parse_tuner_text("fccl-tuner 1\noneshot_flags 2 9 0 0\ntwoshot_rows 2 10 0 0\n");
  REQUIRE(costs.ok());
  s.costs = *costs;
  CHECK(make_plan(fused(1, 4096), s).algo == AlgoKind::Oneshot);
}

TEST_CASE("select_a_single_row_of_ranks_that_share_cpus_is_reduced_by_the_last_to_arrive") {
  constexpr uint64_t kTwoCpus = 3;
  for (const int ranks : {3, 4, 8, 16}) {
    INFO(ranks << " ranks");
    const Plan crowded = make_plan(fused(1, 4096), cpu_ranks(ranks, kTwoCpus));
    CHECK(crowded.algo == AlgoKind::TwoshotRows);
    CHECK(crowded.protocol == ProtocolKind::Flags);
    CHECK(crowded.last_reduces);
    CHECK(crowded.launches == 1);
    CHECK_FALSE(make_plan(fused(2, 4096), cpu_ranks(ranks, kTwoCpus)).last_reduces);
    Situation forced = cpu_ranks(ranks, kTwoCpus);
    forced.algo = "twoshot_rows_lamport";
    CHECK_FALSE(make_plan(fused(1, 4096), forced).last_reduces);
    Request sharded = fused(1, 4096);
    sharded.row_sharded = true;
    CHECK_FALSE(make_plan(sharded, cpu_ranks(ranks, kTwoCpus)).last_reduces);
    Situation roomy = cpu_ranks(ranks);
    roomy.algo = "twoshot_rows";
    CHECK_FALSE(make_plan(fused(1, 4096), roomy).last_reduces);
  }
}
