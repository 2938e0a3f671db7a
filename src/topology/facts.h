// Facts: what is known of the machine, of each rank and of the communicator, as plain data.
// Detection (detect.h) fills MachineFacts and RankFacts; each rank sends its RankFacts to all
// others as bytes; `classify` turns all of them into CommFacts, the same on every rank. Selection
// reads nothing else. Received RankFacts are untrusted until `validate` has seen them.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace fccl {

inline constexpr int kMaxCpus = 2048;  // CPUs of one host that a mask can name
inline constexpr int kMaxPciPath = 8;  // bridges between the host and a device
inline constexpr int kMaxDeviceLinks = 32;  // devices of one host that a device may have a link to
inline constexpr int kMaxFactRanks = 4096;

// Bits of RankFacts::backends; bit i is fcclBackend_t i.
enum BackendBit : uint32_t { kBackendCpu = 1u << 1, kBackendCuda = 1u << 2, kBackendHip = 1u << 3 };

// Ways to let a peer map memory, best first within a backend. Bits of memory_kinds.
enum MemoryKind : uint32_t {
  kMemoryPointer = 1u << 0,  // threads of one process: the pointer itself
  kMemoryMemfd = 1u << 1,  // sealed memfd over a unix socket
  kMemoryDeviceFd = 1u << 2,  // device allocation shared as a descriptor
  kMemoryDeviceIpc = 1u << 3,  // device allocation shared by an IPC handle
  kMemoryDeviceFabric = 1u << 4,  // device allocation shared over hosts of one fabric clique
  kMemoryAll = (1u << 5) - 1,
};

enum class CpuLevel : int32_t { Scalar = 0, Neon = 1, V2 = 2, V3 = 3, V4 = 4 };

// A PCI address as a number: domain << 16 | bus << 8 | device << 3 | function. kNoPci: none.
using PciAddress = uint64_t;
inline constexpr PciAddress kNoPci = ~uint64_t{0};
constexpr PciAddress pci_address(uint32_t domain, uint32_t bus, uint32_t device,
                                 uint32_t function) {
  return uint64_t{domain} << 16 | bus << 8 | device << 3 | function;
}
std::string pci_text(PciAddress address);  // "0000:3b:00.0"
Result<PciAddress> parse_pci(const std::string& text);  // the same, or without the domain

// ------------------------------------------------------------------ one host

struct CpuMask {
  std::array<uint64_t, kMaxCpus / 64> words{};
  bool has(int cpu) const {
    return cpu >= 0 && cpu < kMaxCpus && (words[cpu / 64] >> cpu % 64 & 1);
  }
  void add(int cpu) {
    if (cpu >= 0 && cpu < kMaxCpus) words[cpu / 64] |= uint64_t{1} << cpu % 64;
  }
  int count() const;
  bool inside(const CpuMask& other) const;  // every CPU of this is in `other`
  void add(const CpuMask& other);
  bool operator==(const CpuMask&) const = default;
};

struct NumaNode {
  int id = 0;  // of the operating system
  int package = -1;
  CpuMask cpus;
  uint64_t memory_bytes = 0;
};

enum class PciKind : uint8_t { Gpu, Network, DeviceSwitch };

struct PciDevice {
  PciAddress address = kNoPci;
  PciKind kind = PciKind::Gpu;
  uint32_t class_code = 0;  // base class << 8 | subclass
  uint32_t vendor = 0, device = 0;
  int numa_node = -1;
  std::string name;  // of the operating system or the vendor; may be empty
  std::vector<PciAddress> path;  // bridges from the host bridge down, device excluded
};

// A link between two devices that is not PCI, by index into MachineFacts::devices.
struct MachineLink {
  int from = 0, to = 0;
  uint64_t megabytes_per_second = 0;
};

