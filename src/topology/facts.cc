// The small rules of the plain data: masks, PCI addresses, and what a peer's RankFacts must satisfy
// before anybody indexes with them or prints them.
#include "topology/facts.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace fccl {

int CpuMask::count() const {
  int sum = 0;
  for (uint64_t word : words) sum += std::popcount(word);
  return sum;
}

bool CpuMask::inside(const CpuMask& other) const {
  for (size_t i = 0; i < words.size(); ++i) {
    if ((words[i] & ~other.words[i]) != 0) return false;
  }
  return true;
}

void CpuMask::add(const CpuMask& other) {
  for (size_t i = 0; i < words.size(); ++i) words[i] |= other.words[i];
}

std::string pci_text(PciAddress address) {
  if (address == kNoPci) return "none";
  char text[32];
  std::snprintf(text,
                sizeof text,
                "%04x:%02x:%02x.%x",
                static_cast<unsigned>(address >> 16),
                static_cast<unsigned>(address >> 8 & 0xff),
                static_cast<unsigned>(address >> 3 & 0x1f),
                static_cast<unsigned>(address & 7));
  return text;
}

Result<PciAddress> parse_pci(const std::string& text) {
  // Fields from the right: function, device, bus, domain; the domain may be absent.
  uint32_t fields[4] = {};
  const uint32_t limits[4] = {7, 0x1f, 0xff, 0xffffffff};
  size_t end = text.size();
  int field = 0;
  for (bool more = true; more && field < 4; ++field) {
    const size_t before = text.find_last_of(field == 0 ? "." : ":", end - 1);
    more = before != std::string::npos;
    const char* begin = text.data() + (more ? before + 1 : 0);
    const char* stop = text.data() + end;
    const auto [read, failure] = std::from_chars(begin, stop, fields[field], 16);
    if (failure != std::errc() || read != stop || fields[field] > limits[field]) break;
    if (!more && field >= 2) return pci_address(fields[3], fields[2], fields[1], fields[0]);
    end = more ? before : 0;
    if (end == 0) break;
  }
  std::string shown = text.substr(0, 32);
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < 0x20 || c == 0x7f; }, '?');
  return error(Code::InvalidArgument, "'%s' is no PCI address", shown.c_str());
}

int MachineFacts::gpus() const {
  return static_cast<int>(std::count_if(
      devices.begin(), devices.end(), [](const PciDevice& d) { return d.kind == PciKind::Gpu; }));
}

int MachineFacts::allowed_cpus() const {
  const int by_mask = std::max(1, allowed.count());
  if (quota_millicpus == 0) return by_mask;
  return std::max(1, std::min(by_mask, static_cast<int>(quota_millicpus / 1000)));
}

int MachineFacts::numa_node_of(const CpuMask& mask) const {
  if (mask.count() == 0) return -1;
  for (const NumaNode& node : nodes) {
    if (mask.inside(node.cpus)) return node.id;
  }
  return -1;
}

const PciDevice* MachineFacts::find_device(PciAddress address) const {
  for (const PciDevice& device : devices) {
    if (device.address == address) return &device;
  }
  return nullptr;
}

PciDistance pci_distance(const MachineFacts& machine, const PciDevice& a, const PciDevice& b) {
  if (a.address == b.address) return PciDistance::Same;
  const size_t shorter = std::min(a.path.size(), b.path.size());
  // path[0] is the host bridge; a common bridge below it spares the way through the host.
  if (shorter >= 2 && a.path[0] == b.path[0] && a.path[1] == b.path[1]) return PciDistance::Bridge;
  if (a.numa_node < 0 || b.numa_node < 0) return PciDistance::System;
  if (a.numa_node == b.numa_node) return PciDistance::NumaNode;
  int package_a = -1, package_b = -1;
  for (const NumaNode& node : machine.nodes) {
    if (node.id == a.numa_node) package_a = node.package;
    if (node.id == b.numa_node) package_b = node.package;
  }
  return package_a >= 0 && package_a == package_b ? PciDistance::Package : PciDistance::System;
}

namespace {

// Terminated, and fit for a log line.
template <size_t kBytes>
bool is_text(const char (&text)[kBytes]) {
  const void* end = std::memchr(text, 0, kBytes);
  if (end == nullptr) return false;
  return std::all_of(text, static_cast<const char*>(end), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
}

bool is_pci(PciAddress address) {
  return address == kNoPci || address >> 48 == 0;
}

// What is wrong with the device part, or nullptr.
const char* wrong_device(const DeviceFacts& device) {
  const uint8_t zero[16] = {};
  if (std::memcmp(device.uuid, zero, sizeof zero) == 0) return "device uuid";
  if (!is_pci(device.pci)) return "device PCI address";
  if (device.pci_path_count > kMaxPciPath) return "length of the PCI path";
  for (uint32_t i = 0; i < device.pci_path_count; ++i) {
    if (!is_pci(device.pci_path[i])) return "PCI path";
  }
  if (device.link_count > kMaxDeviceLinks) return "number of device links";
  for (uint32_t i = 0; i < device.link_count; ++i) {
    if (!is_pci(device.links[i].peer) || device.links[i].through_switch > 1) return "device link";
  }
  if (device.numa_node < -1 || device.numa_node > 65535) return "NUMA node of the device";
  if (device.sm_count > 65536) return "number of SMs";
  if (!is_text(device.name)) return "device name";
  return nullptr;
}

const char* wrong_part(const RankFacts& facts) {
  constexpr uint32_t kBackends = kBackendCpu | kBackendCuda | kBackendHip;
  if (facts.pid <= 0) return "process id";
  if (facts.process_token == 0) return "process token";
  if (facts.host_id == 0 || facts.boot_id_hash == 0) return "host id";
  if (facts.numa_node < -1 || facts.numa_node > 65535) return "NUMA node";
  if (facts.cpu_level < 0 || facts.cpu_level > static_cast<int32_t>(CpuLevel::V4)) {
    return "CPU level";
  }
  if ((facts.backends & ~kBackends) != 0) return "backends";
  if ((facts.memory_kinds & ~uint32_t{kMemoryAll}) != 0) return "memory kinds";
  if (facts.has_device > 1) return "device mark";
  if (std::all_of(
          facts.allowed, facts.allowed + kMaxCpus / 64, [](uint64_t w) { return w == 0; })) {
    return "set of CPUs";
  }
  if (!is_text(facts.host_name)) return "host name";
  return facts.has_device != 0 ? wrong_device(facts.device) : nullptr;
}

}  // namespace

Status validate(const RankFacts& facts, int rank, int ranks) {
  if (facts.magic != kRankFactsMagic || facts.bytes != sizeof(RankFacts)) {
    return error_of_rank(rank, Code::Mismatch, "facts of rank %d have another layout", rank);
  }
  if (rank < 0 || rank >= ranks || facts.rank != rank) {
    return error_of_rank(rank,
                         Code::Mismatch,
                         "facts of rank %d of %d say rank %d",
                         rank,
                         ranks,
                         static_cast<int>(facts.rank));
  }
  if (const char* part = wrong_part(facts); part != nullptr) {
    return error_of_rank(rank, Code::Mismatch, "facts of rank %d: illegal %s", rank, part);
  }
  return {};
}

}  // namespace fccl
