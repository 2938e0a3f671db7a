#include "fccl_perf/workbench.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "fccl_perf/numbers.h"

namespace perf {
namespace {

constexpr std::size_t kMostRotatedBytes = std::size_t{1} << 30;

double norm_tolerance(int datatype) {
  return datatype == fcclFloat32 ? 4 : 1;
}

// A NaN as input is all ones: the bit pattern that a protocol may use as "nothing here yet".
void store_input(std::vector<char>& content, int64_t index, int datatype, double value) {
  if (!std::isnan(value)) {
    store_number(content.data(), index, datatype, value);
    return;
  }
  const std::size_t size = type_bytes(datatype);
  std::memset(content.data() + static_cast<std::size_t>(index) * size, 0xff, size);
}

bool wants(const std::string& inject, const char* fault) {
  return inject == fault;
}

}  // namespace

Workbench::Workbench(const Options& options, Device* device, fcclComm_t comm, int rank, int ranks)
    : options_(options), device_(device), comm_(comm), rank_(rank), ranks_(ranks) {}

void Workbench::own_rows(const Placement& place, int64_t& first, int64_t& count) const {
  first = 0;
  count = case_.tokens;
  if (place.sharded) static_cast<void>(fcclRowRange(case_.tokens, ranks_, rank_, &first, &count));
}

Outcome Workbench::prepare(const Case& one) {
  case_ = one;
  const std::size_t element = type_bytes(one.datatype);
  const std::size_t shift = static_cast<std::size_t>(options_.unalign) * element;
  const auto send = static_cast<std::size_t>(one.send_count) * element;
  const auto receive = static_cast<std::size_t>(one.recv_count) * element;
  const bool fused = is_fused_shape(one.op);
  const std::size_t all = fused ? 4 * send : send + receive;
  int sets = options_.rotate;
  while (sets > 1 && all * static_cast<std::size_t>(sets) > kMostRotatedBytes) --sets;
  sets_.resize(static_cast<std::size_t>(sets));
  const auto reserve = [&](Buffer& buffer, std::size_t bytes) {
    return buffer.reserve(device_, comm_, options_.local_register, bytes, shift);
  };
  for (std::unique_ptr<Set>& set : sets_) {
    if (!set) set = std::make_unique<Set>();
    // In place, the scattered and gathered collectives read or write a part of the larger buffer.
    PERF_TRY(reserve(set->input, send));
    PERF_TRY(reserve(set->norm_out, receive));
    if (!fused) continue;
    PERF_TRY(reserve(set->residual, send));
    PERF_TRY(reserve(set->residual_out, send));
    PERF_TRY(reserve(set->allreduce_out, send));
  }
  if (!fused) return {};
  const int weight_type = options_.weight_f32 ? static_cast<int>(fcclFloat32) : one.datatype;
  const Pattern pattern{options_.seed, ranks_, false};
  std::vector<char> weight(static_cast<std::size_t>(one.hidden) * type_bytes(weight_type));
  std::vector<char> bias(static_cast<std::size_t>(one.hidden) * element);
  for (int64_t i = 0; i < one.hidden; ++i) {
    store_number(weight.data(), i, weight_type, pattern.weight(i, options_.weight_offset != 0));
    store_number(bias.data(), i, one.datatype, pattern.bias(i));
  }
  PERF_TRY(reserve(weight_, weight.size()));
  PERF_TRY(reserve(bias_, bias.size()));
  PERF_TRY(weight_.fill(weight.data()));
  return bias_.fill(bias.data());
}

Outcome Workbench::fill(int which, const Pattern& pattern, const Placement& place) {
  Set& set = *sets_[static_cast<std::size_t>(which)];
  const bool fused = is_fused_shape(case_.op);
  set.input_copy.resize(set.input.bytes());
  for (int64_t i = 0; i < case_.send_count; ++i) {
    store_input(set.input_copy, i, case_.datatype, pattern.input(case_, rank_, i));
  }
  PERF_TRY(set.input.fill(set.input_copy.data()));
  PERF_TRY(set.norm_out.fill_canary());
  if (!fused) {
    if (place.in_place && case_.op == Op::kAllGather) {
      const std::size_t bytes = set.input.bytes();
      return device_->upload(set.norm_out.data() + static_cast<std::size_t>(rank_) * bytes,
                             set.input_copy.data(),
                             bytes);
    }
    return {};
  }
  set.residual_copy.resize(set.residual.bytes());
  for (int64_t i = 0; i < case_.send_count; ++i) {
    store_number(set.residual_copy.data(), i, case_.datatype, pattern.residual(i));
  }
  PERF_TRY(set.residual.fill(set.residual_copy.data()));
  PERF_TRY(set.residual_out.fill_canary());
  return set.allreduce_out.fill_canary();
}

Operands Workbench::operands(int which, const Placement& place) const {
  Set& set = *sets_[static_cast<std::size_t>(which)];
  const std::size_t element = type_bytes(case_.datatype);
  Operands o;
  o.input = set.input.data();
  o.norm_out = set.norm_out.data();
  if (is_fused_shape(case_.op)) {
    int64_t first = 0;
    int64_t count = 0;
    own_rows(place, first, count);
    const std::size_t skip = static_cast<std::size_t>(first * case_.hidden) * element;
    Buffer& residual_out = place.in_place ? set.residual : set.residual_out;
    o.residual = options_.residual ? set.residual.data() + skip : nullptr;
    o.weight = weight_.data();
    o.bias = options_.bias ? bias_.data() : nullptr;
    o.residual_out = options_.residual_out ? residual_out.data() + skip : nullptr;
    o.allreduce_out = options_.allreduce_out ? set.allreduce_out.data() : nullptr;
    if (place.in_place) o.norm_out = set.input.data();
    return o;
  }
  if (!place.in_place) return o;
  if (case_.op == Op::kAllGather) {
    o.input = set.norm_out.data() + static_cast<std::size_t>(rank_ * case_.send_count) * element;
  } else if (case_.op == Op::kReduceScatter) {
    o.norm_out = set.input.data() + static_cast<std::size_t>(rank_ * case_.recv_count) * element;
  } else {
    o.norm_out = set.input.data();
  }
  return o;
}

void Workbench::compare(const std::vector<char>& content, int64_t index, double truth, double ulps,
                        const char* name, CheckResult& result) {
  const uint32_t bits = load_bits(content.data(), index, case_.datatype);
  const double actual = bits_to_number(bits, case_.datatype);
  const uint32_t canonical = case_.datatype == fcclFloat32 ? 0x7fffffffu : 0x7fffu;
  const bool right =
      std::isnan(truth)
          ? std::isnan(actual) && (bits == canonical || !canonical_nan_)
          : !std::isnan(actual) && ulp_distance(actual, truth, case_.datatype) <= ulps;
  if (right) return;
  if (result.wrong++ > 0) return;
  const std::string place =
      is_fused_shape(case_.op)
          ? fmt::format("row {} column {}", index / case_.hidden, index % case_.hidden)
          : fmt::format("element {}", index);
  result.first = fmt::format("rank {} {} {}: got {} (0x{:x}), true is {}, tolerance {} ulp",
                             rank_,
                             name,
                             place,
                             actual,
                             bits,
                             truth,
                             ulps);
}

Outcome Workbench::take(const Buffer& buffer, const std::string& inject, const char* name,
                        std::vector<char>& content, CheckResult& result) {
  bool guards = true;
  PERF_TRY(buffer.download(content, guards));
  if (wants(inject, "canary")) guards = false;
  if (!content.empty()) {
    const std::size_t size = type_bytes(case_.datatype);
    if (wants(inject, "flip")) content[size - 1] = static_cast<char>(content[size - 1] ^ 0x10);
    if (wants(inject, "nan")) std::memset(content.data(), 0xff, size);
    if (wants(inject, "unwritten")) std::memset(content.data(), 0xa5, size);
  }
  if (guards) return {};
  if (result.wrong++ == 0)
    result.first =
        fmt::format("rank {} {}: bytes outside the buffer were overwritten", rank_, name);
  return {};
}

Outcome Workbench::check_input(const Buffer& buffer, const std::vector<char>& copy, bool spoil,
                               const char* name, CheckResult& result) {
  std::vector<char> content;
  bool guards = true;
  PERF_TRY(buffer.download(content, guards));
  if (spoil && !content.empty()) content[0] = static_cast<char>(content[0] ^ 1);
  if (guards && content == copy) return {};
  if (result.wrong++ == 0)
    result.first = fmt::format("rank {} {}: the call changed its input", rank_, name);
  return {};
}

// An own row has the truth; a row of another owner must be as it was.
void Workbench::check_residual(const Set& set, const std::vector<char>& content,
                               const TrueRow& truth, int64_t row, const Placement& place,
                               CheckResult& result) {
  int64_t first = 0;
  int64_t count = 0;
  own_rows(place, first, count);
  if (row >= first && row < first + count) {
    for (int64_t column = 0; column < case_.hidden; ++column) {
      compare(content,
              row * case_.hidden + column,
              truth.residual_out[static_cast<std::size_t>(column)],
              0,
              "residual_out",
              result);
    }
    return;
  }
  const std::size_t bytes = static_cast<std::size_t>(case_.hidden) * type_bytes(case_.datatype);
  const std::size_t begin = static_cast<std::size_t>(row) * bytes;
  bool untouched = true;
  for (std::size_t i = begin; i < begin + bytes; ++i) {
    untouched =
        untouched && content[i] == (place.in_place ? set.residual_copy[i] : Buffer::kCanary);
  }
  if (untouched) return;
  if (result.wrong++ == 0)
    result.first = fmt::format(
        "rank {} residual_out row {}: belongs to another rank and was written", rank_, row);
}

Outcome Workbench::check_fused(Set& set, const Pattern& pattern, const Placement& place,
                               const std::string& inject, CheckResult& result) {
  std::vector<char> norm;
  std::vector<char> residual;
  std::vector<char> sum;
  PERF_TRY(take(place.in_place ? set.input : set.norm_out, inject, "norm_out", norm, result));
  if (options_.residual_out)
    PERF_TRY(take(
        place.in_place ? set.residual : set.residual_out, "", "residual_out", residual, result));
  if (options_.allreduce_out) PERF_TRY(take(set.allreduce_out, "", "allreduce_out", sum, result));
  TrueRow truth;
  const double ulps = norm_tolerance(case_.datatype);
  for (int64_t row = 0; row < case_.tokens; ++row) {
    true_row(pattern, options_, case_, row, truth);
    for (int64_t column = 0; column < case_.hidden; ++column) {
      const auto i = static_cast<std::size_t>(column);
      const int64_t index = row * case_.hidden + column;
      compare(norm, index, truth.norm_out[i], ulps, "norm_out", result);
      if (options_.allreduce_out) compare(sum, index, truth.sum[i], 0, "allreduce_out", result);
    }
    if (options_.residual_out) check_residual(set, residual, truth, row, place, result);
  }
  if (!place.in_place)
    PERF_TRY(check_input(set.input, set.input_copy, wants(inject, "input"), "input", result));
  if (!place.in_place || !options_.residual_out) {
    PERF_TRY(check_input(set.residual, set.residual_copy, false, "residual", result));
  }
  return {};
}

Outcome Workbench::check_plain(Set& set, const Pattern& pattern, const Placement& place,
                               const std::string& inject, CheckResult& result) {
  std::vector<char> content;
  const bool scattered = case_.op == Op::kReduceScatter;
  const bool own_buffer = !place.in_place || case_.op == Op::kAllGather;
  PERF_TRY(take(own_buffer ? set.norm_out : set.input, inject, "output", content, result));
  const int64_t first = place.in_place && scattered ? rank_ * case_.recv_count : 0;
  if (first > 0)
    content.erase(content.begin(),
                  content.begin() + first * static_cast<int64_t>(type_bytes(case_.datatype)));
  for (int64_t i = 0; i < case_.recv_count; ++i) {
    compare(content, i, true_element(pattern, case_, rank_, i), 0, "output", result);
  }
  if (place.in_place) return {};
  return check_input(set.input, set.input_copy, wants(inject, "input"), "input", result);
}

Outcome Workbench::check(int which, const Pattern& pattern, const Placement& place,
                         const std::string& inject, CheckResult& result) {
  Set& set = *sets_[static_cast<std::size_t>(which)];
  PERF_TRY(device_->synchronize());
  canonical_nan_ = place.canonical_nan;
  return is_fused_shape(case_.op) ? check_fused(set, pattern, place, inject, result)
                                  : check_plain(set, pattern, place, inject, result);
}

void Workbench::release() {
  sets_.clear();
  weight_.release();
  bias_.release();
}

}  // namespace perf
