// The bridge from a machine to ranks: what a rank on this machine would say of itself. Used for the
// rank's own facts by init, and for ranks that exist on paper only by facts_from_machine.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "topology/detect.h"
#include "topology/facts.h"

namespace fccl {
namespace {

template <size_t kBytes>
void copy_text(const std::string& from, char (&to)[kBytes]) {
  const size_t bytes = std::min(from.size(), kBytes - 1);
  std::memset(to, 0, kBytes);
  std::memcpy(to, from.data(), bytes);
  // Names of other origin may hold anything; `validate` of the peers would refuse it.
  for (size_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(to[i]);
    if (byte < 0x20 || byte == 0x7f) to[i] = '?';
  }
}

void copy_mask(const CpuMask& mask, RankFacts* facts) {
  std::copy(mask.words.begin(), mask.words.end(), facts->allowed);
}

int index_of(const MachineFacts& machine, PciAddress address) {
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    if (machine.devices[i].address == address) return static_cast<int>(i);
  }
  return -1;
}

// A further switch between the same two devices adds its speed.
void add_link(DeviceFacts* device, PciAddress peer, uint64_t speed, bool through_switch) {
  for (uint32_t i = 0; i < device->link_count; ++i) {
    DeviceLinkFacts& link = device->links[i];
    if (link.peer != peer) continue;
    if (through_switch && link.through_switch != 0) {
      link.megabytes_per_second =
          static_cast<uint32_t>(std::min<uint64_t>(speed + link.megabytes_per_second, UINT32_MAX));
    }
    return;
  }
  if (device->link_count == kMaxDeviceLinks) return;
  DeviceLinkFacts& link = device->links[device->link_count++];
  link.peer = peer;
  link.megabytes_per_second = static_cast<uint32_t>(std::min<uint64_t>(speed, UINT32_MAX));
  link.through_switch = through_switch ? 1 : 0;
}

// Speed of the links from device `from` to device `to`, 0 if there is none.
uint64_t link_speed(const MachineFacts& machine, int from, int to) {
  uint64_t speed = 0;
  for (const MachineLink& link : machine.links) {
    if (link.from == from && link.to == to) speed = std::max(speed, link.megabytes_per_second);
  }
  return speed;
}

// Links of `self` to other GPUs: direct ones first, then those over a switch both have a link to.
void add_links(const MachineFacts& machine, int self, DeviceFacts* device) {
  const int devices = static_cast<int>(machine.devices.size());
  for (int peer = 0; peer < devices; ++peer) {
    const PciDevice& other = machine.devices[static_cast<size_t>(peer)];
    if (peer == self || other.kind != PciKind::Gpu) continue;
    const uint64_t speed = link_speed(machine, self, peer);
    if (speed != 0) add_link(device, other.address, speed, false);
  }
  for (int through = 0; through < devices; ++through) {
    if (machine.devices[static_cast<size_t>(through)].kind != PciKind::DeviceSwitch) continue;
    const uint64_t up = link_speed(machine, self, through);
    if (up == 0) continue;
    for (int peer = 0; peer < devices; ++peer) {
      const PciDevice& other = machine.devices[static_cast<size_t>(peer)];
      if (peer == self || other.kind != PciKind::Gpu) continue;
      const uint64_t down = link_speed(machine, through, peer);
      if (down != 0) add_link(device, other.address, std::min(up, down), true);
    }
  }
}

const NumaNode* node_with_id(const MachineFacts& machine, int id) {
  for (const NumaNode& node : machine.nodes) {
    if (node.id == id) return &node;
  }
  return nullptr;
}

// Nodes that ranks can be laid on: those with CPUs.
std::vector<const NumaNode*> nodes_with_cpus(const MachineFacts& machine) {
  std::vector<const NumaNode*> nodes;
  for (const NumaNode& node : machine.nodes) {
    if (node.cpus.count() > 0) nodes.push_back(&node);
  }
  return nodes;
}

void lay_on_node(const NumaNode& node, RankFacts* facts) {
  facts->numa_node = node.id;
  copy_mask(node.cpus, facts);
}

void lay_on_gpu(const MachineFacts& machine, const PciDevice& gpu, RankFacts* facts) {
  const bool amd = gpu.vendor == 0x1002;
  facts->has_device = 1;
  facts->backends |= amd ? kBackendHip : kBackendCuda;
  facts->memory_kinds |= kMemoryDeviceIpc | (amd ? 0u : uint32_t{kMemoryDeviceFd});
  facts->device.pci = gpu.address;
  // A device on paper has no uuid of its own: its address tells it apart on this host.
  std::memcpy(facts->device.uuid, &facts->host_id, 8);
  std::memcpy(facts->device.uuid + 8, &gpu.address, 8);
  copy_text(gpu.name, facts->device.name);
  place_device(machine, facts);
  if (const NumaNode* node = node_with_id(machine, gpu.numa_node); node != nullptr) {
    lay_on_node(*node, facts);
  }
}

}  // namespace

