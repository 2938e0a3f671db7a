// Detection of facts: the machine by hwloc (loaded at run time) or by sysfs, the process and the
// thread by the kernel. Called by init; nothing here needs root, prints, or fails where facts can
// be had in another way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/config.h"
#include "base/status.h"
#include "topology/facts.h"

namespace fccl {

// The machine as the calling thread sees it, or FCCL_TOPO_FILE; writes FCCL_TOPO_DUMP_FILE. Fails
// only for those two. The machine is looked at once per process, what belongs to the thread each
// time.
Result<MachineFacts> detect_machine(const Config& config);

// The host half of what this rank tells the others; the backend fills `backends`, `memory_kinds`
// and `device` and then calls place_device.
RankFacts local_rank_facts(const MachineFacts& machine, int rank);
// Completes facts->device from the machine: path, links, and the rank's NUMA node.
void place_device(const MachineFacts& machine, RankFacts* facts);

// Random, one per process; a forked child has another.
uint64_t process_token();

// The NUMA node that holds all CPUs the calling thread may run on; -1 if there is no such node.
int numa_node_of_current_thread();
// Asks for pages of `node` (-1: does nothing). A preference, not a demand: an error is for the log.
Status bind_memory(void* memory, size_t bytes, int node);

// The best level of the kernels that this CPU and this system can run, FCCL_CPU_LEVEL at most.
// InvalidArgument if that names a level of another architecture.
CpuLevel detect_cpu_level();
Result<CpuLevel> cpu_level_of(const Config& config);

}  // namespace fccl
