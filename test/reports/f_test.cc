// Reports that ask for features of the fused call, by their number.
#include "harness/generator.h"
#include "harness/leftovers.h"
#include "reports/calls.h"
#include "topology/facts.h"

namespace fccl::test {
namespace {

int32_t number_of(const char* algorithm) {
  static const std::pair<const char*, int32_t> numbers[] = {
      {"oneshot_lamport", fcclAlgoOneshotLamport},
      {"oneshot_ll", fcclAlgoOneshotLL},
      {"oneshot_flags", fcclAlgoOneshotFlags},
      {"twoshot_rows", fcclAlgoTwoshotRows},
      {"twoshot_cols", fcclAlgoTwoshotCols},
      {"twoshot_rows_lamport", fcclAlgoTwoshotRowsLamport},
      {"twoshot_cols_lamport", fcclAlgoTwoshotColsLamport}};
  for (const auto& [name, number] : numbers)
    if (std::string(name) == algorithm) return number;
  return -1;
}

Fused fused_of(int rank, int64_t tokens, int64_t hidden) {
  return {make_input(TypeKind::BF16, tokens, hidden, 4, rank),
          std::nullopt,
          make_weight(TypeKind::BF16, hidden, 4),
          1e-6f,
          {},
          {}};
}

}  // namespace

TEST_CASE("F01 a weight of 0 with offset 1 gives the normalised row") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int) -> std::string {
          Matrix x = filled(TypeKind::BF16, 2, 256, 1.0), out = x;
          const Matrix weight(TypeKind::BF16, 1, 256);
          fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
          args.tokens = 2;
          args.hidden = 256;
          args.datatype = fcclBfloat16;
          args.weight_offset = 1;
          args.eps = 1e-6f;
          args.input = x.row(0);
          args.weight = weight.row(0);
          args.norm_out.ptr = out.row(0);
          FCCL_EXPECT_OK(fcclAllReduceResidualRMSNormEx(&args, comm, nullptr), comm);
          return first_difference(out, filled(TypeKind::BF16, 2, 256, 1.0), "norm_out");
        }) == "");
}

TEST_CASE("F02 a quantised output is refused before anything is written") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int rank) -> std::string {
          Fused fused = fused_of(rank, 3, 128);
          std::vector<unsigned char> quantised(3 * 128, 0xC5);
          float scale = 1;
          Matrix out = filled(TypeKind::BF16, 3, 128, NAN);
          fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
          args.tokens = 3;
          args.hidden = 128;
          args.datatype = fcclBfloat16;
          args.input = fused.x.row(0);
          args.weight = fused.weight.row(0);
          args.norm_out.ptr = out.row(0);
          args.quant_out.ptr = quantised.data();
          args.quant_out.type = fcclFloat8e4m3;
          args.quant_out.scale = &scale;
          args.quant_out.scale_type = fcclFloat32;
          if (fcclAllReduceResidualRMSNormEx(&args, comm, nullptr) != fcclUnsupported)
            return "it was not refused";
          if (quantised != std::vector<unsigned char>(3 * 128, 0xC5))
            return "quant_out was written";
          fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
          FCCL_EXPECT_OK(fcclCommQuery(comm, &args, &info), comm);
          if (info.supported != 0 || info.reason[0] == 0) return "the query says something else";
          return first_difference(out, filled(TypeKind::BF16, 3, 128, NAN), "norm_out");
        }) == "");
}

TEST_CASE("F03 fused and plain calls take turns on one workspace") {
  CHECK(as_threads(ranks_of(3), [](fcclComm_t comm, int rank) -> std::string {
          FusedInputs in;
          for (int r = 0; r < 3; ++r) in.x.push_back(make_input(TypeKind::BF16, 9, 500, 4, r));
          in.weight = make_weight(TypeKind::BF16, 500, 4);
          const FusedOutputs want = fused_reference(in);
          fcclMemoryInfo before = FCCL_MEMORY_INFO_INITIALIZER,
                         after = FCCL_MEMORY_INFO_INITIALIZER;
          FCCL_EXPECT_OK(fcclCommMemory(comm, &before), comm);
          for (int round = 0; round < 50; ++round) {
            Fused fused = fused_of(rank, 9, 500);
            std::string error = fused.call(comm);
            if (error.empty()) error = first_difference(fused.norm_out, want.norm_out, "norm_out");
            Matrix sum = in.x[static_cast<size_t>(rank)];
            if (error.empty()) error = sum_in_place(comm, sum);
            if (error.empty()) error = first_difference(sum, want.sum, "sum");
            if (!error.empty()) return error;
          }
          FCCL_EXPECT_OK(fcclCommMemory(comm, &after), comm);
          return std::memcmp(&before, &after, sizeof before) == 0 ? "" : "the memory changed";
        }) == "");
}

