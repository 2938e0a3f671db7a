#include "fccl_perf/pattern.h"

#include <fccl/fccl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fccl_perf/numbers.h"

namespace perf {
namespace {

constexpr double kUnit = 1.0 / 32;
constexpr uint64_t kResidualStream = 101;
constexpr uint64_t kWeightStream = 102;
constexpr uint64_t kBiasStream = 103;
constexpr uint64_t kPlaceStream = 104;

// A well mixed 32-bit value of (seed, stream, index).
uint32_t mixed(uint64_t seed, uint64_t stream, int64_t index) {
  uint64_t x = static_cast<uint64_t>(index) + (seed * 131 + stream) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>(x >> 32);
}

enum class Special { kNone, kNan, kInfinity };

// Special elements: one in each second and third row of the fused call, every 97th of a plain one.
Special special_at(const Pattern& pattern, const Case& one, int rank, int64_t index) {
  if (!pattern.special) return Special::kNone;
  const bool fused = is_fused_shape(one.op);
  const int64_t row = fused ? index / one.hidden : index / 97;
  const int64_t place = fused ? mixed(pattern.seed, kPlaceStream, row) % one.hidden : 5;
  if ((fused ? index % one.hidden : index % 97) != place || row % pattern.ranks != rank)
    return Special::kNone;
  const auto kind = static_cast<int64_t>((static_cast<uint64_t>(row) + pattern.seed) % 3);
  return kind == 0 ? Special::kNone : kind == 1 ? Special::kNan : Special::kInfinity;
}

double reduce(const Pattern& pattern, const Case& one, int64_t index) {
  double value = pattern.input(one, 0, index);
  for (int rank = 1; rank < pattern.ranks; ++rank) {
    const double other = pattern.input(one, rank, index);
    switch (one.redop) {
      case fcclProd:
        value *= other;
        break;
      case fcclMax:
        value = std::max(value, other);
        break;
      case fcclMin:
        value = std::min(value, other);
        break;
      default:
        value += other;
        break;
    }
  }
  if (one.redop == fcclAvg)
    value = static_cast<double>(static_cast<float>(value) / static_cast<float>(pattern.ranks));
  return round_to_type(value, one.datatype);
}

}  // namespace

double Pattern::input(const Case& one, int rank, int64_t index) const {
  switch (special_at(*this, one, rank, index)) {
    case Special::kNan:
      return std::numeric_limits<double>::quiet_NaN();
    case Special::kInfinity:
      return std::numeric_limits<double>::infinity();
    case Special::kNone:
      break;
  }
  const uint32_t word = mixed(seed, static_cast<uint64_t>(rank), index);
  if (one.redop == fcclProd && !is_fused_shape(one.op)) {
    static constexpr double kFactors[4] = {1, -1, 2, 0.5};
    return kFactors[word & 3];
  }
  const auto amplitude = static_cast<uint32_t>(std::max(1, 127 / ranks));
  return (static_cast<double>(word % (2 * amplitude + 1)) - amplitude) * kUnit;
}

double Pattern::residual(int64_t index) const {
  return (static_cast<double>(mixed(seed, kResidualStream, index) % 255) - 127) * kUnit;
}

double Pattern::weight(int64_t column, bool offset) const {
  const auto word = static_cast<double>(mixed(0, kWeightStream, column) % 128);
  return (word + (offset ? -64 : 64)) / 128;
}

double Pattern::bias(int64_t column) const {
  return (static_cast<double>(mixed(0, kBiasStream, column) % 63) - 31) * kUnit;
}

void true_row(const Pattern& pattern, const Options& options, const Case& one, int64_t row,
              TrueRow& truth) {
  const auto width = static_cast<std::size_t>(one.hidden);
  truth.sum.resize(width);
  truth.residual_out.resize(width);
  truth.norm_out.resize(width);
  double squares = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const auto column = static_cast<int64_t>(i);
    const int64_t index = row * one.hidden + column;
    double sum = pattern.input(one, 0, index);
    for (int rank = 1; rank < pattern.ranks; ++rank) sum += pattern.input(one, rank, index);
    truth.sum[i] = round_to_type(sum, one.datatype);
    double value = options.numerics == FCCL_NUMERICS_AS_UNFUSED ? truth.sum[i] : sum;
    if (options.residual) value += pattern.residual(index);
    if (options.bias) value += pattern.bias(column);
    truth.residual_out[i] = round_to_type(value, one.datatype);
    squares += truth.residual_out[i] * truth.residual_out[i];
  }
  const double scale =
      1.0 / std::sqrt(squares / static_cast<double>(one.hidden) + static_cast<double>(options.eps));
  for (std::size_t i = 0; i < width; ++i) {
    const double weight = pattern.weight(static_cast<int64_t>(i), options.weight_offset != 0);
    truth.norm_out[i] =
        truth.residual_out[i] * scale * (options.weight_offset != 0 ? 1 + weight : weight);
  }
}

double true_element(const Pattern& pattern, const Case& one, int rank, int64_t index) {
  switch (one.op) {
    case Op::kReduceScatter:
      return reduce(pattern, one, rank * one.recv_count + index);
    case Op::kAllGather:
      return pattern.input(one, static_cast<int>(index / one.send_count), index % one.send_count);
    case Op::kBroadcast:
      return pattern.input(one, one.root, index);
    default:
      return reduce(pattern, one, index);
  }
}

}  // namespace perf
