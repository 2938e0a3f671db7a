#include "fccl_perf/cost_fit.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace perf {
namespace {

using Row = std::array<double, 3>;

Row terms(const CostSample& sample) {
  return {sample.launches / sample.us, sample.pushed_mib / sample.us, sample.local_mib / sample.us};
}

double error_of(const std::vector<CostSample>& samples, const Row& x) {
  double squares = 0;
  for (const CostSample& sample : samples) {
    const Row row = terms(sample);
    const double error = row[0] * x[0] + row[1] * x[1] + row[2] * x[2] - 1;
    squares += error * error;
  }
  return std::sqrt(squares / static_cast<double>(samples.size()));
}

// Least squares with the coefficients of `mask` only, by the normal equations. False if they are
// singular or a coefficient would be negative.
bool solve(const std::vector<CostSample>& samples, unsigned mask, Row& x) {
  double matrix[3][4] = {};
  for (const CostSample& sample : samples) {
    const Row row = terms(sample);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) matrix[i][j] += row[i] * row[j];
      matrix[i][3] += row[i];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if ((mask >> i & 1u) != 0) continue;
    for (std::size_t j = 0; j < 4; ++j) matrix[i][j] = i == j ? 1 : 0;
    for (std::size_t j = 0; j < 3; ++j) {
      if (j != i) matrix[j][i] = 0;
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i + 1; j < 3; ++j) {
      if (std::fabs(matrix[j][i]) > std::fabs(matrix[pivot][i])) pivot = j;
    }
    std::swap(matrix[i], matrix[pivot]);
    if (std::fabs(matrix[i][i]) < 1e-12) return false;
    for (std::size_t j = 0; j < 3; ++j) {
      const double factor = j == i ? 0 : matrix[j][i] / matrix[i][i];
      for (std::size_t k = i; k < 4; ++k) matrix[j][k] -= factor * matrix[i][k];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) x[i] = matrix[i][3] / matrix[i][i];
  return x[0] >= 0 && x[1] >= 0 && x[2] >= 0;
}

}  // namespace

// With three unknowns the best of all subsets is the non-negative optimum.
CostFit fit_costs(const std::vector<CostSample>& samples) {
  CostFit fit;
  fit.relative_error = std::numeric_limits<double>::infinity();
  std::vector<CostSample> usable;
  for (const CostSample& sample : samples) {
    if (sample.us > 0) usable.push_back(sample);
  }
  for (unsigned mask = 1; mask < 8 && !usable.empty(); ++mask) {
    Row x = {};
    if (!solve(usable, mask, x)) continue;
    const double error = error_of(usable, x);
    // A further coefficient must earn its place.
    if (error >= fit.relative_error * (1 - 1e-6)) continue;
    fit = {x[0], x[1], x[2], error};
  }
  return fit;
}

}  // namespace perf
