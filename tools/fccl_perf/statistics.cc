#include "fccl_perf/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace perf {
namespace {

// Two-sided 95 % quantile of Student's t: the table up to 30, then an expansion that is exact to
// 1e-3.
double student_t95(int64_t degrees) {
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                      2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                      2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                      2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees < 1) return kTable[0];
  if (degrees <= 30) return kTable[degrees - 1];
  return 1.960 + 2.4 / static_cast<double>(degrees);
}

}  // namespace

double nearest_rank(const std::vector<double>& sorted, double percent) {
  const auto count = static_cast<double>(sorted.size());
  const auto rank =
      static_cast<std::size_t>(std::max(1.0, std::ceil(percent / 100 * count - 1e-9)));
  return sorted[std::min(rank, sorted.size()) - 1];
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return nearest_rank(values, 50);
}

Summary summarise(std::vector<double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  summary.samples = static_cast<int64_t>(samples.size());
  summary.mean =
      std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  summary.min = samples.front();
  summary.p50 = nearest_rank(samples, 50);
  summary.p90 = nearest_rank(samples, 90);
  if (samples.size() >= 100) summary.p99 = nearest_rank(samples, 99);
  summary.max = samples.back();
  return summary;
}

Ratio paired_ratio(const std::vector<double>& own, const std::vector<double>& peer) {
  const std::size_t count = std::min(own.size(), peer.size());
  Ratio ratio;
  if (count == 0) return ratio;
  std::vector<double> logs;
  for (std::size_t i = 0; i < count; ++i) logs.push_back(std::log(peer[i] / own[i]));
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double value : logs) squares += (value - mean) * (value - mean);
  const double deviation = count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : 0;
  const double half = student_t95(static_cast<int64_t>(count) - 1) * deviation /
                      std::sqrt(static_cast<double>(count));
  ratio.value = std::exp(mean);
  ratio.low = std::exp(mean - half);
  ratio.high = std::exp(mean + half);
  return ratio;
}

std::vector<double> combine_ranks(const std::vector<std::vector<double>>& by_rank, int how) {
  std::vector<double> combined = by_rank.front();
  if (how == 0) return combined;
  for (std::size_t i = 0; i < combined.size(); ++i) {
    for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
      const double other = by_rank[rank][i];
      if (how == 1) combined[i] += other;
      if (how == 2) combined[i] = std::min(combined[i], other);
      if (how == 3) combined[i] = std::max(combined[i], other);
    }
    if (how == 1) combined[i] /= static_cast<double>(by_rank.size());
  }
  return combined;
}

double median_noise(std::vector<double> samples) {
  if (samples.size() < 2) return 0;
  std::sort(samples.begin(), samples.end());
  const auto count = static_cast<double>(samples.size());
  const double half = 0.98 * std::sqrt(count);  // 1.96 * sqrt(n) / 2 ranks around the middle
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(count / 2 - half)));
  const auto high =
      std::min(samples.size() - 1, static_cast<std::size_t>(std::ceil(count / 2 + half)));
  const double middle = nearest_rank(samples, 50);
  return middle > 0 ? (samples[high] - samples[low]) / 2 / middle : 0;
}

int compare_medians(double now, double now_noise, double before, double before_noise,
                    double threshold) {
  if (before <= 0 || now <= 0) return 0;
  const double allowed = std::max(threshold, std::hypot(now_noise, before_noise));
  if (now > before * (1 + allowed)) return 1;
  if (now * (1 + allowed) < before) return -1;
  return 0;
}

}  // namespace perf
