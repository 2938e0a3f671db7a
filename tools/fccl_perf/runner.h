// One rank's run: joins the communicator, goes through the sweep, checks and measures; rank 0
// collects the report and prints the table.
#pragma once

#include <fccl/fccl.h>

#include <string>

#include "fccl_perf/options.h"
#include "fccl_perf/result.h"
#include "fccl_perf/team.h"

namespace perf {

struct RankSetup {
  const Options* options = nullptr;
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;  // on this host: picks the GPU
  SharedBlock* block = nullptr;  // ours to use, or null under a foreign launcher
  std::string id_file;  // under a foreign launcher: where the id is passed
  std::string folder;  // prefix of private paths of the run
};

// Exit status: 0 all well, 1 a wrong result or a regression. A failure of the run is the Outcome.
Outcome run_rank(const RankSetup& setup, int& status);

}  // namespace perf
