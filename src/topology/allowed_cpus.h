// What the calling thread may use of the machine's CPUs: its affinity (which the cpuset bounds) and
// the CPU quota of its cgroup, version 1 or 2. The waits spin or sleep by it.
#pragma once
#include <cstdint>
#include <string>

#include "topology/facts.h"

namespace fccl {

CpuMask current_affinity();

struct CpuQuota {
  uint32_t millicpus = 0;  // 0: none
  uint64_t group = 0;  // names the limiting cgroup, equal in all its processes; 0: none
};
// The tightest quota on the way from this process's cgroup to the root. `root` is "" or a folder
// that stands for / (tests).
CpuQuota read_cpu_quota(const std::string& root);

}  // namespace fccl
