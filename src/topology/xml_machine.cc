// The machine that an hwloc XML file (format 2 and later) describes. Read here and not by libhwloc:
// it works without libhwloc, and a spoiled file costs one error text. Objects nest as the machine
// does; I/O objects hang under the part of the machine they are near; matrices follow the objects.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "topology/machine_source.h"
#include "topology/text_file.h"
#include "topology/xml_reader.h"

namespace fccl {
namespace {

constexpr uint64_t kMaxMatrix = 1024;

// A number as hwloc writes it, else 0.
uint64_t number_of(const std::string& text) {
  uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() ? number : 0;
}

// The kMaxCpus lowest bits of "0x00000001,,0xff": 32 bits a word, the lowest word last.
CpuMask bits_of(const std::string& text) {
  CpuMask mask;
  const std::vector<std::string> words = split(text, ',');
  for (size_t word = 0; word < words.size() && word < kMaxCpus / 32; ++word) {
    const std::string& digits = words[words.size() - 1 - word];
    const uint64_t bits = std::strtoull(digits.c_str(), nullptr, 16) & 0xffffffffu;
    mask.words[word / 2] |= bits << word % 2 * 32;
  }
  return mask;
}

int lowest_bit(const CpuMask& mask) {
  for (int bit = 0; bit < kMaxCpus; ++bit) {
    if (mask.has(bit)) return bit;
  }
  return -1;
}

std::string info_of(const XmlElement& object, std::string_view name) {
  for (const XmlElement& child : object.children) {
    if (child.name == "info" && child.attribute("name") == name) return child.attribute("value");
  }
  return {};
}

// What an object inherits from those around it.
struct Place {
  int package = -1;
  int numa_node = -1;
  int device = -1;  // index into devices, for the OS devices of a PCI device
  std::vector<PciAddress> bridges;
};

class MachineReader {
 public:
  Status read(const XmlElement& topology) {
    for (const XmlElement& child : topology.children) {
      if (child.name == "object") FCCL_TRY(read_object(child, Place()));
    }
    for (const XmlElement& child : topology.children) {
      if (child.name == "distances2" || child.name == "distances2hetero") read_matrix(child);
    }
    for (const NumaNode& node : machine_.nodes) machine_.memory_bytes += node.memory_bytes;
    if (machine_.cpus == 0) return Status(Code::InvalidArgument, "it has no CPUs");
    sort_devices(&machine_);
    return {};
  }
  MachineFacts take() { return std::move(machine_); }

 private:
  Status read_object(const XmlElement& object, Place place) {
    const std::string& type = object.attribute("type");
    if (const std::string& nodes = object.attribute("nodeset"); !nodes.empty()) {
      const CpuMask mask = bits_of(nodes);
      place.numa_node = mask.count() == 1 ? lowest_bit(mask) : -1;
    }
    if (type == "Machine") {
      machine_.host_name = info_of(object, "HostName");
    } else if (type == "Package") {
      place.package = machine_.packages++;
    } else if (type == "NUMANode") {
      FCCL_TRY(add_node(object, place));
    } else if (type == "Core") {
      ++machine_.cores;
    } else if (type == "PU") {
      ++machine_.cpus;
    } else if (type == "L2Cache" || type == "L3Cache" || type == "L4Cache") {
      machine_.llc_bytes = std::max(machine_.llc_bytes, number_of(object.attribute("cache_size")));
    } else if (type == "Bridge") {
      FCCL_TRY(add_bridge(object, &place));
    } else if (type == "PCIDev") {
      FCCL_TRY(add_device(object, &place));
    }
    if (machine_.cpu_model.empty()) machine_.cpu_model = info_of(object, "CPUModel");
    if (place.device >= 0) device_of_[number_of(object.attribute("gp_index"))] = place.device;
    for (const XmlElement& child : object.children) {
      if (child.name == "object") FCCL_TRY(read_object(child, place));
    }
    return {};
  }

  Status add_node(const XmlElement& object, const Place& place) {
    const uint64_t id = number_of(object.attribute("os_index"));
    if (id >= kMaxMatrix || machine_.nodes.size() == kMaxMatrix) {
      return error(Code::InvalidArgument,
                   "NUMA node %llu is beyond %llu",
                   static_cast<unsigned long long>(id),
                   static_cast<unsigned long long>(kMaxMatrix));
    }
    NumaNode node;
    node.id = static_cast<int>(id);
    node.package = place.package;
    node.cpus = bits_of(object.attribute("cpuset"));
    // Keeps the sum over all nodes in range.
    node.memory_bytes = std::min(number_of(object.attribute("local_memory")), uint64_t{1} << 50);
    node_of_[number_of(object.attribute("gp_index"))] = node.id;
    machine_.nodes.push_back(std::move(node));
    return {};
  }

  // bridge_type "0-1": from the host down; "1-1": PCI to PCI, with an address of its own.
  static Status add_bridge(const XmlElement& object, Place* place) {
    const bool of_host = object.attribute("bridge_type") == "0-1";
    std::string text = object.attribute("pci_busid");
    if (of_host) {
      // "0000:[10-1f]"
      text = object.attribute("bridge_pci");
      text.erase(std::remove(text.begin(), text.end(), '['), text.end());
      text = text.substr(0, text.find('-')) + ":00.0";
    }
    FCCL_TRY_ASSIGN(address, parse_pci(text));
    place->bridges.push_back(address);
    return {};
  }

