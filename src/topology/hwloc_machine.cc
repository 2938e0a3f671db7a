// The machine as hwloc sees it, and as XML for FCCL_TOPO_DUMP_FILE. GPU components of hwloc are
// kept out: they would start vendor runtimes before the ranks have voted on a backend. Only a dump,
// which a user asked for, takes the two that know device links and make no context.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "topology/hwloc_api.h"
#include "topology/machine_source.h"

namespace fccl {
namespace {

class Topology {
 public:
  explicit Topology(const HwlocApi& api) : api_(api) {}
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  ~Topology() {
    if (topology_ != nullptr) api_.topology_destroy(topology_);
  }

  Status open(bool with_device_links);
  const HwlocApi& api() const { return api_; }
  hwloc_topology_t get() const { return topology_; }

  int count(hwloc_obj_type_t type) const {
    const int depth = api_.get_type_depth(topology_, type);
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return 0;
    return static_cast<int>(api_.get_nbobjs_by_depth(topology_, depth));
  }
  hwloc_obj_t object(hwloc_obj_type_t type, int index) const {
    return api_.get_obj_by_depth(
        topology_, api_.get_type_depth(topology_, type), static_cast<unsigned>(index));
  }

 private:
  const HwlocApi& api_;
  hwloc_topology_t topology_ = nullptr;
};

Status Topology::open(bool with_device_links) {
  if (api_.topology_init(&topology_) != 0) {
    topology_ = nullptr;
    return Status(Code::OutOfResources, "hwloc_topology_init failed");
  }
  const char* const unwanted[] = {"cuda", "levelzero", "opencl", "gl", "nvml", "rsmi"};
  const int count_unwanted = with_device_links ? 4 : 6;
  for (int i = 0; i < count_unwanted; ++i) {
    api_.topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
  }
  // CPUs outside the cpuset are part of the machine; what is allowed is asked of the thread.
  api_.topology_set_flags(topology_, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  api_.topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  api_.topology_set_type_filter(topology_, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (api_.topology_load(topology_) != 0) {
    return Status(Code::SystemError, "hwloc cannot load the machine");
  }
  return {};
}

std::string info_of(hwloc_obj_t object, const char* name) {
  for (unsigned i = 0; i < object->infos_count; ++i) {
    if (std::strcmp(object->infos[i].name, name) == 0) return object->infos[i].value;
  }
  return {};
}

CpuMask mask_of(const HwlocApi& api, hwloc_const_bitmap_t set) {
  CpuMask mask;
  if (set == nullptr) return mask;
  for (int cpu = api.bitmap_next(set, -1); cpu >= 0 && cpu < kMaxCpus;
       cpu = api.bitmap_next(set, cpu)) {
    mask.add(cpu);
  }
  return mask;
}

int package_of(hwloc_obj_t object) {
  for (hwloc_obj_t at = object; at != nullptr; at = at->parent) {
    if (at->type == HWLOC_OBJ_PACKAGE) return static_cast<int>(at->logical_index);
  }
  return -1;
}

// Returns the version of hwloc that looked at the machine.
std::string read_cpus(const Topology& topology, MachineFacts* machine) {
  const HwlocApi& api = topology.api();
  machine->packages = topology.count(HWLOC_OBJ_PACKAGE);
  machine->cores = topology.count(HWLOC_OBJ_CORE);
  machine->cpus = topology.count(HWLOC_OBJ_PU);
  hwloc_obj_t root = api.get_obj_by_depth(topology.get(), 0, 0);
  machine->memory_bytes = root->total_memory;
  machine->host_name = info_of(root, "HostName");
  machine->cpu_model = info_of(root, "CPUModel");
  if (machine->cpu_model.empty() && machine->packages > 0) {
    machine->cpu_model = info_of(topology.object(HWLOC_OBJ_PACKAGE, 0), "CPUModel");
  }
  for (hwloc_obj_type_t cache : {HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE}) {
    if (topology.count(cache) == 0) continue;
    machine->llc_bytes =
        std::max(machine->llc_bytes, uint64_t{topology.object(cache, 0)->attr->cache.size});
  }
  return info_of(root, "hwlocVersion");
}

void read_node_distances(const Topology& topology, MachineFacts* machine) {
  const HwlocApi& api = topology.api();
  hwloc_distances_s* found = nullptr;
  unsigned count = 1;
  if (api.distances_get_by_name(topology.get(), "NUMALatency", &count, &found, 0) != 0 ||
      count == 0 || found == nullptr) {
    return;
  }
  if (found->nbobjs == machine->nodes.size()) {
    for (unsigned i = 0; i < found->nbobjs * found->nbobjs; ++i) {
      machine->node_distance.push_back(
          static_cast<uint32_t>(std::min<uint64_t>(found->values[i], UINT32_MAX)));
    }
  }
  api.distances_release(topology.get(), found);
}

void read_nodes(const Topology& topology, MachineFacts* machine) {
  for (int i = 0; i < topology.count(HWLOC_OBJ_NUMANODE); ++i) {
    hwloc_obj_t object = topology.object(HWLOC_OBJ_NUMANODE, i);
    NumaNode node;
    node.id = static_cast<int>(object->os_index);
    node.package = package_of(object);
    node.cpus = mask_of(topology.api(), object->cpuset);
    node.memory_bytes = object->attr->numanode.local_memory;
    machine->nodes.push_back(std::move(node));
  }
  read_node_distances(topology, machine);
}

PciAddress address_of(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  return pci_address(pci.domain, pci.bus, pci.dev, pci.func);
}

// Bridges from the host bridge down to, but without, `device`.
std::vector<PciAddress> path_of(hwloc_obj_t device) {
  std::vector<PciAddress> path;
  for (hwloc_obj_t at = device->parent; at != nullptr && at->type == HWLOC_OBJ_BRIDGE;
       at = at->parent) {
    const hwloc_obj_attr_u::hwloc_bridge_attr_s& bridge = at->attr->bridge;
    path.push_back(
        bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI
            ? address_of(bridge.upstream.pci)
            : pci_address(bridge.downstream.pci.domain, bridge.downstream.pci.secondary_bus, 0, 0));
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// The one NUMA node of the part of the machine that a device hangs under, else -1.
int node_of(const HwlocApi& api, hwloc_obj_t device) {
  hwloc_obj_t at = device;
  while (at != nullptr && at->cpuset == nullptr) at = at->parent;
  if (at == nullptr || at->nodeset == nullptr || api.bitmap_weight(at->nodeset) != 1) return -1;
  return api.bitmap_next(at->nodeset, -1);
}

void read_devices(const Topology& topology, MachineFacts* machine) {
  for (int i = 0; i < topology.count(HWLOC_OBJ_PCI_DEVICE); ++i) {
    hwloc_obj_t object = topology.object(HWLOC_OBJ_PCI_DEVICE, i);
    const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci = object->attr->pcidev;
    PciDevice device;
    if (!pci_kind_of(pci.class_id, pci.vendor_id, &device.kind)) continue;
    device.address = address_of(pci);
    device.class_code = pci.class_id;
    device.vendor = pci.vendor_id;
    device.device = pci.device_id;
    device.numa_node = node_of(topology.api(), object);
    device.path = path_of(object);
    device.name = object->name != nullptr ? object->name : info_of(object, "PCIDevice");
    machine->devices.push_back(std::move(device));
  }
}

// The PCI device that an object of a distance matrix is or belongs to, as index; -1: none of ours.
int device_index(const MachineFacts& machine, hwloc_obj_t object) {
  while (object != nullptr && object->type != HWLOC_OBJ_PCI_DEVICE) {
    if (object->type != HWLOC_OBJ_OS_DEVICE) return -1;
    object = object->parent;
  }
  if (object == nullptr) return -1;
  const PciAddress address = address_of(object->attr->pcidev);
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    if (machine.devices[i].address == address) return static_cast<int>(i);
  }
  return -1;
}

// hwloc's matrices of device links; the values are MB/s, and on the diagonal what a device has to
// itself.
void read_links(const Topology& topology, MachineFacts* machine) {
  const HwlocApi& api = topology.api();
  for (const char* name : {"NVLinkBandwidth", "XGMIBandwidth"}) {
    hwloc_distances_s* found = nullptr;
    unsigned count = 1;
    if (api.distances_get_by_name(topology.get(), name, &count, &found, 0) != 0 || count == 0 ||
        found == nullptr) {
      continue;
    }
    for (unsigned row = 0; row < found->nbobjs; ++row) {
      const int from = device_index(*machine, found->objs[row]);
      for (unsigned column = 0; from >= 0 && column < found->nbobjs; ++column) {
        const int to = device_index(*machine, found->objs[column]);
        const uint64_t value = found->values[row * found->nbobjs + column];
        if (to >= 0 && to != from && value != 0) machine->links.push_back({from, to, value});
      }
    }
    api.distances_release(topology.get(), found);
  }
}

}  // namespace

Result<MachineFacts> machine_from_hwloc(std::string* dump) {
  FCCL_TRY_ASSIGN(api, hwloc_api());
  Topology topology(*api);
  FCCL_TRY(topology.open(dump != nullptr));
  MachineFacts machine;
  machine.source = "hwloc " + read_cpus(topology, &machine);
  read_nodes(topology, &machine);
  read_devices(topology, &machine);
  read_links(topology, &machine);
  sort_devices(&machine);
  if (dump != nullptr) {
    char* text = nullptr;
    int bytes = 0;
    if (api->topology_export_xmlbuffer(topology.get(), &text, &bytes, 0) != 0) {
      return Status(Code::SystemError, "hwloc cannot write the machine as XML");
    }
    *dump = text;  // ends with a zero
    api->free_xmlbuffer(topology.get(), text);
  }
  return machine;
}

}  // namespace fccl
