// The methods: how one contestant's calls on one case are timed. Gives this rank's samples; the
// caller combines them over ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "fccl_perf/contestant.h"

namespace perf {

struct Samples {
  std::vector<double> each_us;  // per call
  double mean_us = 0;  // whole time / calls
  double host_us = 0;  // the host's time to issue a call
};

enum class Mode { kEager, kGraph, kSpaced };

// Graph (-G), spaced (each call alone: --cold, --gap, --skew, -z) or plain eager calls in a row.
Mode mode_of(const Options& options);
const char* mode_name(Mode mode, bool cpu);

// `calls`: running number of calls issued by this rank, for the report of a failure.
Outcome warm_up(const Bench& bench, Contestant& contestant, Workbench& workbench, const Case& one,
                const Placement& place, int64_t& calls);
Outcome measure(const Bench& bench, Contestant& contestant, Workbench& workbench, const Case& one,
                const Placement& place, int64_t& calls, Samples& samples);

}  // namespace perf