RankFacts local_rank_facts(const MachineFacts& machine, int rank) {
  RankFacts facts;
  facts.bytes = sizeof(RankFacts);
  facts.rank = rank;
  facts.pid = static_cast<int32_t>(::getpid());
  facts.process_token = process_token();
  facts.host_id = machine.host_id;
  facts.boot_id_hash = machine.boot_id_hash;
  facts.numa_node = machine.numa_node_of(machine.allowed);
  facts.cpu_level = static_cast<int32_t>(machine.cpu_level);
  facts.quota_millicpus = machine.quota_millicpus;
  facts.quota_group = machine.quota_group;
  facts.memory_bytes = machine.memory_bytes;
  facts.llc_bytes = machine.llc_bytes;
  copy_mask(machine.allowed, &facts);
  copy_text(machine.host_name, facts.host_name);
  return facts;
}

void place_device(const MachineFacts& machine, RankFacts* facts) {
  const int self = index_of(machine, facts->device.pci);
  if (self < 0) return;
  const PciDevice& found = machine.devices[static_cast<size_t>(self)];
  DeviceFacts& device = facts->device;
  device.numa_node = found.numa_node;
  device.pci_path_count =
      static_cast<uint32_t>(std::min(found.path.size(), static_cast<size_t>(kMaxPciPath)));
  std::copy_n(found.path.begin(), device.pci_path_count, device.pci_path);
  add_links(machine, self, &device);
}

Result<std::vector<RankFacts>> facts_from_machine(const MachineFacts& machine, int ranks) {
  if (ranks < 1 || ranks > kMaxFactRanks) {
    return error(Code::InvalidArgument, "%d ranks; allowed: 1 to %d", ranks, kMaxFactRanks);
  }
  std::vector<const PciDevice*> gpus;
  for (const PciDevice& device : machine.devices) {
    if (device.kind == PciKind::Gpu) gpus.push_back(&device);
  }
  const std::vector<const NumaNode*> nodes = nodes_with_cpus(machine);
  std::vector<RankFacts> all;
  all.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    RankFacts facts = local_rank_facts(machine, rank);
    // Processes on paper: each its own, the same on every rank that lays out this machine.
    facts.pid = 1 + rank;
    facts.process_token = machine.host_id ^ (0x9e3779b97f4a7c15u * static_cast<uint64_t>(rank + 1));
    if (facts.process_token == 0) facts.process_token = 1;
    if (!machine.this_host) facts.quota_millicpus = 0;
    facts.backends = kBackendCpu;
    facts.memory_kinds = kMemoryPointer | kMemoryMemfd;
    const auto turn = static_cast<size_t>(rank);
    if (!gpus.empty()) {
      lay_on_gpu(machine, *gpus[turn % gpus.size()], &facts);
    } else if (!nodes.empty()) {
      lay_on_node(*nodes[turn % nodes.size()], &facts);
    }
    FCCL_TRY(validate(facts, rank, ranks));
    all.push_back(facts);
  }
  return all;
}

}  // namespace fccl