struct MachineFacts {
  std::string source;  // "hwloc 2.9.0", "sysfs", "file machine.xml"
  std::string why_source;  // why not hwloc, else empty
  bool this_host = true;  // false: read from FCCL_TOPO_FILE
  std::string host_name, boot_id;
  uint64_t host_id = 0;  // of FCCL_HOSTID, else of the boot id
  uint64_t boot_id_hash = 0;  // never of FCCL_HOSTID
  std::string cpu_model;
  CpuLevel cpu_level = CpuLevel::Scalar;
  int packages = 0, cores = 0, cpus = 0;
  CpuMask allowed;  // affinity of the calling thread within the cpuset
  uint32_t quota_millicpus = 0;  // cgroup CPU quota in 1/1000 CPU; 0: none
  uint64_t quota_group = 0;  // names the cgroup that the quota belongs to
  uint64_t memory_bytes = 0, llc_bytes = 0;  // llc: one last-level cache
  std::vector<NumaNode> nodes;
  std::vector<uint32_t> node_distance;  // nodes x nodes, 10 = local; may be empty
  std::vector<PciDevice> devices;  // GPUs first, in order of address
  std::vector<MachineLink> links;

  int gpus() const;
  int allowed_cpus() const;  // whole CPUs this process may use at once, at least 1
  int numa_node_of(const CpuMask& cpus) const;  // the one node that holds them all, else -1
  const PciDevice* find_device(PciAddress address) const;
};

// How far two PCI devices are apart: by what their paths have in common.
enum class PciDistance : uint8_t { Same, Bridge, NumaNode, Package, System };
PciDistance pci_distance(const MachineFacts& machine, const PciDevice& a, const PciDevice& b);

// ------------------------------------------------------------------ one rank: what it tells the
// others

struct DeviceLinkFacts {
  PciAddress peer = kNoPci;  // of the device at the other end, on the same host
  uint32_t megabytes_per_second = 0;
  uint32_t through_switch = 0;  // 1: over a device switch
};

struct DeviceFacts {
  uint8_t uuid[16] = {};  // all zero: no device
  PciAddress pci = kNoPci;
  uint64_t memory_bytes = 0;
  uint32_t arch = 0;  // the backend's number: 900 for sm_90, 0x942 for gfx942
  uint32_t sm_count = 0;
  uint8_t fabric_cluster[16] = {};  // all zero: no fabric
  uint32_t fabric_clique = 0;
  uint32_t pci_path_count = 0;
  PciAddress pci_path[kMaxPciPath] = {};
  uint32_t link_count = 0;
  int32_t numa_node = -1;
  DeviceLinkFacts links[kMaxDeviceLinks] = {};
  char name[64] = {};
};

inline constexpr uint32_t kRankFactsMagic = 0xFCCF0001u;

struct RankFacts {
  uint32_t magic = kRankFactsMagic;
  uint32_t bytes = 0;  // sizeof(RankFacts)
  int32_t rank = 0;
  int32_t pid = 0;
  uint64_t process_token = 0;  // random, one per process
  uint64_t host_id = 0;
  uint64_t boot_id_hash = 0;
  int32_t numa_node = -1;  // -1: not bound to one
  int32_t cpu_level = 0;  // CpuLevel
  uint32_t quota_millicpus = 0;
  uint32_t backends = 0;  // BackendBit
  uint32_t memory_kinds = 0;  // MemoryKind
  uint32_t has_device = 0;  // 1: `device` is filled
  uint64_t quota_group = 0;
  uint64_t memory_bytes = 0;  // of the host
  uint64_t llc_bytes = 0;
  uint64_t allowed[kMaxCpus / 64] = {};
  char host_name[64] = {};
  DeviceFacts device;
};
static_assert(std::is_trivially_copyable_v<RankFacts>);
static_assert(std::is_standard_layout_v<RankFacts>);
static_assert(sizeof(DeviceLinkFacts) == 16);
static_assert(sizeof(DeviceFacts) ==
              16 + 8 + 8 + 8 + 16 + 8 + 8 * kMaxPciPath + 8 + 16 * kMaxDeviceLinks + 64);
static_assert(sizeof(RankFacts) == 88 + kMaxCpus / 8 + 64 + sizeof(DeviceFacts));
static_assert(sizeof(RankFacts) <= 2048,
              "several blobs of a rank fit into the 4 KiB of an allgather");

