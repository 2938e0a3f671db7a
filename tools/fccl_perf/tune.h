// --tune: measures each algorithm over the shapes and writes the cost table that FCCL_TUNER_FILE
// loads.
#pragma once

#include "fccl_perf/options.h"

namespace perf {

int tune(const Options& options);

}  // namespace perf
