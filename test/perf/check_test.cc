// The check's own arithmetic: roundings against the compiler's, ulps, exact inputs, and the norm
// that stands for the peers against float64.
#include <fccl/fccl.h>

#include <cmath>
#include <limits>

#include "fccl_perf/case.h"
#include "fccl_perf/local_norm.h"
#include "fccl_perf/numbers.h"
#include "fccl_perf/pattern.h"
#include "harness/catch.h"

using namespace perf;

namespace {

constexpr int kTypes[] = {fcclFloat32, fcclFloat16, fcclBfloat16};

Case fused(int datatype, int64_t tokens, int64_t hidden) {
  Case one;
  one.datatype = datatype;
  one.tokens = tokens;
  one.hidden = hidden;
  return one;
}

}  // namespace

TEST_CASE("every_16_bit_number_survives_widening_and_storing") {
  for (const int type : {static_cast<int>(fcclFloat16), static_cast<int>(fcclBfloat16)}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const double value = bits_to_number(bits, type);
      uint16_t stored = 0;
      store_number(&stored, 0, type, value);
      if (std::isnan(value)) {
        REQUIRE(stored == 0x7fff);
      } else {
        REQUIRE(stored == bits);
        REQUIRE(round_to_type(value, type) == value);
      }
    }
  }
}

TEST_CASE("rounding_is_to_nearest_ties_to_even") {
  CHECK(round_to_type(1 + std::ldexp(1.0, -8), fcclBfloat16) == 1);
  CHECK(round_to_type(1 + std::ldexp(3.0, -8), fcclBfloat16) == 1 + std::ldexp(1.0, -6));
  CHECK(round_to_type(1 + std::ldexp(1.0, -8) * 1.0001, fcclBfloat16) == 1 + std::ldexp(1.0, -7));
  CHECK(round_to_type(65519, fcclFloat16) == 65504);
  CHECK(std::isinf(round_to_type(65520, fcclFloat16)));
  CHECK(round_to_type(std::ldexp(1.0, -25), fcclFloat16) == 0);
  CHECK(round_to_type(std::ldexp(1.5, -25), fcclFloat16) == std::ldexp(1.0, -24));
}

TEST_CASE("ulp_distance_counts_in_units_of_the_truth") {
  CHECK(ulp_distance(1.0, 1.0, fcclFloat32) == 0);
  CHECK(ulp_distance(1 + std::ldexp(1.0, -7), 1.0, fcclBfloat16) == 1);
  CHECK(ulp_distance(0, std::ldexp(1.0, -24), fcclFloat16) == 1);
  CHECK(std::isinf(ulp_distance(HUGE_VAL, 1.0, fcclFloat32)));
  CHECK(ulp_distance(HUGE_VAL, HUGE_VAL, fcclFloat32) == 0);
}

TEST_CASE("sums_of_the_inputs_are_exact_in_every_type_and_order") {
  for (const int type : kTypes) {
    for (const int ranks : {1, 2, 3, 8, 16}) {
      const Pattern pattern{5, ranks, false};
      const Case one = fused(type, 4, 64);
      for (int64_t index = 0; index < 256; ++index) {
        double forward = 0;
        double backward = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          forward = round_to_type(forward + pattern.input(one, rank, index), type);
          backward = round_to_type(backward + pattern.input(one, ranks - 1 - rank, index), type);
        }
        REQUIRE(forward == backward);
      }
    }
  }
}

TEST_CASE("special_rows_hold_one_nan_or_infinity_from_one_rank") {
  const Pattern pattern{1, 2, true};
  const Case one = fused(fcclFloat32, 9, 50);
  int nan_rows = 0;
  int infinite_rows = 0;
  for (int64_t row = 0; row < 9; ++row) {
    int special = 0;
    for (int64_t index = row * 50; index < row * 50 + 50; ++index) {
      for (int rank = 0; rank < 2; ++rank) {
        const double value = pattern.input(one, rank, index);
        special += std::isfinite(value) ? 0 : 1;
        nan_rows += std::isnan(value) ? 1 : 0;
        infinite_rows += std::isinf(value) ? 1 : 0;
      }
    }
    CHECK(special <= 1);
  }
  CHECK(nan_rows == 3);
  CHECK(infinite_rows == 3);
}

