// Facts as text for people (fccl_info, the log) and as JSON for tools (fcclDescribe). Only what is
// in the facts; nothing is looked up here.
#include <algorithm>
#include <cstdio>

#include "topology/facts.h"
#include "topology/json_writer.h"

namespace fccl {
namespace {

std::string hex_text(uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string hex_text(const uint8_t (&bytes)[16]) {
  std::string text;
  for (uint8_t byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}

// "0-3,8": the habit of taskset and cpusets.
std::string mask_text(const CpuMask& mask) {
  std::string text;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (!mask.has(cpu)) continue;
    int last = cpu;
    while (mask.has(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpu);
    if (last > cpu) text += '-' + std::to_string(last);
    cpu = last;
  }
  return text;
}

CpuMask mask_of(const RankFacts& facts) {
  CpuMask mask;
  std::copy(facts.allowed, facts.allowed + mask.words.size(), mask.words.begin());
  return mask;
}

std::string bytes_text(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  auto amount = static_cast<double>(bytes);
  while (amount >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
    amount /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text,
                sizeof text,
                amount == static_cast<double>(static_cast<int64_t>(amount)) ? "%.0f %s" : "%.1f %s",
                amount,
                units[unit]);
  return text;
}

const char* kind_name(PciKind kind) {
  switch (kind) {
    case PciKind::Gpu:
      return "gpu";
    case PciKind::Network:
      return "network";
    case PciKind::DeviceSwitch:
      return "device switch";
  }
  return "unknown";
}

const char* distance_name(PciDistance distance) {
  switch (distance) {
    case PciDistance::Same:
      return "same";
    case PciDistance::Bridge:
      return "bridge";
    case PciDistance::NumaNode:
      return "node";
    case PciDistance::Package:
      return "package";
    case PciDistance::System:
      return "system";
  }
  return "unknown";
}

// The names of `bits`, in the order of the enum.
void write_bits(JsonWriter* json, std::string_view key, uint32_t bits, const char* const* names,
                int count) {
  json->key(key).begin_array();
  for (int i = 0; i < count; ++i) {
    if ((bits >> i & 1) != 0) json->value(names[i]);
  }
  json->end_array();
}

constexpr const char* kBackendNames[] = {"auto", "cpu", "cuda", "hip"};
constexpr const char* kMemoryNames[] = {
    "pointer", "memfd", "device_fd", "device_ipc", "device_fabric"};

void write_nodes(JsonWriter* json, const MachineFacts& machine) {
  json->key("numa_nodes").begin_array();
  for (const NumaNode& node : machine.nodes) {
    json->begin_object()
        .field("id", node.id)
        .field("package", node.package)
        .field("cpus", mask_text(node.cpus))
        .field("memory_bytes", node.memory_bytes)
        .end_object();
  }
  json->end_array();
  json->key("numa_distance").begin_array();
  for (uint32_t distance : machine.node_distance) json->value(distance);
  json->end_array();
}

void write_devices(JsonWriter* json, const MachineFacts& machine) {
  json->key("devices").begin_array();
  for (const PciDevice& device : machine.devices) {
    json->begin_object()
        .field("pci", pci_text(device.address))
        .field("kind", kind_name(device.kind))
        .field("class", device.class_code)
        .field("vendor", device.vendor)
        .field("device", device.device)
        .field("numa_node", device.numa_node)
        .field("name", device.name);
    json->key("path").begin_array();
    for (PciAddress bridge : device.path) json->value(pci_text(bridge));
    json->end_array().end_object();
  }
  json->end_array();
  json->key("links").begin_array();
  for (const MachineLink& link : machine.links) {
    json->begin_object()
        .field("from", link.from)
        .field("to", link.to)
        .field("megabytes_per_second", link.megabytes_per_second)
        .end_object();
  }
  json->end_array();
}

void write_rank(JsonWriter* json, const RankFacts& facts, int host) {
  json->begin_object()
      .field("rank", static_cast<int>(facts.rank))
      .field("host", host)
      .field("host_name", facts.host_name)
      .field("pid", static_cast<int>(facts.pid))
      .field("numa_node", static_cast<int>(facts.numa_node))
      .field("cpus", mask_text(mask_of(facts)))
      .field("quota_millicpus", facts.quota_millicpus)
      .field("cpu_level", cpu_level_name(static_cast<CpuLevel>(facts.cpu_level)));
  write_bits(json, "backends", facts.backends, kBackendNames, 4);
  write_bits(json, "memory_kinds", facts.memory_kinds, kMemoryNames, 5);
  if (facts.has_device != 0) {
    json->key("device")
        .begin_object()
        .field("name", facts.device.name)
        .field("uuid", hex_text(facts.device.uuid))
        .field("pci", pci_text(facts.device.pci))
        .field("arch", facts.device.arch)
        .field("sm_count", facts.device.sm_count)
        .field("memory_bytes", facts.device.memory_bytes)
        .field("numa_node", static_cast<int>(facts.device.numa_node))
        .field("links", facts.device.link_count)
        .end_object();
  }
  json->end_object();
}

std::string device_line(const MachineFacts& machine, size_t index) {
  const PciDevice& device = machine.devices[index];
  std::string line = std::string(kind_name(device.kind)) + ' ' + pci_text(device.address);
  if (!device.name.empty()) line += " \"" + device.name + '"';
  int links = 0;
  uint64_t speed = 0;
  for (const MachineLink& link : machine.links) {
    if (link.from != static_cast<int>(index)) continue;
    ++links;
    speed += link.megabytes_per_second;
  }
  if (links == 0) return line;
  return line + ", links to " + std::to_string(links) + " devices, " + std::to_string(speed) +
         " MB/s";
}

std::string devices_below(const MachineFacts& machine, int node, const char* indent) {
  std::string text;
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    if (machine.devices[i].numa_node == node) text += indent + device_line(machine, i) + '\n';
  }
  return text;
}

}  // namespace

const char* cpu_level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::Scalar:
      return "scalar";
    case CpuLevel::Neon:
      return "neon";
    case CpuLevel::V2:
      return "v2";
    case CpuLevel::V3:
      return "v3";
    case CpuLevel::V4:
      return "v4";
  }
  return "unknown";
}

