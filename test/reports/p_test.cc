// Reports about performance that a machine without a GPU can test, by their number: what is served
// at all, by which path, and that host waits yield.
#include <algorithm>

#include "harness/generator.h"
#include "reports/calls.h"

namespace fccl::test {

TEST_CASE("P01 the choice follows bytes, not tokens, and has one turning point") {
  CHECK(as_threads(ranks_of(4), [](fcclComm_t comm, int) -> std::string {
          for (int64_t tokens = 1; tokens <= 4096; tokens *= 2)
            if (plan_of(comm, tokens, 8192, fcclBfloat16).algorithm !=
                    plan_of(comm, 2 * tokens, 4096, fcclBfloat16).algorithm &&
                tokens >= 8)
              return "equal bytes, other algorithms at " + std::to_string(tokens);
          bool twoshot = false;
          for (int64_t tokens = 1; tokens <= 4096; ++tokens) {
            const bool now =
                plan_of(comm, tokens, 4096, fcclBfloat16).algorithm >= fcclAlgoTwoshotRows;
            if (twoshot && !now) return "one-shot again at " + std::to_string(tokens);
            twoshot = now;
          }
          return "";
        }) == "");
}

TEST_CASE("P06 every number of ranks from 1 to 16 is served") {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    FusedInputs in;
    for (int r = 0; r < ranks; ++r) in.x.push_back(make_input(TypeKind::BF16, 2, 2880, 3, r));
    in.weight = make_weight(TypeKind::BF16, 2880, 3);
    const FusedOutputs want = fused_reference(in);
    INFO(ranks << " ranks");
    CHECK(as_threads(ranks_of(ranks), [&](fcclComm_t comm, int rank) -> std::string {
            Fused fused{in.x[static_cast<size_t>(rank)], std::nullopt, in.weight, in.eps, {}, {}};
            const std::string error = fused.call(comm);
            return error.empty() ? first_difference(fused.norm_out, want.norm_out, "norm_out")
                                 : error;
          }) == "");
  }
}

TEST_CASE("P08 more than the workspace holds goes in chunks") {
  CHECK(as_threads(ranks_of(2, {{"FCCL_WORKSPACE_BYTES", "1M"}}),
                   [](fcclComm_t comm, int rank) -> std::string {
                     constexpr int64_t kTokens = 1024, kHidden = 4096;  // 8 MiB
                     Fused fused{filled(TypeKind::BF16, kTokens, kHidden, 1.0 + rank),
                                 std::nullopt,
                                 filled(TypeKind::BF16, 1, kHidden, 1.0),
                                 1e-6f,
                                 {},
                                 {}};
                     if (plan_of(comm, kTokens, kHidden, fcclBfloat16).launches < 4)
                       return "it is not chunked";
                     const std::string error = fused.call(comm);
                     return error.empty()
                                ? first_difference(fused.residual_out,
                                                   filled(TypeKind::BF16, kTokens, kHidden, 3.0),
                                                   "residual_out")
                                : error;
                   }) == "");
}

TEST_CASE("P09 host waits yield: 8 ranks, 1000 calls of 8 KiB") {
  const int64_t start = now_ms();
  CHECK(as_threads(ranks_of(8), [](fcclComm_t comm, int) -> std::string {
          Matrix data = filled(TypeKind::F32, 1, 2048, 0.0);
          for (int call = 0; call < 1000; ++call) {
            const std::string error = sum_in_place(comm, data);
            if (!error.empty()) return error;
          }
          return "";
        }) == "");
  CHECK(now_ms() - start < bound_ms(10000));
}

TEST_CASE("P11 init is quick and is done again and again") {
  std::vector<int64_t> times;
  for (int round = 0; round < 20; ++round) {
    const int64_t start = now_ms();
    CHECK(as_threads(ranks_of(2), [](fcclComm_t, int) { return ""; }) == "");
    times.push_back(now_ms() - start);
  }
  std::sort(times.begin(), times.end());
  CHECK(times[10] < bound_ms(500));
}

TEST_CASE("P12 counts 1 to 100, in every type") {
  for (const TypeKind type : {TypeKind::F32, TypeKind::F16, TypeKind::BF16}) {
    CHECK(as_threads(ranks_of(3), [type](fcclComm_t comm, int rank) -> std::string {
            for (int64_t count = 1; count <= 100; ++count) {
              Matrix data(type, 1, count), want(type, 1, count);
              for (int64_t c = 0; c < count; ++c)
                data.set(0, c, static_cast<double>(c % 7) + rank),
                    want.set(0, c, 3 * static_cast<double>(c % 7) + 3);
              std::string error = sum_in_place(comm, data);
              if (error.empty()) error = first_difference(data, want, "sum");
              if (!error.empty()) return error;
            }
            return "";
          }) == "");
  }
}

}  // namespace fccl::test
