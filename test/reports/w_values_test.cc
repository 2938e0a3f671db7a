// Reports of wrong results, by their number: special values, types and ranges.
#include <cmath>

#include "reports/calls.h"

namespace fccl::test {

TEST_CASE("W02 negative zero comes out of every path with its sign") {
  for (const char* algorithm : kAllAlgorithms) {
    for (const TypeKind type : {TypeKind::F32, TypeKind::F16, TypeKind::BF16}) {
      INFO(algorithm << " " << type_name(type));
      CHECK(as_threads(
                ranks_of(3, {{"FCCL_ALGO", algorithm}}), [&](fcclComm_t comm, int) -> std::string {
                  const Matrix zeros = filled(type, 4, 65, -0.0);
                  for (const bool with_residual : {true, false}) {
                    Fused fused{zeros, std::nullopt, filled(type, 1, 65, 1.0), 1e-6f, {}, {}};
                    if (with_residual) fused.residual = zeros;
                    std::string error = fused.call(comm);
                    if (error.empty())
                      error = first_difference(fused.residual_out, zeros, "residual_out");
                    if (error.empty()) error = first_difference(fused.norm_out, zeros, "norm_out");
                    if (!error.empty()) return error;
                  }
                  // LL and column ownership serve the fused call only.
                  const std::string name = algorithm;
                  if (name == "oneshot_ll" || name.find("cols") != std::string::npos) return "";
                  Matrix sum = zeros;
                  std::string error = sum_in_place(comm, sum);
                  return error.empty() ? first_difference(sum, zeros, "sum") : error;
                }) == "");
    }
  }
}

TEST_CASE("W03 the exponent range of bf16 is never narrowed") {
  for (const char* algorithm : kAllAlgorithms) {
    INFO(algorithm);
    CHECK(as_threads(ranks_of(2, {{"FCCL_ALGO", algorithm}}),
                     [](fcclComm_t comm, int rank) -> std::string {
                       Fused fused{filled(TypeKind::BF16, 3, 64, 1.0),
                                   std::nullopt,
                                   filled(TypeKind::BF16, 1, 64, 1.0),
                                   1e-6f,
                                   {},
                                   {}};
                       if (rank == 0) fused.x.set(0, 0, 1e30);
                       Matrix want = filled(TypeKind::BF16, 3, 64, 2.0);
                       want.set_bits(0, 0, 0x714A);
                       std::string error = fused.call(comm);
                       if (error.empty())
                         error = first_difference(fused.residual_out, want, "residual_out");
                       fused.x.set(0, 0, 2e38);
                       want.set(0, 0, INFINITY);
                       if (error.empty()) error = fused.call(comm);
                       return error.empty()
                                  ? first_difference(
                                        fused.residual_out, want, "residual_out with infinity")
                                  : error;
                     }) == "");
  }
}

TEST_CASE("W04 small values are summed without a lossy codec") {
  CHECK(as_threads(ranks_of(4), [](fcclComm_t comm, int) -> std::string {
          for (const int64_t tokens : {1, 16, 512}) {
            Matrix data = filled(TypeKind::BF16, tokens, 1024, 1e-3);
            std::string error = sum_in_place(comm, data);
            if (!error.empty()) return error;
            for (int64_t c = 0; c < 1024; ++c)
              if (ulps_apart(TypeKind::BF16, data.at(tokens - 1, c), 4e-3) > 1)
                return "not within 1 ulp of 4e-3";
            const fcclPlanInfo plan = plan_of(comm, tokens, 1024, fcclBfloat16);
            if (plan.supported != 1 || plan.algorithm < fcclAlgoOneshotLamport ||
                plan.algorithm > fcclAlgoTwoshotColsLamport)
              return std::string("the query does not name a lossless path: ") + plan.algorithm_name;
          }
          return "";
        }) == "");
}

TEST_CASE("W05 the weight's type is an argument of its own") {
  for (const int ranks : {1, 2}) {
    CHECK(as_threads(ranks_of(ranks), [&](fcclComm_t comm, int) -> std::string {
            FusedInputs in;
            for (int rank = 0; rank < ranks; ++rank)
              in.x.push_back(filled(TypeKind::BF16, 2, 4096, 0.5 + rank));
            in.weight = Matrix(TypeKind::F32, 1, 4096);
            for (int64_t c = 0; c < 4096; ++c)
              in.weight.set(0, c, 1 + static_cast<double>(c) * 0x1p-12);
            const FusedOutputs want = fused_reference(in);
            Fused fused{in.x[0], std::nullopt, in.weight, 1e-6f, {}, {}};
            if (ranks == 2) {
              int rank = 0;
              fcclCommUserRank(comm, &rank);
              fused.x = in.x[static_cast<size_t>(rank)];
            }
            std::string error = fused.call(comm);
            if (error.empty()) error = first_difference(fused.norm_out, want.norm_out, "norm_out");
            if (!error.empty()) return error;
            // A pair that is not built is refused before anything is written.
            fused.weight = filled(TypeKind::F16, 1, 4096, 1.0);
            const Matrix canary = filled(TypeKind::BF16, 2, 4096, NAN);
            error = fused.call(comm);
            if (error.find(fcclGetErrorString(fcclUnsupported)) == std::string::npos)
              return "f16 weight was not refused: " + error;
            error = first_difference(fused.norm_out, canary, "norm_out after the refusal");
            return error.empty() ? first_difference(
                                       fused.residual_out, canary, "residual_out after the refusal")
                                 : error;
          }) == "");
  }
}

TEST_CASE("W12 no residual means that nothing is added") {
  for (const char* algorithm : kAllAlgorithms) {
    INFO(algorithm);
    CHECK(as_threads(
              ranks_of(2, {{"FCCL_ALGO", algorithm}}), [](fcclComm_t comm, int) -> std::string {
                Fused fused{filled(TypeKind::BF16, 5, 130, 1.0),
                            std::nullopt,
                            filled(TypeKind::BF16, 1, 130, 1.0),
                            1e-6f,
                            {},
                            {}};
                std::string error = fused.call(comm);
                if (error.empty())
                  error = first_difference(
                      fused.residual_out, filled(TypeKind::BF16, 5, 130, 2.0), "residual_out");
                for (int64_t c = 0; c < 130 && error.empty(); ++c)
                  if (!(ulps_apart(TypeKind::BF16, fused.norm_out.at(4, c), 1.0) <= 1))
                    error = "norm_out is not 1";
                return error;
              }) == "");
  }
}

TEST_CASE("W18 a NaN and opposite infinities stay in their lanes and rows") {
  for (const char* algorithm : kAllAlgorithms) {
    INFO(algorithm);
    CHECK(
        as_threads(
            ranks_of(2, {{"FCCL_ALGO", algorithm}}), [](fcclComm_t comm, int rank) -> std::string {
              FusedInputs in;
              for (int r = 0; r < 2; ++r) in.x.push_back(filled(TypeKind::F32, 3, 40, 1.5));
              in.x[1].set(1, 5, NAN);
              in.x[0].set(1, 9, INFINITY);
              in.x[1].set(1, 9, -INFINITY);
              in.weight = filled(TypeKind::F32, 1, 40, 1.0);
              Fused fused{in.x[static_cast<size_t>(rank)], std::nullopt, in.weight, in.eps, {}, {}};
              std::string error = fused.call(comm);
              if (!error.empty()) return error;
              for (int64_t c = 0; c < 40; ++c) {
                if (std::isnan(fused.residual_out.at(1, c)) != (c == 5 || c == 9))
                  return "NaN in the wrong lane";
                if (!std::isnan(fused.norm_out.at(1, c))) return "the row's norm is not NaN";
              }
              return first_difference(fused.norm_out, fused_reference(in).norm_out, "norm_out");
            }) == "");
  }
}

TEST_CASE("W23 squares of f16 are summed in fp32") {
  CHECK(as_threads(ranks_of(1), [](fcclComm_t comm, int) -> std::string {
          for (const double value : {0.5, 1.0, 300.0, 60000.0}) {
            Fused fused{filled(TypeKind::F16, 2, 4096, value),
                        std::nullopt,
                        filled(TypeKind::F16, 1, 4096, 1.0),
                        1e-6f,
                        {},
                        {}};
            const std::string error = fused.call(comm);
            if (!error.empty()) return error;
            for (int64_t c = 0; c < 4096; ++c)
              if (!(ulps_apart(TypeKind::F16, fused.norm_out.at(1, c), 1.0) <= 1))
                return "not 1 for rows of " + std::to_string(value);
          }
          return "";
        }) == "");
}

}  // namespace fccl::test
