// The place of this process in a run that another program started.
#pragma once

#include <optional>
#include <string>

namespace perf {

struct Place {
  const char* launcher = "";
  int process = 0;
  int processes = 1;
  int local_process = 0;
  std::string default_id_file;  // good for one host
};

// By the environment of mpirun (Open MPI, MPICH), srun and torchrun; nothing if there is none.
std::optional<Place> foreign_place();

}  // namespace perf
