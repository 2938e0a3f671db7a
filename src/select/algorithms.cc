// The names and numbers of algorithms, and the grammar of FCCL_ALGO.
#include "select/algorithms.h"

#include <fccl/fccl.h>

#include "base/config.h"

namespace fccl {
namespace {

struct Row {
  AlgoKind algo;
  ProtocolKind protocol;
  const char* name;
  int32_t number;
};
constexpr Row kRows[] = {
    {AlgoKind::Oneshot, ProtocolKind::Lamport, "oneshot_lamport", fcclAlgoOneshotLamport},
    {AlgoKind::Oneshot, ProtocolKind::LL, "oneshot_ll", fcclAlgoOneshotLL},
    {AlgoKind::Oneshot, ProtocolKind::Flags, "oneshot_flags", fcclAlgoOneshotFlags},
    {AlgoKind::TwoshotRows, ProtocolKind::Flags, "twoshot_rows", fcclAlgoTwoshotRows},
    {AlgoKind::TwoshotCols, ProtocolKind::Flags, "twoshot_cols", fcclAlgoTwoshotCols},
    {AlgoKind::TwoshotRows,
     ProtocolKind::Lamport,
     "twoshot_rows_lamport",
     fcclAlgoTwoshotRowsLamport},
    {AlgoKind::TwoshotCols,
     ProtocolKind::Lamport,
     "twoshot_cols_lamport",
     fcclAlgoTwoshotColsLamport},
};

const Row* find(AlgoKind algo, ProtocolKind protocol) {
  for (const Row& row : kRows)
    if (row.algo == algo && row.protocol == protocol) return &row;
  return nullptr;
}

std::string all_names() {
  std::string names;
  for (const Row& row : kRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace

const char* algorithm_name(AlgoKind algo, ProtocolKind protocol) {
  const Row* row = find(algo, protocol);
  return row == nullptr ? "none" : row->name;
}

int32_t algorithm_number(AlgoKind algo, ProtocolKind protocol) {
  const Row* row = find(algo, protocol);
  return row == nullptr ? fcclAlgoNone : row->number;
}

std::vector<std::pair<AlgoKind, ProtocolKind>> all_algorithms() {
  std::vector<std::pair<AlgoKind, ProtocolKind>> list;
  for (const Row& row : kRows) list.emplace_back(row.algo, row.protocol);
  return list;
}

Result<std::vector<ForcedAlgorithm>> parse_algo_setting(const std::string& setting) {
  std::vector<ForcedAlgorithm> list;
  size_t at = 0;
  while (at < setting.size()) {
    const size_t comma = std::min(setting.find(',', at), setting.size());
    std::string item = setting.substr(at, comma - at);
    at = comma + 1;
    ForcedAlgorithm forced;
    const size_t colon = item.find(':');
    if (colon != std::string::npos) {
      const Result<int64_t> bytes = parse_size(item.substr(colon + 1));
      if (!bytes.ok())
        return error(Code::InvalidArgument, "FCCL_ALGO: %s", bytes.status().text().c_str());
      auto copy = bytes;
      forced.up_to_bytes = static_cast<uint64_t>(*copy);
      item.resize(colon);
    }
    const Row* found = nullptr;
    for (const Row& row : kRows)
      if (item == row.name) found = &row;
    if (found == nullptr)
      return error(Code::InvalidArgument,
                   "FCCL_ALGO names \"%.64s\"; known: %s",
                   item.c_str(),
                   all_names().c_str());
    forced.algo = found->algo;
    forced.protocol = found->protocol;
    list.push_back(forced);
  }
  return list;
}

Status check_algo_setting(const std::string& setting) {
  return parse_algo_setting(setting).status();
}

}  // namespace fccl
