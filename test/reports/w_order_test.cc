// Reports of wrong results, by their number: order of summing, and calls that follow each other.
#include <atomic>

#include "reports/calls.h"

namespace fccl::test {

TEST_CASE("W07 a row has one bit pattern in every batch, order and timing") {
  CHECK(as_threads(ranks_of(4), [](fcclComm_t comm, int rank) -> std::string {
          const double lane[] = {1e8, 1, -1e8, 1};
          for (const int64_t tokens : {1, 8, 100, 4096}) {
            Fused fused{filled(TypeKind::F32, tokens, 64, lane[rank]),
                        std::nullopt,
                        filled(TypeKind::F32, 1, 64, 1.0),
                        1e-6f,
                        {},
                        {}};
            const Matrix want = filled(TypeKind::F32, tokens, 64, 1.0);
            for (uint64_t repeat = 0; repeat < 100; ++repeat) {
              if (mix(repeat, static_cast<uint64_t>(tokens)) % 4 == static_cast<uint64_t>(rank))
                jitter(repeat);
              std::string error = fused.call(comm);
              if (error.empty()) error = first_difference(fused.residual_out, want, "residual_out");
              if (!error.empty()) return error;
            }
          }
          return "";
        }) == "");
}

// The whole row holds `value`: its norm is 1 whatever the value, so residual_out is looked at.
static std::string call_and_check(fcclComm_t comm, Fused& fused, double mine, double sum,
                                  uint64_t call) {
  fused.x = filled(fused.x.type(), fused.x.rows(), fused.x.columns(), mine);
  const std::string error = fused.call(comm);
  if (!error.empty()) return error;
  for (int64_t c = 0; c < fused.x.columns(); ++c)
    if (fused.residual_out.at(fused.x.rows() - 1, c) != static_cast<float>(sum))
      return "call " + std::to_string(call) + " gave " +
             std::to_string(fused.residual_out.at(0, c));
  return "";
}

TEST_CASE("W08 inputs may be overwritten as soon as the call is complete") {
  for (const char* algorithm :
       {"oneshot_lamport", "oneshot_flags", "twoshot_rows", "twoshot_cols_lamport"}) {
    INFO(algorithm);
    CHECK(as_threads(ranks_of(2, {{"FCCL_ALGO", algorithm}}),
                     [](fcclComm_t comm, int rank) -> std::string {
                       Fused fused{filled(TypeKind::BF16, 2, 24, 0),
                                   std::nullopt,
                                   filled(TypeKind::BF16, 1, 24, 1.0),
                                   1e-6f,
                                   {},
                                   {}};
                       for (uint64_t call = 0; call < 2500; ++call) {
                         if (rank == 1 && mix(call) % 100 == 0) jitter(call);
                         const double mine = static_cast<double>(call % 61) + rank;
                         std::string error = call_and_check(
                             comm, fused, mine, 2 * static_cast<double>(call % 61) + 1, call);
                         if (!error.empty()) return error;
                       }
                       return "";
                     }) == "");
  }
}

TEST_CASE("W09 a slow rank never sums the next call's data") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int rank) -> std::string {
          Fused fused{filled(TypeKind::BF16, 1, 32, 0),
                      std::nullopt,
                      filled(TypeKind::BF16, 1, 32, 1.0),
                      1e-6f,
                      {},
                      {}};
          for (uint64_t call = 0; call < 5000; ++call) {
            if (rank == 0 && mix(call) % 50 == 0) jitter(call);
            const auto base = static_cast<double>(call % 97);
            std::string error = call_and_check(comm, fused, base + rank, 2 * base + 1, call);
            if (!error.empty()) return error;
          }
          return "";
        }) == "");
}

static std::string sums_of_integers(fcclComm_t comm, int rank, int64_t count, uint64_t calls) {
  Matrix data(TypeKind::F32, 1, count);
  for (uint64_t call = 0; call < calls; ++call) {
    const auto base = static_cast<double>(call % 1009);
    for (int64_t c = 0; c < count; ++c) data.set_bits(0, c, 0);
    const auto mine = static_cast<float>(base + 3 * rank);
    uint32_t bits = 0;
    std::memcpy(&bits, &mine, 4);
    for (int64_t c = 0; c < count; ++c) data.set_bits(0, c, bits);
    const std::string error = sum_in_place(comm, data);
    if (!error.empty()) return error;
    for (int64_t c = 0; c < count; ++c)
      if (data.at(0, c) != static_cast<float>(2 * base + 3))
        return "wrong in call " + std::to_string(call);
  }
  return "";
}

TEST_CASE("W10 no value is torn or stale, from 8 KiB to 8 MiB") {
  for (const char* algorithm :
       {"oneshot_lamport", "oneshot_flags", "twoshot_rows", "twoshot_rows_lamport"}) {
    INFO(algorithm);
    CHECK(as_threads(ranks_of(2, {{"FCCL_ALGO", algorithm}}),
                     [](fcclComm_t comm, int rank) -> std::string {
                       for (const auto& [bytes, calls] : {std::pair{int64_t{8} << 10, 500},
                                                          {int64_t{256} << 10, 20},
                                                          {int64_t{8} << 20, 1}}) {
                         std::string error =
                             sums_of_integers(comm, rank, bytes / 4, static_cast<uint64_t>(calls));
                         if (!error.empty()) return error;
                       }
                       return "";
                     }) == "");
  }
}

TEST_CASE("W10 no value is torn or stale in 100000 calls", "[slow]") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int rank) {
          return sums_of_integers(comm, rank, 512, 100000);
        }) == "");
}

TEST_CASE("W22 the call counter passes 2^31 and 2^32") {
  for (const char* start : {"2147483645", "4294967293"}) {
    for (const char* algorithm : kAllAlgorithms) {
      INFO(start << " " << algorithm);
      CHECK(as_threads(ranks_of(3, {{"FCCL_ALGO", algorithm}, {"FCCL_TEST_EPOCH", start}}),
                       [](fcclComm_t comm, int rank) -> std::string {
                         Fused fused{filled(TypeKind::BF16, 4, 40, 0),
                                     std::nullopt,
                                     filled(TypeKind::BF16, 1, 40, 1.0),
                                     1e-6f,
                                     {},
                                     {}};
                         for (uint64_t call = 0; call < 10; ++call) {
                           std::string error = call_and_check(comm,
                                                              fused,
                                                              static_cast<double>(call) + rank,
                                                              3 * static_cast<double>(call) + 3,
                                                              call);
                           if (!error.empty()) return error;
                         }
                         return "";
                       }) == "");
    }
  }
}

}  // namespace fccl::test
