// Figures from samples. Percentiles are nearest rank: a value that was measured, never an
// interpolation, and no p99 from fewer than 100 samples.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace perf {

struct Summary {
  int64_t samples = 0;
  double mean = 0;
  double min = 0;
  double p50 = 0;
  double p90 = 0;
  std::optional<double> p99;
  double max = 0;
};

// `percent` in (0, 100]; `sorted` ascending and not empty.
double nearest_rank(const std::vector<double>& sorted, double percent);
Summary summarise(std::vector<double> samples);
double median(std::vector<double> values);

struct Ratio {
  double value = 1;
  double low = 1;  // 95 % interval
  double high = 1;
};

// Geometric mean of peer[i] / own[i] over the rounds, with its interval from Student's t on the
// logs.
Ratio paired_ratio(const std::vector<double>& own, const std::vector<double>& peer);

// Combines sample i of all ranks: how = 0 rank 0, 1 mean, 2 minimum, 3 maximum (nccl-tests' -a).
std::vector<double> combine_ranks(const std::vector<std::vector<double>>& by_rank, int how);

// Is `now` slower (1), faster (-1) or the same (0) as `before`, where each is a median with the
// given relative noise (half-width) and changes up to `threshold` do not count?
int compare_medians(double now, double now_noise, double before, double before_noise,
                    double threshold);

// Relative half-width of the 95 % interval of the median, by order statistics.
double median_noise(std::vector<double> samples);

}  // namespace perf
