// Figures from samples with a fake clock, and the noise rules of the comparisons.
#include "fccl_perf/statistics.h"

#include <cmath>
#include <random>

#include "fccl_perf/cost_fit.h"
#include "fccl_perf/numbers_list.h"
#include "harness/catch.h"

using namespace perf;

namespace {

std::vector<double> one_to(int last) {
  std::vector<double> samples;
  for (int i = last; i >= 1; --i) samples.push_back(i);
  return samples;
}

}  // namespace

TEST_CASE("percentiles_are_nearest_rank") {
  const Summary s = summarise(one_to(100));
  CHECK(s.min == 1);
  CHECK(s.p50 == 50);
  CHECK(s.p90 == 90);
  REQUIRE(s.p99);
  CHECK(*s.p99 == 99);
  CHECK(s.max == 100);
  CHECK(s.mean == 50.5);
  CHECK(s.samples == 100);
}

TEST_CASE("no_p99_from_fewer_than_100_samples") {
  CHECK_FALSE(summarise(one_to(99)).p99);
  CHECK(summarise(one_to(1)).p50 == 1);
  CHECK(summarise({}).samples == 0);
}

TEST_CASE("ranks_are_combined_as_nccl_tests_average_flag_says") {
  const std::vector<std::vector<double>> by_rank = {{1, 8}, {3, 2}};
  CHECK(combine_ranks(by_rank, 0) == std::vector<double>{1, 8});
  CHECK(combine_ranks(by_rank, 1) == std::vector<double>{2, 5});
  CHECK(combine_ranks(by_rank, 2) == std::vector<double>{1, 2});
  CHECK(combine_ranks(by_rank, 3) == std::vector<double>{3, 8});
}

TEST_CASE("ratio_has_an_interval_that_holds_the_truth") {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.1);
  int held = 0;
  for (int run = 0; run < 400; ++run) {
    std::vector<double> own;
    std::vector<double> peer;
    for (int i = 0; i < 21; ++i) {
      own.push_back(10 * std::exp(noise(random)));
      peer.push_back(15 * std::exp(noise(random)));
    }
    const Ratio ratio = paired_ratio(own, peer);
    held += ratio.low <= 1.5 && 1.5 <= ratio.high;
    CHECK(ratio.low <= ratio.value);
    CHECK(ratio.value <= ratio.high);
  }
  CHECK(held > 360);  // 95 % are expected
  CHECK(held < 399);
}

TEST_CASE("equal_samples_have_a_ratio_of_one_without_width") {
  const Ratio ratio = paired_ratio({2, 2, 2}, {2, 2, 2});
  CHECK(ratio.value == 1);
  CHECK(ratio.low == 1);
  CHECK(ratio.high == 1);
}

TEST_CASE("a_change_counts_beyond_threshold_and_noise_only") {
  CHECK(compare_medians(10.4, 0, 10, 0, 0.05) == 0);
  CHECK(compare_medians(10.6, 0, 10, 0, 0.05) == 1);
  CHECK(compare_medians(9.4, 0, 10, 0, 0.05) == -1);
  CHECK(compare_medians(12, 0.3, 10, 0.1, 0.05) == 0);
  CHECK(compare_medians(14, 0.3, 10, 0.1, 0.05) == 1);
  CHECK(compare_medians(5, 0, 0, 0, 0.05) == 0);
}

TEST_CASE("noise_of_a_median_shrinks_with_samples") {
  std::mt19937 random(3);
  std::normal_distribution<double> clock(100, 10);
  std::vector<double> few;
  std::vector<double> many;
  for (int i = 0; i < 20; ++i) few.push_back(clock(random));
  for (int i = 0; i < 2000; ++i) many.push_back(clock(random));
  CHECK(median_noise(many) < median_noise(few));
  CHECK(median_noise(many) > 0);
  CHECK(median_noise({5}) == 0);
}

TEST_CASE("cost_model_is_found_again_and_never_negative") {
  std::vector<CostSample> samples;
  for (const double mib : {0.01, 0.1, 1.0, 4.0}) {
    for (const double launches : {1.0, 2.0}) samples.push_back({launches, mib, mib * mib, 0});
  }
  for (CostSample& s : samples) s.us = 2.5 * s.launches + 80 * s.pushed_mib + 20 * s.local_mib;
  const CostFit fit = fit_costs(samples);
  CHECK(std::fabs(fit.fixed_us - 2.5) < 1e-6);
  CHECK(std::fabs(fit.us_per_mib_pushed - 80) < 1e-6);
  CHECK(std::fabs(fit.us_per_mib_local - 20) < 1e-6);
  for (CostSample& s : samples) s.us = 5 - s.pushed_mib;
  const CostFit falling = fit_costs(samples);
  CHECK(falling.fixed_us >= 0);
  CHECK(falling.us_per_mib_pushed >= 0);
  CHECK(falling.us_per_mib_local >= 0);
}

TEST_CASE("sizes_lists_and_ranges_are_read_strictly") {
  CHECK(parse_size("8") == 8u);
  CHECK(parse_size("64K") == 65536u);
  CHECK(parse_size("1.5m") == 1572864u);
  CHECK(parse_size("2G") == std::size_t{2} << 30);
  CHECK_FALSE(parse_size("8x"));
  CHECK_FALSE(parse_size(""));
  CHECK_FALSE(parse_size("-1"));
  CHECK_FALSE(parse_size("1e99"));
  CHECK(parse_integers("1,4,16") == std::vector<int64_t>{1, 4, 16});
  CHECK(parse_integers("1..16*2") == std::vector<int64_t>{1, 2, 4, 8, 16});
  CHECK(parse_integers("4..10+3,7") == std::vector<int64_t>{4, 7, 10});
  CHECK(parse_integers("2..4") == std::vector<int64_t>{2, 3, 4});
  CHECK_FALSE(parse_integers("4..2"));
  CHECK_FALSE(parse_integers("1..8*1"));
  CHECK_FALSE(parse_integers("1,,2"));
  CHECK_FALSE(parse_integers("1..1000000000"));
}