std::string machine_json(const MachineFacts& machine) {
  JsonWriter json;
  json.begin_object()
      .field("source", machine.source)
      .field("why_source", machine.why_source)
      .field("this_host", machine.this_host)
      .field("host_name", machine.host_name)
      .field("host_id", hex_text(machine.host_id))
      .field("boot_id", machine.boot_id)
      .field("cpu_model", machine.cpu_model)
      .field("cpu_level", cpu_level_name(machine.cpu_level))
      .field("packages", machine.packages)
      .field("cores", machine.cores)
      .field("cpus", machine.cpus)
      .field("allowed", mask_text(machine.allowed))
      .field("allowed_cpus", machine.allowed_cpus())
      .field("quota_millicpus", machine.quota_millicpus)
      .field("memory_bytes", machine.memory_bytes)
      .field("llc_bytes", machine.llc_bytes);
  write_nodes(&json, machine);
  write_devices(&json, machine);
  // Only pairs of GPUs: others are of no use for a plan.
  json.key("gpu_distance").begin_array();
  for (const PciDevice& a : machine.devices) {
    if (a.kind != PciKind::Gpu) continue;
    json.begin_array();
    for (const PciDevice& b : machine.devices) {
      if (b.kind == PciKind::Gpu) json.value(distance_name(pci_distance(machine, a, b)));
    }
    json.end_array();
  }
  json.end_array().end_object();
  return json.text();
}

