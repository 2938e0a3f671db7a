#include "select/tuner_file.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "device/layout/limits.h"
#include "select/algorithms.h"

namespace fccl {
namespace {

constexpr size_t kMostBytes = 64 << 10;

bool parse_blocks(const std::string& text, int* blocks) {
  constexpr int kMostBlocks = 1024;
  if (text.empty()) return true;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), *blocks);
  return wrong == std::errc() && end == text.data() + text.size() && *blocks >= 0 &&
         *blocks <= kMostBlocks;
}

Result<CostRow> parse_row(const std::string& line, int number) {
  std::istringstream in(line);
  std::string name;
  std::string blocks;  // may be absent
  std::string rest;
  CostRow row;
  row.measured = true;
  const bool read = static_cast<bool>(in >> name >> row.min_ranks >> row.fixed_us >>
                                      row.us_per_mib_pushed >> row.us_per_mib_local);
  in >> blocks;
  if (!read || (in >> rest) || !parse_blocks(blocks, &row.max_blocks))
    return error(Code::InvalidArgument,
                 "tuner file, line %d: needs a name, four numbers and perhaps the most blocks of a "
                 "launch",
                 number);
  bool known = false;
  for (const auto& [algo, protocol] : all_algorithms()) {
    if (name != algorithm_name(algo, protocol)) continue;
    row.algo = algo;
    row.protocol = protocol;
    known = true;
  }
  if (!known)
    return error(
        Code::InvalidArgument, "tuner file, line %d: no algorithm \"%.40s\"", number, name.c_str());
  auto legal = [](double x) { return std::isfinite(x) && x >= 0 && x <= 1e9; };
  if (row.min_ranks < 0 || row.min_ranks > kMaxRanks || !legal(row.fixed_us) ||
      !legal(row.us_per_mib_pushed) || !legal(row.us_per_mib_local))
    return error(Code::InvalidArgument, "tuner file, line %d: a number is out of range", number);
  return row;
}

}  // namespace

Result<std::string> read_tuner_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return errno_error("cannot open FCCL_TUNER_FILE %.200s", path.c_str());
  std::string text(kMostBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMostBytes)
    return error(
        Code::InvalidArgument, "FCCL_TUNER_FILE %.200s is larger than 64 KiB", path.c_str());
  FCCL_TRY(parse_tuner_text(text).status());
  return text;
}

Result<std::vector<CostRow>> parse_tuner_text(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  std::vector<CostRow> rows;
  for (int number = 1; std::getline(in, line); ++number) {
    if (number == 1) {
      if (line != "fccl-tuner 1")
        return error(Code::InvalidArgument, "tuner file, line 1: must be \"fccl-tuner 1\"");
      continue;
    }
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    FCCL_TRY_ASSIGN(row, parse_row(line, number));
    rows.push_back(row);
  }
  if (rows.empty()) return error(Code::InvalidArgument, "tuner file: no algorithm in it");
  return rows;
}

}  // namespace fccl
