// Inits that are expected to fail: all ways into a communicator, for all ranks as threads, and what
// came of it on each rank.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "harness/ranks.h"

namespace fccl::test {

struct Outcome {
  fcclResult_t code = fcclSuccess;
  std::string text;
  bool has_handle = false;
};

// Init of all ranks as threads, with settings of their own.
std::vector<Outcome> init_all(int ranks, const fcclConfig& config,
                              const std::function<void(int, fcclConfig&)>& change = nullptr);

std::string shown(const std::vector<Outcome>& outcomes);

// "" if all ranks succeeded, or all failed with one code and texts that name `rank`, in which case
// none has a handle; else what is wrong.
std::string judged(const std::vector<Outcome>& outcomes, int rank);

// A way in runs with FCCL_TEST_FAULT=`fault` for all ranks and destroys what it got. "" is a way
// that succeeds.
struct WayIn {
  const char* name;
  std::vector<Outcome> (*run)(const RanksOptions& options, const std::string& fault);
};
// InitRank, InitRank in the background, InitAll (one outcome: it is one call), InitAllgather, and a
// Split of a communicator that was made without the fault and must be whole afterwards.
const std::vector<WayIn>& ways_in();

}  // namespace fccl::test
