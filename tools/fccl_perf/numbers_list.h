// Reading numbers from the command line: sizes with K, M, G, lists and ranges. Strict: all of the
// text must be understood.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

std::vector<std::string> split_list(std::string_view text, char separator = ',');

std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);
// 8, 64K, 1.5M, 2G, with powers of 1024 as nccl-tests has them.
std::optional<std::size_t> parse_size(std::string_view text);

// Lists and ranges of positive integers: "1,4,16", "1..64" (each), "1..256*2" (factor),
// "128..1024+128" (step). Duplicates are dropped, order is kept.
std::optional<std::vector<int64_t>> parse_integers(std::string_view text);

}  // namespace perf