TEST_CASE("F04 F06 P10 each path can be forced, gives the same bits, and is what ran") {
  FusedInputs in;
  for (int r = 0; r < 3; ++r) in.x.push_back(make_input(TypeKind::BF16, 12, 700, 4, r));
  in.weight = make_weight(TypeKind::BF16, 700, 4);
  const FusedOutputs want = fused_reference(in);
  for (const char* algorithm : kAllAlgorithms) {
    INFO(algorithm);
    CHECK(as_threads(ranks_of(3, {{"FCCL_ALGO", algorithm}}),
                     [&](fcclComm_t comm, int rank) -> std::string {
                       const fcclPlanInfo plan = plan_of(comm, 12, 700, fcclBfloat16);
                       if (plan.supported != 1 || plan.algorithm != number_of(algorithm))
                         return std::string("the query says ") + plan.reason;
                       Fused fused = fused_of(rank, 12, 700);
                       std::string error = fused.call(comm);
                       if (error.empty())
                         error = first_difference(fused.norm_out, want.norm_out, "norm_out");
                       fcclCommStats stats = FCCL_COMM_STATS_INITIALIZER;
                       FCCL_EXPECT_OK(fcclCommGetStats(comm, &stats), comm);
                       if (error.empty() && stats.by_algorithm[plan.algorithm] !=
                                                static_cast<uint64_t>(plan.launches))
                         error = "another path ran than the query named";
                       return error;
                     }) == "");
  }
}

TEST_CASE("F06 a forced path that cannot serve the shape says why") {
  CHECK(
      as_threads(
          ranks_of(2, {{"FCCL_ALGO", "oneshot_lamport"}}), [](fcclComm_t comm, int) -> std::string {
            Matrix x = filled(TypeKind::BF16, 4, 64, 1.0),
                   residual = filled(TypeKind::BF16, 2, 64, 1.0), out = x;
            fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
            args.tokens = 4;
            args.hidden = 64;
            args.datatype = fcclBfloat16;
            args.residual_layout = FCCL_RESIDUAL_ROW_SHARDED;
            args.input = x.row(0);
            args.residual = residual.row(0);
            args.weight = x.row(0);
            args.norm_out.ptr = out.row(0);
            fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
            FCCL_EXPECT_OK(fcclCommQuery(comm, &args, &info), comm);
            if (info.supported != 0 || std::string(info.reason).find("row") == std::string::npos)
              return std::string("the query: ") + info.reason;
            if (fcclAllReduceResidualRMSNormEx(&args, comm, nullptr) != fcclUnsupported)
              return "the call was not refused";
            return std::string(fcclGetLastError(comm)).find("oneshot_lamport") == std::string::npos
                       ? fcclGetLastError(comm)
                       : "";
          }) == "");
  // An unknown name is refused by init, and named.
  const std::string errors =
      as_threads(ranks_of(1, {{"FCCL_ALGO", "threeshot"}}), [](fcclComm_t, int) { return ""; });
  CHECK(errors.find("threeshot") != std::string::npos);
}

TEST_CASE("F05 support can be asked for before anything exists") {
  as_threads(ranks_of(2), [](fcclComm_t, int) { return ""; });  // what is made once per process
  const Environment environment(Variables{{"FCCL_BACKEND", "cpu"}});
  const Holdings before = own_holdings();
  std::vector<fcclPlanInfo> foretold;
  const std::pair<int64_t, int64_t> shapes[] = {
      {1, 4096}, {16, 4096}, {128, 4096}, {1000, 65}, {20000, 8192}, {0, 64}};
  for (const auto& [tokens, hidden] : shapes) {
    fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
    args.tokens = tokens;
    args.hidden = hidden;
    args.datatype = fcclBfloat16;
    foretold.push_back(FCCL_PLAN_INFO_INITIALIZER);
    REQUIRE(fcclQuerySupport(2, nullptr, &args, &foretold.back()) == fcclSuccess);
  }
  CHECK(text_of(own_holdings()) == text_of(before));
  CHECK(as_threads(ranks_of(2), [&](fcclComm_t comm, int) -> std::string {
          for (size_t i = 0; i < foretold.size(); ++i) {
            const fcclPlanInfo now = plan_of(comm, shapes[i].first, shapes[i].second, fcclBfloat16);
            if (now.supported != foretold[i].supported || now.algorithm != foretold[i].algorithm ||
                now.launches != foretold[i].launches ||
                now.capacity_bytes != foretold[i].capacity_bytes)
              return "the answer has changed for shape " + std::to_string(i);
          }
          int64_t bytes = 0;
          fcclMemoryInfo memory = FCCL_MEMORY_INFO_INITIALIZER;
          FCCL_EXPECT_OK(fcclWorkspaceBytes(2, nullptr, &bytes), comm);
          FCCL_EXPECT_OK(fcclCommMemory(comm, &memory), comm);
          const int64_t apart = bytes > memory.workspace_bytes ? bytes - memory.workspace_bytes
                                                               : memory.workspace_bytes - bytes;
          return apart <= memory.granule_bytes ? ""
                                               : "the workspace has another size than was foretold";
        }) == "");
}

TEST_CASE("F07 ranks on several hosts are one clique only if all share it") {
  const auto facts_of = [](uint32_t second_clique) {
    std::vector<RankFacts> all(4);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      RankFacts& facts = all[rank];
      facts.rank = static_cast<int32_t>(rank);
      facts.host_id = rank / 2 + 1;
      facts.process_token = rank + 1;
      facts.has_device = 1;
      facts.memory_kinds = kMemoryDeviceFabric;
      facts.device.fabric_cluster[0] = 7;
      facts.device.fabric_clique = rank < 2 ? 1 : second_clique;
    }
    return all;
  };
  CHECK(classify(facts_of(1), Between::Devices).one_clique);
  CHECK_FALSE(classify(facts_of(2), Between::Devices).one_clique);
}

}  // namespace fccl::test