TEST_CASE("local_norm_is_right_in_every_type_and_length") {
  for (const int type : kTypes) {
    for (const int sum_type : {type, static_cast<int>(fcclFloat32)}) {
      for (const int64_t hidden : {1, 15, 16, 33, 1000}) {
        const int64_t tokens = 3;
        const Options options;
        const Pattern pattern{2, 1, false};
        const Case one = fused(type, tokens, hidden);
        const auto count = static_cast<std::size_t>(tokens * hidden);
        std::vector<char> sum(count * 4), residual(count * 4), weight(count * 4),
            residual_out(count * 4), out(count * 4);
        for (int64_t i = 0; i < tokens * hidden; ++i) {
          store_number(sum.data(), i, sum_type, pattern.input(one, 0, i));
          store_number(residual.data(), i, type, pattern.residual(i));
        }
        for (int64_t i = 0; i < hidden; ++i)
          store_number(weight.data(), i, type, pattern.weight(i, false));
        LocalNorm call{sum.data(),
                       residual.data(),
                       weight.data(),
                       residual_out.data(),
                       out.data(),
                       tokens,
                       hidden,
                       type,
                       sum_type,
                       options.eps};
        run_local_norm(call);
        TrueRow truth;
        const double bound = type == fcclFloat32 ? 4 : 1;
        for (int64_t row = 0; row < tokens; ++row) {
          true_row(pattern, options, one, row, truth);
          for (int64_t i = 0; i < hidden; ++i) {
            const auto at = static_cast<std::size_t>(i);
            REQUIRE(bits_to_number(load_bits(residual_out.data(), row * hidden + i, type), type) ==
                    truth.residual_out[at]);
            const double actual =
                bits_to_number(load_bits(out.data(), row * hidden + i, type), type);
            REQUIRE(ulp_distance(actual, truth.norm_out[at], type) <= bound);
          }
        }
      }
    }
  }
}

TEST_CASE("widening_and_narrowing_are_each_others_inverse") {
  for (const int type : kTypes) {
    std::vector<char> from(37 * 4), back(37 * 4);
    std::vector<float> wide(37);
    for (int64_t i = 0; i < 37; ++i)
      store_number(from.data(), i, type, (static_cast<double>(i) - 18) / 8);
    widen(from.data(), wide.data(), 37, type);
    narrow(wide.data(), back.data(), 37, type);
    const std::size_t bytes = 37 * type_bytes(type);
    CHECK(std::memcmp(from.data(), back.data(), bytes) == 0);
    CHECK(wide[0] == -2.25f);
  }
}

TEST_CASE("sweeps_have_nccl_tests_counts") {
  Options options;
  options.op = Op::kReduceScatter;
  options.types = {fcclFloat32};
  options.min_bytes = 8;
  options.max_bytes = 4096;
  options.step_factor = 8;
  const std::vector<Case> cases = sweep(options, 4);
  REQUIRE(cases.size() == 4);
  CHECK(cases[0].bytes == 0);  // less than 16 bytes for each rank
  CHECK(cases[1].bytes == 64);
  CHECK(cases[1].count == 4);
  CHECK(cases[3].recv_count * 4 == cases[3].send_count);
  options.op = Op::kBroadcast;
  options.all_roots = true;
  CHECK(sweep(options, 3).size() == 3 * 4);
  CHECK(bus_factor(Op::kAllReduce, 4) == 1.5);
  CHECK(bus_factor(Op::kAllGather, 4) == 0.75);
  CHECK(bus_factor(Op::kBroadcast, 4) == 1);
}
