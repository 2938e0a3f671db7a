// What a run found, as plain data: rank 0 fills it, the writers (table, JSON, CSV, plots,
// comparison) read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fccl_perf/case.h"
#include "fccl_perf/statistics.h"

namespace perf {

struct PeerResult {
  std::string name;
  std::string description;
  std::string problem;  // why it did not run; the rest is void then
  Summary summary;
  double us = 0;  // the peer's time: median over the rounds
  double own_us = 0;  // ours in the same rounds
  Ratio ratio;  // us / own_us, by rounds
  int64_t wrong = 0;
};

// What the library said it would do with the case (fcclCommQuery); "-" where it cannot be asked.
struct Plan {
  std::string algorithm = "-";
  int64_t launches = 0;
  int64_t wire_bytes = 0;
  int blocks = 0;
};

// One measurement: a case, in place or not.
struct Result {
  Case one;
  bool in_place = false;
  int64_t cycle = 0;
  Plan plan;
  Summary summary;  // of the samples, combined over ranks, in us
  double noise = 0;  // relative half-width of the median's 95 % interval
  double time_us = 0;  // nccl-tests' time column
  double host_us = 0;
  double algbw = 0;  // GB/s
  double busbw = 0;
  int64_t wrong = 0;
  std::string first_wrong;
  int64_t checks = 0;  // checked iterations; 0: not checked
  std::vector<double> samples;
  std::vector<PeerResult> peers;
};

struct RankInfo {
  int rank = 0;
  int pid = 0;
  int device = -1;
  char host[64] = {};
  char bus_id[32] = {};
  char name[96] = {};
};

struct Report {
  std::string start_time;
  std::string end_time;
  int ranks = 1;
  int threads = 1;
  bool cpu = true;
  std::string mode;
  std::vector<RankInfo> devices;
  std::vector<Result> results;
  std::vector<std::string> notes;  // what was compared, what could not run
  int64_t wrong = 0;
  double bus_bandwidth = 0;  // mean over the measurements
  std::string memory;  // -M
};

}  // namespace perf
