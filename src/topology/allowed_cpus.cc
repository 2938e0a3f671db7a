// See allowed_cpus.h.
#include "topology/allowed_cpus.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "topology/text_file.h"

namespace fccl {

CpuMask current_affinity() {
  constexpr int kKernelCpus = 8192;  // the most that Linux is built for
  const size_t bytes = CPU_ALLOC_SIZE(kKernelCpus);
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(kKernelCpus),
                                                             [](cpu_set_t* s) { CPU_FREE(s); });
  CpuMask mask;
  if (set != nullptr && ::sched_getaffinity(0, bytes, set.get()) == 0) {
    for (int cpu = 0; cpu < kKernelCpus; ++cpu) {
      // Beyond the mask only the number of CPUs counts.
      if (CPU_ISSET_S(cpu, bytes, set.get())) mask.add(cpu % kMaxCpus);
    }
  }
  if (mask.count() == 0) {
    const long online = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
    for (int cpu = 0; cpu < online; ++cpu) mask.add(cpu);
  }
  return mask;
}

namespace {

struct CgroupMount {
  std::string point;  // where it is mounted
  std::string top;  // the cgroup that is mounted there
};

bool lists(const std::string& list, const std::string& word) {
  const std::vector<std::string> words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A line of mountinfo: id parent dev root point options [tags] - type source options
CgroupMount find_mount(const std::string& mountinfo, bool version2) {
  for (const std::string& line : split(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> head = split(line.substr(0, dash), ' ');
    const std::vector<std::string> tail = split(line.substr(dash + 3), ' ');
    if (head.size() < 5 || tail.size() < 3) continue;
    if (version2 ? tail[0] == "cgroup2" : tail[0] == "cgroup" && lists(tail[2], "cpu")) {
      return {head[4], head[3]};
    }
  }
  return {};
}

// "4:cpu,cpuacct:/a/b" or, version 2, "0::/a/b".
std::string find_path(const std::string& cgroup, bool version2) {
  for (const std::string& line : split(cgroup, '\n')) {
    const size_t first = line.find(':');
    if (first == std::string::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version2 ? controllers.empty() : lists(controllers, "cpu")) return line.substr(second + 1);
  }
  return {};
}

// In 1/1000 CPU; 0: no limit in this folder.
uint32_t quota_in(const std::string& folder, bool version2) {
  long long quota = -1, period = 0;
  if (version2) {
    const std::vector<std::string> words = split(read_text_file(folder + "/cpu.max"), ' ');
    if (words.size() == 2 && words[0] != "max") {
      quota = std::atoll(words[0].c_str());
      period = std::atoll(words[1].c_str());
    }
  } else {
    quota = read_number_file(folder + "/cpu.cfs_quota_us", -1);
    period = read_number_file(folder + "/cpu.cfs_period_us", 0);
  }
  constexpr long long kMost = 1000000000;  // microseconds; also keeps the product in range
  if (quota <= 0 || period <= 0 || quota > kMost * 100 || period > kMost) return 0;
  return static_cast<uint32_t>(std::clamp(quota * 1000 / period, 1LL, 1000LL * kMaxCpus));
}

void take_tighter(const std::string& folder, bool version2, CpuQuota* best) {
  const uint32_t millicpus = quota_in(folder, version2);
  if (millicpus == 0 || (best->millicpus != 0 && best->millicpus <= millicpus)) return;
  struct stat found {};
  best->millicpus = millicpus;
  best->group = ::stat(folder.c_str(), &found) == 0 ? static_cast<uint64_t>(found.st_dev) << 40 ^
                                                          static_cast<uint64_t>(found.st_ino)
                                                    : 1;
  if (best->group == 0) best->group = 1;
}

void walk_up(const std::string& root, const std::string& cgroup, const std::string& mountinfo,
             bool version2, CpuQuota* best) {
  const CgroupMount mount = find_mount(mountinfo, version2);
  std::string path = find_path(cgroup, version2);
  if (mount.point.empty() || path.empty()) return;
  // In a container the mount shows the tree from `top` down.
  if (mount.top != "/" && path.compare(0, mount.top.size(), mount.top) == 0) {
    path.erase(0, mount.top.size());
  }
  while (!path.empty() && path != "/") {
    if (path.find("/..") == std::string::npos) {
      take_tighter(root + mount.point + path, version2, best);
    }
    path.erase(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  take_tighter(root + mount.point, version2, best);
}

}  // namespace

CpuQuota read_cpu_quota(const std::string& root) {
  const std::string cgroup = read_text_file(root + "/proc/self/cgroup");
  const std::string mountinfo = read_text_file(root + "/proc/self/mountinfo");
  CpuQuota best;
  walk_up(root, cgroup, mountinfo, false, &best);
  walk_up(root, cgroup, mountinfo, true, &best);
  return best;
}

}  // namespace fccl
