// CommFacts from the facts of all ranks: a pure function, so that ranks that exchanged the same
// facts decide the same. It says what should be possible; the self-test of init says what is.
#include <algorithm>
#include <cstring>
#include <set>

#include "topology/facts.h"

namespace fccl {
namespace {

// Two machines with one FCCL_HOSTID are two hosts; one machine with two of them acts as two.
bool same_host(const RankFacts& a, const RankFacts& b) {
  return a.host_id == b.host_id && a.boot_id_hash == b.boot_id_hash;
}

bool same_process(const RankFacts& a, const RankFacts& b) {
  return same_host(a, b) && a.process_token == b.process_token && a.pid == b.pid;
}

bool same_device(const RankFacts& a, const RankFacts& b) {
  return a.has_device != 0 && b.has_device != 0 &&
         std::memcmp(a.device.uuid, b.device.uuid, sizeof a.device.uuid) == 0;
}

bool same_clique(const RankFacts& a, const RankFacts& b) {
  const uint8_t none[16] = {};
  return std::memcmp(a.device.fabric_cluster, none, sizeof none) != 0 &&
         std::memcmp(a.device.fabric_cluster, b.device.fabric_cluster, sizeof none) == 0 &&
         a.device.fabric_clique == b.device.fabric_clique &&
         (a.memory_kinds & b.memory_kinds & kMemoryDeviceFabric) != 0;
}

const DeviceLinkFacts* find_link(const DeviceFacts& from, const DeviceFacts& to) {
  if (to.pci == kNoPci) return nullptr;
  for (uint32_t i = 0; i < from.link_count; ++i) {
    if (from.links[i].peer == to.pci) return &from.links[i];
  }
  return nullptr;
}

// The same answer for (a, b) and (b, a): a link that one end reports is one.
void reach_of_devices(const RankFacts& a, const RankFacts& b, PairFacts* pair) {
  if (!pair->same_host) {
    pair->reach = same_clique(a, b) ? PairClass::Switch : PairClass::Network;
    return;
  }
  if (pair->same_device) {
    pair->reach = PairClass::DirectLink;
    return;
  }
  const DeviceLinkFacts* there = find_link(a.device, b.device);
  const DeviceLinkFacts* back = find_link(b.device, a.device);
  if (there != nullptr || back != nullptr) {
    const bool direct = (there != nullptr && there->through_switch == 0) ||
                        (back != nullptr && back->through_switch == 0);
    pair->reach = direct ? PairClass::DirectLink : PairClass::Switch;
    pair->megabytes_per_second = std::max(there != nullptr ? there->megabytes_per_second : 0,
                                          back != nullptr ? back->megabytes_per_second : 0);
    return;
  }
  const uint32_t shorter = std::min(a.device.pci_path_count, b.device.pci_path_count);
  uint32_t common = 0;
  while (common < shorter && a.device.pci_path[common] == b.device.pci_path[common]) ++common;
  const bool two_nodes = a.device.numa_node >= 0 && b.device.numa_node >= 0 &&
                         a.device.numa_node != b.device.numa_node;
  // The first of a path is the host bridge.
  pair->reach = common >= 2 ? PairClass::Pci : two_nodes ? PairClass::PciNuma : PairClass::PciHost;
}

void reach_of_hosts(const RankFacts& a, const RankFacts& b, PairFacts* pair) {
  const bool two_nodes = a.numa_node >= 0 && b.numa_node >= 0 && a.numa_node != b.numa_node;
  pair->reach = !pair->same_host     ? PairClass::Network
                : two_nodes          ? PairClass::NumaHop
                : pair->same_process ? PairClass::SameProcess
                                     : PairClass::SameNode;
}

PairFacts pair_of(const RankFacts& a, const RankFacts& b, bool of_devices) {
  PairFacts pair;
  pair.same_host = same_host(a, b);
  pair.same_process = same_process(a, b);
  pair.same_device = same_device(a, b);
  if (a.rank == b.rank) return pair;
  if (of_devices) {
    reach_of_devices(a, b, &pair);
  } else {
    reach_of_hosts(a, b, &pair);
  }
  return pair;
}

CpuMask allowed_of(const RankFacts& facts) {
  CpuMask mask;
  std::copy(facts.allowed, facts.allowed + mask.words.size(), mask.words.begin());
  return mask;
}

void gather_hosts(CommFacts* comm) {
  comm->host_of.resize(static_cast<size_t>(comm->ranks));
  for (const RankFacts& facts : comm->rank) {
    size_t host = 0;
    while (host < comm->hosts.size() &&
           !same_host(facts, comm->rank[static_cast<size_t>(comm->hosts[host].ranks[0])])) {
      ++host;
    }
    if (host == comm->hosts.size()) {
      comm->hosts.emplace_back();
      comm->hosts[host].host_id = facts.host_id;
      comm->hosts[host].name = facts.host_name;
    }
    comm->hosts[host].ranks.push_back(facts.rank);
    comm->host_of[static_cast<size_t>(facts.rank)] = static_cast<int>(host);
  }
}

// The CPUs that the ranks of one host share: the union of their masks, cut by cgroup quotas if each
// rank is under one (ranks of one cgroup share its quota).
int cpus_of_host(const CommFacts& comm, const HostFacts& host) {
  CpuMask all;
  std::set<uint64_t> groups;
  uint64_t millicpus = 0;
  bool limited = true;
  for (int rank : host.ranks) {
    const RankFacts& facts = comm.rank[static_cast<size_t>(rank)];
    all.add(allowed_of(facts));
    if (facts.quota_millicpus == 0) {
      limited = false;
    } else if (groups.insert(facts.quota_group).second) {
      millicpus += facts.quota_millicpus;
    }
  }
  const int cpus = all.count();
  if (!limited) return cpus;
  return std::max(
      1, static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(cpus), millicpus / 1000)));
}

