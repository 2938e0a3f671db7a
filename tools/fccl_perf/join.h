// How a rank gets its device, its unique id and its communicator.
#pragma once

#include <memory>

#include "fccl_perf/runner.h"

namespace perf {

struct Joined {
  std::unique_ptr<Device> device;
  fcclComm_t comm = nullptr;
  std::unique_ptr<Team> team;
};

// On failure nothing is left open.
Outcome join(const RankSetup& setup, Joined& joined);

}  // namespace perf