std::string machine_text(const MachineFacts& machine) {
  std::string text = "host " + machine.host_name + " (by " + machine.source;
  if (!machine.why_source.empty()) text += "; " + machine.why_source;
  text += ")\n";
  text += "  cpu " + machine.cpu_model + ", level " + cpu_level_name(machine.cpu_level) + ": " +
          std::to_string(machine.packages) + " packages, " + std::to_string(machine.cores) +
          " cores, " + std::to_string(machine.cpus) + " CPUs, last-level cache " +
          bytes_text(machine.llc_bytes) + '\n';
  text += "  allowed here: CPUs " + mask_text(machine.allowed);
  if (machine.quota_millicpus != 0) {
    text += ", quota of " + std::to_string(machine.quota_millicpus) + "/1000 CPU";
  }
  text += " (" + std::to_string(machine.allowed_cpus()) + " at once)\n";
  text += "  memory " + bytes_text(machine.memory_bytes) + '\n';
  for (const NumaNode& node : machine.nodes) {
    text += "  NUMA node " + std::to_string(node.id);
    if (node.package >= 0) text += " of package " + std::to_string(node.package);
    text += ": CPUs " + mask_text(node.cpus) + ", " + bytes_text(node.memory_bytes) + '\n';
    text += devices_below(machine, node.id, "    ");
  }
  text += devices_below(machine, -1, "  ");
  return text;
}

std::string comm_json(const CommFacts& comm) {
  JsonWriter json;
  json.begin_object()
      .field("ranks", comm.ranks)
      .field("of_devices", comm.of_devices)
      .field("same_host", comm.same_host)
      .field("same_process", comm.same_process)
      .field("full_mesh", comm.full_mesh)
      .field("switched", comm.switched)
      .field("one_clique", comm.one_clique)
      .field("oversubscribed", comm.oversubscribed)
      .field("max_ranks_per_host", comm.max_ranks_per_host)
      .field("cpu_level", cpu_level_name(comm.cpu_level))
      .field("farthest", pair_class_name(comm.farthest));
  write_bits(&json, "backends", comm.backends, kBackendNames, 4);
  write_bits(&json, "memory_kinds", comm.memory_kinds, kMemoryNames, 5);
  json.key("hosts").begin_array();
  for (const HostFacts& host : comm.hosts) {
    json.begin_object().field("name", host.name).field("cpus", host.cpus);
    json.key("ranks").begin_array();
    for (int rank : host.ranks) json.value(rank);
    json.end_array().end_object();
  }
  json.end_array().key("rank_facts").begin_array();
  for (const RankFacts& facts : comm.rank) {
    write_rank(&json, facts, comm.host_of[static_cast<size_t>(facts.rank)]);
  }
  json.end_array().key("pairs").begin_array();
  for (int a = 0; a < comm.ranks; ++a) {
    json.begin_array();
    for (int b = 0; b < comm.ranks; ++b) json.value(pair_class_name(comm.pair(a, b).reach));
    json.end_array();
  }
  json.end_array().end_object();
  return json.text();
}

std::string comm_text(const CommFacts& comm) {
  std::string text = std::to_string(comm.ranks) + " ranks on " + std::to_string(comm.hosts.size()) +
                     " host(s), pairs at most \"" + pair_class_name(comm.farthest) + '"';
  if (comm.same_process) text += ", one process";
  if (comm.full_mesh) text += comm.switched ? ", full mesh over a switch" : ", full mesh";
  if (comm.oversubscribed) text += ", more ranks than CPUs";
  text += '\n';
  for (const HostFacts& host : comm.hosts) {
    text += "  host " + host.name + ", " + std::to_string(host.cpus) + " CPUs: ranks";
    for (int rank : host.ranks) text += ' ' + std::to_string(rank);
    text += '\n';
  }
  for (int a = 0; a < comm.ranks; ++a) {
    const RankFacts& facts = comm.rank[static_cast<size_t>(a)];
    text += "  rank " + std::to_string(a) + " pid " + std::to_string(facts.pid);
    if (facts.numa_node >= 0) text += " node " + std::to_string(facts.numa_node);
    if (facts.has_device != 0) text += " device " + pci_text(facts.device.pci);
    text += ':';
    for (int b = 0; b < comm.ranks; ++b) {
      text += std::string(b == 0 ? " " : ", ") + pair_class_name(comm.pair(a, b).reach);
    }
    text += '\n';
  }
  return text;
}

}  // namespace fccl