  // pci_type "0302 [10de:2330] [0000:0000] a1"
  Status add_device(const XmlElement& object, Place* place) {
    constexpr size_t kMostDevices = 4096;
    FCCL_TRY_ASSIGN(address, parse_pci(object.attribute("pci_busid")));
    const std::vector<std::string> words = split(object.attribute("pci_type"), ' ');
    if (words.size() < 2 || words[1].size() != 11 || machine_.devices.size() == kMostDevices) {
      return Status(Code::InvalidArgument, "a PCI device is malformed or one too many");
    }
    const auto hex = [](const std::string& digits) {
      return static_cast<uint32_t>(std::strtoul(digits.c_str(), nullptr, 16) & 0xffff);
    };
    PciDevice device;
    device.address = address;
    device.class_code = hex(words[0]);
    device.vendor = hex(words[1].substr(1, 4));
    device.device = hex(words[1].substr(6, 4));
    if (!pci_kind_of(device.class_code, device.vendor, &device.kind)) return {};
    device.numa_node = place->numa_node;
    device.path = place->bridges;
    device.name = info_of(object, "PCIDevice");
    place->device = static_cast<int>(machine_.devices.size());
    machine_.devices.push_back(std::move(device));
    return {};
  }

  void read_matrix(const XmlElement& matrix) {
    const uint64_t size = number_of(matrix.attribute("nbobjs"));
    if (size == 0 || size > kMaxMatrix) return;
    std::vector<std::string> indexes;
    std::vector<uint64_t> values;
    for (const XmlElement& child : matrix.children) {
      for (const std::string& word : split(child.text, ' ')) {
        if (word.empty() || word[0] == '\n') continue;
        if (child.name == "indexes") indexes.push_back(word);
        if (child.name == "u64values") values.push_back(number_of(word));
      }
    }
    // A matrix that does not fit its own size says nothing.
    if (indexes.size() != size || values.size() != size * size) return;
    const std::string& name = matrix.attribute("name");
    if (name == "NUMALatency") {
      read_node_distances(matrix, indexes, values);
    } else if (name == "NVLinkBandwidth" || name == "XGMIBandwidth") {
      read_links(indexes, values);
    }
  }

  // Rows come in hwloc's order of objects, which is that of the nodes in the file.
  void read_node_distances(const XmlElement& matrix, const std::vector<std::string>& indexes,
                           const std::vector<uint64_t>& values) {
    if (indexes.size() != machine_.nodes.size()) return;
    const bool by_gp = matrix.attribute("indexing") == "gp";
    std::vector<size_t> place;  // of each row's node in `nodes`
    for (const std::string& index : indexes) {
      const uint64_t number = number_of(index);
      const auto known = node_of_.find(number);
      if (by_gp && known == node_of_.end()) return;
      const int id = by_gp ? known->second : static_cast<int>(std::min(number, kMaxMatrix));
      size_t at = 0;
      while (at < machine_.nodes.size() && machine_.nodes[at].id != id) ++at;
      if (at == machine_.nodes.size()) return;
      place.push_back(at);
    }
    const size_t nodes = place.size();
    machine_.node_distance.assign(nodes * nodes, 0);
    for (size_t row = 0; row < nodes; ++row) {
      for (size_t column = 0; column < nodes; ++column) {
        machine_.node_distance[place[row] * nodes + place[column]] =
            static_cast<uint32_t>(std::min<uint64_t>(values[row * nodes + column], UINT32_MAX));
      }
    }
  }

  // Indexes are "OSDev:17" in a mixed matrix, "17" in one of equal types.
  void read_links(const std::vector<std::string>& indexes, const std::vector<uint64_t>& values) {
    std::vector<int> device;
    for (const std::string& index : indexes) {
      const size_t colon = index.find(':');
      const auto known =
          device_of_.find(number_of(colon == std::string::npos ? index : index.substr(colon + 1)));
      device.push_back(known == device_of_.end() ? -1 : known->second);
    }
    for (size_t row = 0; row < device.size(); ++row) {
      for (size_t column = 0; column < device.size(); ++column) {
        const uint64_t speed = values[row * device.size() + column];
        if (device[row] < 0 || device[column] < 0 || device[row] == device[column]) continue;
        // The bound keeps sums over links in range.
        if (speed != 0) {
          machine_.links.push_back(
              {device[row], device[column], std::min(speed, uint64_t{1} << 40)});
        }
      }
    }
  }

  MachineFacts machine_;
  std::map<uint64_t, int> device_of_;  // gp_index of PCI and OS devices
  std::map<uint64_t, int> node_of_;  // gp_index of NUMA nodes to their ids
};

}  // namespace

Result<MachineFacts> machine_from_xml(const std::string& text) {
  Result<XmlElement> root = read_xml(text);
  Status status = root.status();
  MachineReader reader;
  if (status.ok()) {
    const uint64_t major = number_of(split(root->attribute("version"), '.')[0]);
    status = root->name != "topology" || major < 2
                 ? Status(Code::InvalidArgument, "the root is no topology of version 2 or later")
                 : reader.read(*root);
  }
  if (!status.ok()) {
    return error(Code::InvalidArgument, "no usable hwloc XML: %s", status.text().c_str());
  }
  MachineFacts machine = reader.take();
  machine.source = "hwloc XML";
  machine.this_host = false;
  return machine;
}

}  // namespace fccl
