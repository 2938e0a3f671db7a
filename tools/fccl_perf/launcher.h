// Starts the ranks: processes of ours (forked before the first call of fccl) with threads in them,
// or the one process that mpirun, srun or torchrun made. Watches them: a rank that fails or dies
// ends the run, and what each rank had to say is printed.
#pragma once

#include "fccl_perf/options.h"

namespace perf {

// Runs the sweep of the options on all ranks; returns the exit status. `quiet`: says nothing of
// failures.
int launch(const Options& options, bool quiet = false);

}  // namespace perf
