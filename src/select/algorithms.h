// Names of algorithms and the grammar of FCCL_ALGO: "name[:bytes],..." each for tensors up to its
// size, one without a size for all that are left.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/layout/args.h"

namespace fccl {

const char* algorithm_name(AlgoKind algo, ProtocolKind protocol);  // "twoshot_rows", ...
int32_t algorithm_number(AlgoKind algo, ProtocolKind protocol);  // fcclAlgo_t
std::vector<std::pair<AlgoKind, ProtocolKind>> all_algorithms();

struct ForcedAlgorithm {
  AlgoKind algo = AlgoKind::Oneshot;
  ProtocolKind protocol = ProtocolKind::Lamport;
  uint64_t up_to_bytes = UINT64_MAX;
};
Result<std::vector<ForcedAlgorithm>> parse_algo_setting(const std::string& setting);
Status check_algo_setting(const std::string& setting);

}  // namespace fccl