// More ranks than CPUs: on the whole host, or within the CPUs that some rank is bound to.
bool oversubscribed(const CommFacts& comm, const HostFacts& host) {
  if (static_cast<int>(host.ranks.size()) > host.cpus) return true;
  for (int rank : host.ranks) {
    const CpuMask mask = allowed_of(comm.rank[static_cast<size_t>(rank)]);
    int inside = 0;
    for (int peer : host.ranks) {
      inside += allowed_of(comm.rank[static_cast<size_t>(peer)]).inside(mask) ? 1 : 0;
    }
    if (inside > mask.count()) return true;
  }
  return false;
}

void summarise_hosts(CommFacts* comm) {
  for (HostFacts& host : comm->hosts) {
    host.cpus = cpus_of_host(*comm, host);
    comm->oversubscribed = comm->oversubscribed || oversubscribed(*comm, host);
    comm->max_ranks_per_host =
        std::max(comm->max_ranks_per_host, static_cast<int>(host.ranks.size()));
    std::set<int> nodes;
    for (int rank : host.ranks) {
      const int node = comm->rank[static_cast<size_t>(rank)].numa_node;
      if (node >= 0) nodes.insert(node);
    }
    comm->numa_nodes = std::max(comm->numa_nodes, static_cast<int>(nodes.size()));
  }
  comm->same_host = comm->hosts.size() == 1;
}

void summarise_ranks(CommFacts* comm) {
  comm->backends = ~0u;
  comm->memory_kinds = ~0u;
  comm->cpu_level = CpuLevel::V4;
  comm->min_llc_bytes = ~uint64_t{0};
  comm->min_sm_count = comm->min_arch = comm->of_devices ? ~0u : 0u;
  for (const RankFacts& facts : comm->rank) {
    comm->backends &= facts.backends;
    comm->memory_kinds &= facts.memory_kinds;
    comm->cpu_level = std::min(comm->cpu_level, static_cast<CpuLevel>(facts.cpu_level));
    comm->min_llc_bytes = std::min(comm->min_llc_bytes, facts.llc_bytes);
    if (!comm->of_devices) continue;
    comm->min_sm_count = std::min(comm->min_sm_count, facts.device.sm_count);
    comm->min_arch = std::min(comm->min_arch, facts.device.arch);
    comm->max_arch = std::max(comm->max_arch, facts.device.arch);
  }
}

void summarise_pairs(CommFacts* comm) {
  comm->same_process = true;
  comm->full_mesh = comm->switched = comm->one_clique = comm->of_devices && comm->ranks > 1;
  for (int a = 0; a < comm->ranks; ++a) {
    for (int b = a + 1; b < comm->ranks; ++b) {
      const PairFacts& pair = comm->pair(a, b);
      const bool over_switch = pair.reach == PairClass::Switch;
      comm->farthest = std::max(comm->farthest, pair.reach);
      comm->same_process = comm->same_process && pair.same_process;
      comm->switched = comm->switched && over_switch;
      comm->full_mesh = comm->full_mesh && (over_switch || pair.reach == PairClass::DirectLink);
      comm->one_clique = comm->one_clique && same_clique(comm->rank[static_cast<size_t>(a)],
                                                         comm->rank[static_cast<size_t>(b)]);
      if (pair.same_device && comm->shared_device_rank[0] < 0) {
        comm->shared_device_rank[0] = a;
        comm->shared_device_rank[1] = b;
      }
    }
  }
}

}  // namespace

CommFacts classify(const std::vector<RankFacts>& facts, Between between) {
  CommFacts comm;
  comm.ranks = static_cast<int>(facts.size());
  comm.rank = facts;
  if (facts.empty()) return comm;
  const bool all_have_devices =
      std::all_of(facts.begin(), facts.end(), [](const RankFacts& f) { return f.has_device != 0; });
  comm.of_devices = between != Between::Hosts && all_have_devices;
  comm.pairs.reserve(facts.size() * facts.size());
  for (const RankFacts& a : facts) {
    for (const RankFacts& b : facts) comm.pairs.push_back(pair_of(a, b, comm.of_devices));
  }
  gather_hosts(&comm);
  summarise_hosts(&comm);
  summarise_ranks(&comm);
  summarise_pairs(&comm);
  return comm;
}

const char* pair_class_name(PairClass pair) {
  switch (pair) {
    case PairClass::Self:
      return "self";
    case PairClass::SameProcess:
      return "same process";
    case PairClass::SameNode:
      return "same node";
    case PairClass::NumaHop:
      return "NUMA hop";
    case PairClass::DirectLink:
      return "direct link";
    case PairClass::Switch:
      return "switch";
    case PairClass::Pci:
      return "PCI bridge";
    case PairClass::PciHost:
      return "PCI over host";
    case PairClass::PciNuma:
      return "PCI over NUMA nodes";
    case PairClass::Network:
      return "network";
  }
  return "unknown";
}

}  // namespace fccl
