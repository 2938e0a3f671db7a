// The machine as Linux shows it in /sys: second choice where there is no libhwloc. Device links
// (NVLink and the like) are not there to be read.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <set>
#include <utility>

#include "topology/machine_source.h"
#include "topology/text_file.h"

namespace fccl {
namespace {

constexpr int kMaxNodes = 1024;
constexpr uint32_t kNvidia = 0x10de, kAmd = 0x1002;

// "  Key : value" of /proc/cpuinfo and meminfo.
std::string value_after(const std::string& text, const std::string& key) {
  for (const std::string& line : split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    name.erase(name.find_last_not_of(" \t") + 1);
    // "Node 0 MemTotal" of a node's meminfo counts as MemTotal.
    if (name != key && (name.size() <= key.size() ||
                        name.compare(name.size() - key.size(), key.size(), key) != 0 ||
                        name[name.size() - key.size() - 1] != ' ')) {
      continue;
    }
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

uint64_t memory_of(const std::string& meminfo) {
  const long long kib = std::atoll(value_after(meminfo, "MemTotal").c_str());
  return kib > 0 ? static_cast<uint64_t>(kib) * 1024 : 0;
}

void read_cpus(const std::string& root, MachineFacts* machine) {
  const std::string folder = root + "/sys/devices/system/cpu/";
  std::set<int64_t> packages;
  std::set<std::pair<int64_t, std::string>> cores;
  for (int cpu : parse_list(read_text_file(folder + "online"), kMaxCpus)) {
    const std::string topology = folder + "cpu" + std::to_string(cpu) + "/topology/";
    const int64_t package = read_number_file(topology + "physical_package_id", 0);
    packages.insert(package);
    std::string siblings = read_text_file(topology + "thread_siblings_list");
    if (siblings.empty()) siblings = std::to_string(cpu);
    cores.emplace(package, siblings);
    ++machine->cpus;
  }
  machine->packages = static_cast<int>(packages.size());
  machine->cores = static_cast<int>(cores.size());
}

// The largest data cache of the first CPU that has any.
void read_cache(const std::string& root, MachineFacts* machine) {
  const std::string folder = root + "/sys/devices/system/cpu/cpu0/cache";
  for (const std::string& index : list_folder(folder)) {
    const std::string cache = folder + "/" + index + "/";
    if (read_text_file(cache + "type") == "Instruction") continue;
    const std::string size = read_text_file(cache + "size");
    char* unit = nullptr;
    const long long number = std::strtoll(size.c_str(), &unit, 10);
    if (number <= 0 || number > (1LL << 40)) continue;
    const uint64_t scale = *unit == 'K' ? 1024 : *unit == 'M' ? 1048576 : 1;
    machine->llc_bytes = std::max(machine->llc_bytes, static_cast<uint64_t>(number) * scale);
  }
}

void read_nodes(const std::string& root, MachineFacts* machine) {
  const std::string folder = root + "/sys/devices/system/node/";
  std::vector<std::string> distances;
  for (int id : parse_list(read_text_file(folder + "online"), kMaxNodes)) {
    const std::string path = folder + "node" + std::to_string(id) + "/";
    NumaNode node;
    node.id = id;
    node.cpus = parse_cpu_list(read_text_file(path + "cpulist"));
    node.memory_bytes = memory_of(read_text_file(path + "meminfo"));
    for (int cpu = 0; cpu < kMaxCpus && node.package < 0; ++cpu) {
      if (!node.cpus.has(cpu)) continue;
      node.package = static_cast<int>(read_number_file(root + "/sys/devices/system/cpu/cpu" +
                                                           std::to_string(cpu) +
                                                           "/topology/physical_package_id",
                                                       0));
    }
    distances.push_back(read_text_file(path + "distance"));
    machine->nodes.push_back(std::move(node));
  }
  for (const std::string& row : distances) {
    for (const std::string& word : split(row, ' ')) {
      const int distance = std::atoi(word.c_str());
      if (distance > 0) machine->node_distance.push_back(static_cast<uint32_t>(distance));
    }
  }
  if (machine->node_distance.size() != machine->nodes.size() * machine->nodes.size()) {
    machine->node_distance.clear();
  }
}

// ".../pci0000:00/0000:00:01.0/0000:01:00.0": host bridge, bridges, device.
std::vector<PciAddress> path_of(const std::string& link) {
  char real[PATH_MAX];
  std::vector<PciAddress> path;
  if (::realpath(link.c_str(), real) == nullptr) return path;
  for (const std::string& part : split(real, '/')) {
    if (part.rfind("pci", 0) == 0 && part.find(':') != std::string::npos) {
      Result<PciAddress> bridge = parse_pci(part.substr(3) + ":00.0");
      if (bridge.ok()) path.assign(1, *bridge);
    } else if (!path.empty()) {
      Result<PciAddress> hop = parse_pci(part);
      if (hop.ok()) path.push_back(*hop);
    }
  }
  if (!path.empty()) path.pop_back();  // the device itself
  return path;
}

void read_devices(const std::string& root, MachineFacts* machine) {
  const std::string folder = root + "/sys/bus/pci/devices/";
  for (const std::string& name : list_folder(folder)) {
    const std::string files = folder + name + "/";
    Result<PciAddress> address = parse_pci(name);
    if (!address.ok()) continue;
    PciDevice device;
    device.address = *address;
    device.class_code = static_cast<uint32_t>(read_number_file(files + "class", 0) >> 8 & 0xffff);
    device.vendor = static_cast<uint32_t>(read_number_file(files + "vendor", 0) & 0xffff);
    device.device = static_cast<uint32_t>(read_number_file(files + "device", 0) & 0xffff);
    if (!pci_kind_of(device.class_code, device.vendor, &device.kind)) continue;
    const int64_t node = read_number_file(files + "numa_node", -1);
    device.numa_node = node >= 0 && node < kMaxNodes ? static_cast<int>(node) : -1;
    device.path = path_of(folder + name);
    machine->devices.push_back(std::move(device));
  }
  // The kernel says -1 on hosts of one node.
  for (PciDevice& device : machine->devices) {
    if (device.numa_node < 0 && machine->nodes.size() == 1) {
      device.numa_node = machine->nodes[0].id;
    }
  }
}

}  // namespace

bool pci_kind_of(uint32_t class_code, uint32_t vendor, PciKind* kind) {
  const uint32_t base = class_code >> 8;
  const bool gpu_vendor = vendor == kNvidia || vendor == kAmd;
  if (gpu_vendor && (base == 0x03 || base == 0x12)) {
    *kind = PciKind::Gpu;
  } else if (base == 0x02) {
    *kind = PciKind::Network;
  } else if (class_code == 0x0680 && vendor == kNvidia) {
    *kind = PciKind::DeviceSwitch;
  } else {
    return false;
  }
  return true;
}

void sort_devices(MachineFacts* machine) {
  std::vector<size_t> order(machine->devices.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const PciDevice &left = machine->devices[a], &right = machine->devices[b];
    if (left.kind != right.kind) return left.kind < right.kind;
    return left.address < right.address;
  });
  std::vector<int> place(order.size());
  std::vector<PciDevice> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int>(i);
    sorted.push_back(std::move(machine->devices[order[i]]));
  }
  machine->devices = std::move(sorted);
  for (MachineLink& link : machine->links) {
    link.from = place[static_cast<size_t>(link.from)];
    link.to = place[static_cast<size_t>(link.to)];
  }
  std::sort(
      machine->links.begin(), machine->links.end(), [](const MachineLink& a, const MachineLink& b) {
        return std::pair(a.from, a.to) < std::pair(b.from, b.to);
      });
}

MachineFacts machine_from_sysfs(const std::string& root) {
  MachineFacts machine;
  machine.source = "sysfs";
  const std::string cpuinfo = read_text_file(root + "/proc/cpuinfo");
  machine.cpu_model = value_after(cpuinfo, "model name");
  if (machine.cpu_model.empty()) machine.cpu_model = value_after(cpuinfo, "CPU part");
  machine.memory_bytes = memory_of(read_text_file(root + "/proc/meminfo"));
  read_cpus(root, &machine);
  read_cache(root, &machine);
  read_nodes(root, &machine);
  read_devices(root, &machine);
  sort_devices(&machine);
  return machine;
}

}  // namespace fccl
