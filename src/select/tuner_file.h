// The tuner file: a cost table as text, written by fccl_perf --tune, read on rank 0 and sent to
// all.
//
//   fccl-tuner 1
//   # algorithm            min_ranks  fixed_us  us_per_mib_pushed  us_per_mib_local  max_blocks
//   oneshot_lamport        2          2.1       2.9                0.2               0
//
// The last number may be absent: the most blocks of a launch, 0 the backend's own choice.
#pragma once
#include <string>
#include <vector>

#include "base/status.h"
#include "select/plan.h"

namespace fccl {

// The text of the file, at most 64 KiB; checked.
Result<std::string> read_tuner_file(const std::string& path);
// InvalidArgument names the line and what is wrong with it.
Result<std::vector<CostRow>> parse_tuner_text(const std::string& text);

}  // namespace fccl
