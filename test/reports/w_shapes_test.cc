// Reports of wrong results, by their number: few tokens, none, and far too many.
#include <atomic>

#include "harness/generator.h"
#include "reports/calls.h"

namespace fccl::test {

TEST_CASE("W16 two-shot serves fewer tokens than ranks and counts that do not divide") {
  for (const char* algorithm :
       {"twoshot_rows", "twoshot_rows_lamport", "twoshot_cols", "twoshot_cols_lamport"}) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      std::vector<FusedInputs> inputs;
      std::vector<FusedOutputs> want;
      for (int64_t tokens = 1; tokens <= ranks + 1; ++tokens) {
        FusedInputs in;
        for (int rank = 0; rank < ranks; ++rank)
          in.x.push_back(
              make_input(TypeKind::BF16, tokens, 2880, static_cast<uint64_t>(tokens), rank));
        in.weight = make_weight(TypeKind::BF16, 2880, 1);
        want.push_back(fused_reference(in));
        inputs.push_back(std::move(in));
      }
      INFO(algorithm << " ranks " << ranks);
      CHECK(as_threads(ranks_of(ranks, {{"FCCL_ALGO", algorithm}}),
                       [&](fcclComm_t comm, int rank) -> std::string {
                         for (size_t i = 0; i < inputs.size(); ++i) {
                           Fused fused{inputs[i].x[static_cast<size_t>(rank)],
                                       std::nullopt,
                                       inputs[i].weight,
                                       inputs[i].eps,
                                       {},
                                       {}};
                           std::string error = fused.call(comm);
                           if (error.empty())
                             error = first_difference(
                                 fused.residual_out, want[i].residual_out, "residual_out");
                           if (error.empty())
                             error = first_difference(fused.norm_out, want[i].norm_out, "norm_out");
                           if (!error.empty())
                             return error + " at " + std::to_string(i + 1) + " tokens";
                         }
                         return "";
                       }) == "");
    }
  }
}

static std::string call_without_rows(fcclComm_t comm) {
  Matrix canary = filled(TypeKind::BF16, 1, 64, 7.0);
  const Matrix before = canary;
  const fcclResult_t result = fcclAllReduceResidualRMSNorm(canary.row(0),
                                                           nullptr,
                                                           canary.row(0),
                                                           canary.row(0),
                                                           canary.row(0),
                                                           0,
                                                           64,
                                                           fcclBfloat16,
                                                           1e-6f,
                                                           comm,
                                                           nullptr);
  const std::string error = error_text(result, "no tokens", comm);
  return error.empty() ? first_difference(canary, before, "a buffer of a call without tokens")
                       : error;
}

TEST_CASE("W17 no tokens on all ranks is a full call that writes nothing") {
  for (const char* check : {"0", "1"}) {
    CHECK(as_threads(ranks_of(3, {{"FCCL_CHECK", check}}), [](fcclComm_t comm, int) -> std::string {
            for (uint64_t call = 1; call <= 5; ++call) {
              std::string error = call_without_rows(comm);
              fcclCommStats stats = FCCL_COMM_STATS_INITIALIZER;
              FCCL_EXPECT_OK(fcclCommGetStats(comm, &stats), comm);
              if (error.empty() && stats.calls != call)
                error = "calls is " + std::to_string(stats.calls);
              if (!error.empty()) return error;
            }
            return "";
          }) == "");
  }
}

TEST_CASE("W17 no tokens on one rank alone is a mismatch in checked mode") {
  std::atomic<int> mismatches{0};
  as_threads(ranks_of(2, {{"FCCL_CHECK", "1"}}), [&](fcclComm_t comm, int rank) -> std::string {
    Fused fused{filled(TypeKind::BF16, 4, 64, 1.0),
                std::nullopt,
                filled(TypeKind::BF16, 1, 64, 1.0),
                1e-6f,
                {},
                {}};
    const std::string error = rank == 1 ? call_without_rows(comm) : fused.call(comm);
    fcclResult_t async = fcclSuccess;
    fcclCommGetAsyncError(comm, &async);
    mismatches += async == fcclMismatch && error.find("rows") != std::string::npos;
    return "";
  });
  CHECK(mismatches == 2);
}

TEST_CASE("W17 an option that differs alone is a mismatch in checked mode, whatever its bits") {
  for (int step = 200; step <= 260; ++step) {  // five bits of a hash missed some of these
    std::atomic<int> mismatches{0};
    as_threads(ranks_of(2, {{"FCCL_CHECK", "1"}}), [&](fcclComm_t comm, int rank) -> std::string {
      Fused fused{filled(TypeKind::BF16, 1, 64, 1.0),
                  std::nullopt,
                  filled(TypeKind::BF16, 1, 64, 1.0),
                  rank == 0 ? 1e-6f : 1e-6f * static_cast<float>(1 + step),
                  {},
                  {}};
      static_cast<void>(fused.call(comm));
      fcclResult_t async = fcclSuccess;
      fcclCommGetAsyncError(comm, &async);
      mismatches += async == fcclMismatch;
      return "";
    });
    INFO("step " << step);
    CHECK(mismatches == 2);
  }
}

TEST_CASE("W21 sizes of 32 GiB are planned in 64 bits and in chunks") {
  const Environment environment(Variables{{"FCCL_BACKEND", "cpu"}});
  fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
  args.tokens = 131072;
  args.hidden = 16384;
  args.datatype = fcclBfloat16;
  fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
  REQUIRE(fcclQuerySupport(8, nullptr, &args, &info) == fcclSuccess);
  CHECK(info.supported == 1);
  CHECK(info.launches > 1);
  CHECK(info.wire_bytes >= int64_t{131072} * 16384 * 2);
  CHECK(info.capacity_bytes > 0);
  int64_t workspace = 0;
  REQUIRE(fcclWorkspaceBytes(8, nullptr, &workspace) == fcclSuccess);
  CHECK(workspace > 0);
  CHECK(info.capacity_bytes <= workspace);
  const bool owned =
      info.algorithm == fcclAlgoTwoshotRows || info.algorithm == fcclAlgoTwoshotRowsLamport;
  const int64_t rows_per_launch = info.chunk_tokens * (owned ? 8 : 1);
  CHECK(rows_per_launch * 16384 * 2 <= info.capacity_bytes);
  CHECK(rows_per_launch * info.launches >= args.tokens);
  // What no 64-bit size can hold is refused.
  args.tokens = INT64_MAX / 2;
  CHECK(fcclQuerySupport(8, nullptr, &args, &info) == fcclInvalidArgument);
}

}  // namespace fccl::test
