#include "fccl_perf/numbers_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace perf {
namespace {

constexpr std::size_t kMostNumbers = 4096;  // a longer list is a slip of the hand

bool append_range(std::string_view text, std::vector<int64_t>& numbers) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    const auto value = parse_integer(text);
    if (!value) return false;
    numbers.push_back(*value);
    return true;
  }
  const std::string_view rest = text.substr(dots + 2);
  const std::size_t mark = rest.find_first_of("*+");
  const auto first = parse_integer(text.substr(0, dots));
  const auto last = parse_integer(rest.substr(0, mark));
  const bool factor = mark != std::string_view::npos && rest[mark] == '*';
  const auto step = mark == std::string_view::npos ? std::optional<int64_t>(1)
                                                   : parse_integer(rest.substr(mark + 1));
  if (!first || !last || !step || *first < 1 || *last < *first || *step < (factor ? 2 : 1))
    return false;
  for (int64_t value = *first; value <= *last; value = factor ? value * *step : value + *step) {
    if (numbers.size() >= kMostNumbers) return false;
    numbers.push_back(value);
    if (factor && value > *last / *step) break;
  }
  return true;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::size_t> parse_size(std::string_view text) {
  if (text.empty()) return std::nullopt;
  double unit = 1;
  switch (text.back()) {
    case 'k':
    case 'K':
      unit = 1024.0;
      break;
    case 'm':
    case 'M':
      unit = 1024.0 * 1024;
      break;
    case 'g':
    case 'G':
      unit = 1024.0 * 1024 * 1024;
      break;
    default:
      break;
  }
  if (unit != 1) text.remove_suffix(1);
  const auto value = parse_real(text);
  if (!value || *value < 0 || *value * unit > 1e15) return std::nullopt;
  return static_cast<std::size_t>(*value * unit);
}

std::optional<std::vector<int64_t>> parse_integers(std::string_view text) {
  std::vector<int64_t> numbers;
  for (const std::string& part : split_list(text)) {
    if (!append_range(part, numbers)) return std::nullopt;
  }
  std::vector<int64_t> unique;
  for (const int64_t value : numbers) {
    if (std::find(unique.begin(), unique.end(), value) == unique.end()) unique.push_back(value);
  }
  return unique;
}

}  // namespace perf