// Checks what came from a peer that claims to be `rank` of `ranks`; the error names that rank.
Status validate(const RankFacts& facts, int rank, int ranks);

// ------------------------------------------------------------------ the communicator

// How two ranks reach each other's memory; ordered from near to far. A candidate: whether it really
// works is shown by the self-test of init.
enum class PairClass : uint8_t {
  Self,
  SameProcess,  // CPU ranks: threads of one process, not on two NUMA nodes
  SameNode,  // CPU ranks: shared memory of one host, not on two NUMA nodes
  NumaHop,  // CPU ranks: shared memory over two NUMA nodes
  DirectLink,  // devices: a link between the two; full_mesh says that all pairs have one
  Switch,  // devices: over a device switch, or one fabric clique over hosts
  Pci,  // devices: over a PCI bridge that both hang under, or the same device
  PciHost,  // devices: PCI through the host, within one NUMA node or unknown
  PciNuma,  // devices: PCI and the link between two NUMA nodes
  Network,  // different hosts
};
const char* pair_class_name(PairClass pair);

struct PairFacts {
  PairClass reach = PairClass::Self;
  bool same_process = false;
  bool same_host = false;
  bool same_device = false;
  uint32_t megabytes_per_second = 0;  // of a direct or switched link, 0 if unknown
  bool operator==(const PairFacts&) const = default;
};

struct HostFacts {
  uint64_t host_id = 0;
  std::string name;
  std::vector<int> ranks;  // in order
  int cpus = 0;  // that its ranks may use together
  bool operator==(const HostFacts&) const = default;
};

struct CommFacts {
  int ranks = 0;
  bool of_devices = false;  // pair classes are those of devices
  bool same_host = false;  // all ranks
  bool same_process = false;  // all ranks
  bool full_mesh = false;  // devices: every pair has a direct link or a switch
  bool switched = false;  // devices: every pair goes over a switch
  bool one_clique = false;  // devices: all in one fabric clique
  bool oversubscribed = false;  // some host has more ranks than CPUs for them
  int shared_device_rank[2] = {-1, -1};  // the first two ranks on one device
  uint32_t backends = 0;  // that all ranks have
  uint32_t memory_kinds = 0;  // that all ranks have
  CpuLevel cpu_level = CpuLevel::Scalar;  // the lowest
  uint32_t min_sm_count = 0;  // devices
  uint32_t min_arch = 0, max_arch = 0;  // devices
  uint64_t min_llc_bytes = 0;
  int max_ranks_per_host = 0;
  int numa_nodes = 0;  // most distinct NUMA nodes that ranks of one host are bound to
  PairClass farthest = PairClass::Self;  // the farthest pair
  std::vector<RankFacts> rank;
  std::vector<PairFacts> pairs;  // ranks x ranks, symmetric
  std::vector<HostFacts> hosts;  // in order of their lowest rank
  std::vector<int> host_of;  // index into hosts

  const PairFacts& pair(int a, int b) const {
    return pairs[static_cast<size_t>(a) * static_cast<size_t>(ranks) + static_cast<size_t>(b)];
  }
};

enum class Between { Auto, Hosts, Devices };  // Auto: devices if every rank has one

// `facts[i]` is rank i's and has been validated. A pure function: equal input, equal output.
CommFacts classify(const std::vector<RankFacts>& facts, Between between = Between::Auto);

// Lays `ranks` ranks (processes of one host) over a machine: rank i on GPU i where there are GPUs,
// in turn if there are more ranks than GPUs, else on NUMA nodes round robin. For plans of machines
// that are not here: FCCL_TOPO_FILE, tests, fccl_info.
Result<std::vector<RankFacts>> facts_from_machine(const MachineFacts& machine, int ranks);

// ------------------------------------------------------------------ for people and tools

std::string machine_json(const MachineFacts& machine);
std::string machine_text(const MachineFacts& machine);  // a tree, some lines
std::string comm_json(const CommFacts& comm);
std::string comm_text(const CommFacts& comm);
const char* cpu_level_name(CpuLevel level);

}  // namespace fccl
