// See reference.h. Compiled without contraction: each operator below is one rounding.
#include "harness/reference.h"

#include <cmath>
#include <cstdio>

namespace fccl::test {
namespace {

float round_to(TypeKind type, float value) {
  return value_of(type, rounded_bits(type, value));
}

// Step 1: x[0] + x[1] + ... in rank order.
float sum_of_ranks(const FusedInputs& in, int64_t row, int64_t column) {
  float sum = in.x[0].at(row, column);
  for (size_t rank = 1; rank < in.x.size(); ++rank) sum = sum + in.x[rank].at(row, column);
  return in.as_unfused ? round_to(in.type(), sum) : sum;
}

// Step 2: residual, then bias, in fp32; rounded once by the caller.
float add_residual_and_bias(const FusedInputs& in, int64_t row, int64_t column, float sum) {
  if (in.residual) sum = sum + in.residual->at(row, column);
  if (in.bias) sum = sum + in.bias->at(0, column);
  return sum;
}

float weight_at(const FusedInputs& in, int64_t column) {
  const float weight = in.weight.at(0, column);
  return in.weight_plus_one ? 1.0f + weight : weight;
}

float fold(int op, float a, float b) {
  switch (op) {
    case 1:
      return a * b;
    case 2:
    case 3: {
      if (std::isnan(a) || std::isnan(b)) return std::nanf("");
      if (a == b) {  // +0 is above -0
        const bool want_negative = op == 3;
        return std::signbit(a) == want_negative ? a : b;
      }
      return (a < b) == (op == 3) ? a : b;
    }
    default:
      return a + b;
  }
}

bool row_is_finite(const FusedInputs& in, const FusedOutputs& out, int64_t row) {
  for (int64_t c = 0; c < in.hidden(); ++c) {
    if (!std::isfinite(out.residual_out.at(row, c))) return false;
    for (const Matrix& x : in.x)
      if (!std::isfinite(x.at(row, c))) return false;
  }
  return true;
}

struct ExactSum {
  double value = 0;
  double magnitude = 0;  // sum of absolute values
};

ExactSum exact_sum(const FusedInputs& in, int64_t row, int64_t column) {
  ExactSum sum;
  const auto add = [&sum](double x) {
    sum.value += x;
    sum.magnitude += std::fabs(x);
  };
  for (const Matrix& x : in.x) add(x.at(row, column));
  if (in.residual) add(in.residual->at(row, column));
  if (in.bias) add(in.bias->at(0, column));
  return sum;
}

// Half a unit for the rounding to T (and again after the sum, "as unfused"), and half a unit of
// fp32 for each addition.
double sum_bound(const FusedInputs& in, const ExactSum& sum) {
  const double additions = static_cast<double>(in.x.size()) + 1;
  const double in_fp32 = additions * 0.5 * unit_of(TypeKind::F32, sum.magnitude);
  const double rounding = 0.5 * unit_of(in.type(), std::fabs(sum.value) + in_fp32);
  return rounding + in_fp32 + (in.as_unfused ? unit_of(in.type(), sum.magnitude) : 0.0);
}

std::string describe(const char* name, int64_t row, int64_t column, double got, double want,
                     double ulps) {
  char text[160];
  std::snprintf(text,
                sizeof text,
                "%s[%lld, %lld] = %.9g, float64 says %.9g: %.3g ulp",
                name,
                static_cast<long long>(row),
                static_cast<long long>(column),
                got,
                want,
                ulps);
  return text;
}

}  // namespace

float tree_of_squares(const std::vector<float>& x) {
  std::vector<float> level;
  for (size_t i = 0; i < x.size(); i += 2) {
    const float second = i + 1 < x.size() ? x[i + 1] : 0.0f;
    level.push_back(std::fma(second, second, x[i] * x[i]));
  }
  while (level.size() > 1) {
    if (level.size() % 2 != 0) level.push_back(0.0f);
    for (size_t i = 0; i < level.size() / 2; ++i) level[i] = level[2 * i] + level[2 * i + 1];
    level.resize(level.size() / 2);
  }
  return level[0];
}

FusedOutputs fused_reference(const FusedInputs& in) {
  const TypeKind type = in.type();
  const int64_t hidden = in.hidden();
  FusedOutputs out{Matrix(type, in.tokens(), hidden),
                   Matrix(type, in.tokens(), hidden),
                   Matrix(type, in.tokens(), hidden)};
  const float inverse_hidden = 1.0f / static_cast<float>(hidden);
  std::vector<float> h(static_cast<size_t>(hidden));
  for (int64_t row = 0; row < in.tokens(); ++row) {
    for (int64_t c = 0; c < hidden; ++c) {
      const float sum = sum_of_ranks(in, row, c);
      out.sum.set(row, c, sum);
      out.residual_out.set(row, c, add_residual_and_bias(in, row, c, sum));
      h[static_cast<size_t>(c)] = out.residual_out.at(row, c);  // the rounded value
    }
    const float v = std::fma(tree_of_squares(h), inverse_hidden, in.eps);
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(v)));
    for (int64_t c = 0; c < hidden; ++c) {
      const float scaled = h[static_cast<size_t>(c)] * scale;
      out.norm_out.set(row, c, scaled * weight_at(in, c));
    }
  }
  return out;
}

