#include "fccl_perf/foreign.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "fccl_perf/numbers_list.h"

namespace perf {
namespace {

struct Variables {
  const char* launcher;
  const char* process;
  const char* processes;
  const char* local_process;
  const char* proof;  // must be set too: a batch script has the others as well
  const char* job;  // tells runs of one user apart
};

constexpr Variables kLaunchers[] = {
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     nullptr,
     "PMIX_NAMESPACE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", nullptr, "PMI_ID"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID", "SLURM_JOB_ID"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", nullptr, "MASTER_PORT"},
};

std::optional<int> variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const auto value = parse_integer(text);
  if (!value || *value < 0 || *value > 1 << 20) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

std::optional<Place> foreign_place() {
  for (const Variables& launcher : kLaunchers) {
    const auto process = variable(launcher.process);
    const auto processes = variable(launcher.processes);
    if (!process || !processes || (launcher.proof && !std::getenv(launcher.proof))) continue;
    Place place;
    place.launcher = launcher.launcher;
    place.process = *process;
    place.processes = *processes;
    place.local_process = variable(launcher.local_process).value_or(*process);
    const char* job = std::getenv(launcher.job);
    std::string name;
    for (const char* letter = job ? job : "0"; *letter != '\0'; ++letter) {
      const bool plain = std::isalnum(static_cast<unsigned char>(*letter)) != 0;
      name += plain ? *letter : '_';
    }
    // The parent is the launcher (or its daemon) for all processes of a host.
    place.default_id_file = fmt::format("/tmp/fccl_perf.{}.{}.{}.id", geteuid(), getppid(), name);
    return place;
  }
  return std::nullopt;
}

}  // namespace perf