std::string outside_float64_bounds(const FusedInputs& in, const FusedOutputs& out) {
  const TypeKind type = in.type();
  const double bound = type == TypeKind::F32 ? 4 : 1;
  for (int64_t row = 0; row < in.tokens(); ++row) {
    if (!row_is_finite(in, out, row)) continue;
    double squares = 0;
    for (int64_t c = 0; c < in.hidden(); ++c) {
      const double h = out.residual_out.at(row, c);
      squares += h * h;
      const ExactSum sum = exact_sum(in, row, c);
      if (!(std::fabs(h - sum.value) <= sum_bound(in, sum)))
        return describe("residual_out",
                        row,
                        c,
                        h,
                        sum.value,
                        std::fabs(h - sum.value) / unit_of(type, sum.value));
    }
    const double mean = squares / static_cast<double>(in.hidden()) + static_cast<double>(in.eps);
    // Squares that leave the range of fp32: the contract says what happens, float64 knows nothing
    // of it.
    if (mean < 1e-30 || squares > 1e37) continue;
    for (int64_t c = 0; c < in.hidden(); ++c) {
      const double weight =
          static_cast<double>(in.weight.at(0, c)) + (in.weight_plus_one ? 1.0 : 0.0);
      const double exact = out.residual_out.at(row, c) / std::sqrt(mean) * weight;
      const double ulps = ulps_apart(type, out.norm_out.at(row, c), exact);
      if (!(ulps <= bound))
        return describe("norm_out", row, c, out.norm_out.at(row, c), exact, ulps);
    }
  }
  return "";
}

Matrix reduce_reference(const std::vector<Matrix>& x, int op) {
  Matrix out(x[0].type(), x[0].rows(), x[0].columns());
  for (int64_t row = 0; row < out.rows(); ++row) {
    for (int64_t c = 0; c < out.columns(); ++c) {
      float sum = x[0].at(row, c);
      for (size_t rank = 1; rank < x.size(); ++rank) sum = fold(op, sum, x[rank].at(row, c));
      out.set(row, c, op == 4 ? sum / static_cast<float>(x.size()) : sum);
    }
  }
  return out;
}

Matrix copy_reference(const Matrix& x) {
  Matrix out(x.type(), x.rows(), x.columns());
  for (int64_t row = 0; row < x.rows(); ++row)
    for (int64_t c = 0; c < x.columns(); ++c) out.set(row, c, x.at(row, c));
  return out;
}

}  // namespace fccl::test
