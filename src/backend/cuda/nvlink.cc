// A GPU on a switch has links to the switch only: its peers are the GPUs of this host that have
// links to a switch too. Declarations are our own: NVML's header is not part of every toolkit, its
// ABI is fixed by the versioned names.
#include "backend/cuda/nvlink.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace fccl {
namespace {

constexpr int kOk = 0;  // nvmlReturn_t
constexpr unsigned int kMostLinks = 18;
constexpr unsigned int kRemoteSwitch = 2;  // nvmlIntNvLinkDeviceType_t
constexpr unsigned int kFieldSpeedCommon = 90;  // MB/s of one link, all alike
constexpr unsigned char kFabricCompleted = 3;

struct Handle;  // nvmlDevice_t
struct PciInfo {
  char legacy_bus_id[16];
  unsigned int domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct FieldValue {
  unsigned int field, scope;
  long long timestamp, latency_us;
  int value_type, result;
  union {
    double number;
    int si;
    unsigned int ui;
    unsigned long ul;
    unsigned long long ull;
    long long ll;
  } value;
};
struct FabricInfo {
  unsigned char cluster[16];
  int status;
  unsigned int clique;
  unsigned char state;
};

struct Nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*by_index)(unsigned int, Handle**) = nullptr;
  int (*pci_info)(Handle*, PciInfo*) = nullptr;
  int (*link_state)(Handle*, unsigned int, int*) = nullptr;
  int (*link_remote)(Handle*, unsigned int, PciInfo*) = nullptr;
  int (*link_remote_type)(Handle*, unsigned int, unsigned int*) = nullptr;  // optional
  int (*fields)(Handle*, int, FieldValue*) = nullptr;  // optional
  int (*fabric)(Handle*, FabricInfo*) = nullptr;  // optional
};

template <class Function>
bool find(void* library, const char* name, Function* to) {
  *to = reinterpret_cast<Function>(dlsym(library, name));
  return *to != nullptr;
}

std::string load(Nvml* to) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "there is no NVML (libnvidia-ml.so.1)";
  const bool all = find(library, "nvmlInit_v2", &to->init) &&
                   find(library, "nvmlDeviceGetCount_v2", &to->count) &&
                   find(library, "nvmlDeviceGetHandleByIndex_v2", &to->by_index) &&
                   find(library, "nvmlDeviceGetPciInfo_v3", &to->pci_info) &&
                   find(library, "nvmlDeviceGetNvLinkState", &to->link_state) &&
                   find(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", &to->link_remote);
  if (!all) return "NVML is too old to tell about links";
  find(library, "nvmlDeviceGetNvLinkRemoteDeviceType", &to->link_remote_type);
  find(library, "nvmlDeviceGetFieldValues", &to->fields);
  find(library, "nvmlDeviceGetGpuFabricInfo", &to->fabric);
  return to->init() == kOk ? "" : "NVML does not start (nvmlInit_v2 failed)";
}

PciAddress address_of(const PciInfo& info) {
  return pci_address(info.domain, info.bus, info.device, 0);
}

struct GpuLinks {
  PciAddress pci = kNoPci;
  uint32_t to_switch = 0;  // links
  uint32_t link_mbps = 0;  // of one
  std::map<PciAddress, uint32_t> peers;  // links to each GPU
};

uint32_t speed_of_links(const Nvml& nvml, Handle* gpu) {
  FieldValue field{};
  field.field = kFieldSpeedCommon;
  if (nvml.fields == nullptr || nvml.fields(gpu, 1, &field) != kOk || field.result != kOk) return 0;
  return field.value.ui;
}

GpuLinks links_of(const Nvml& nvml, Handle* gpu, PciAddress pci) {
  GpuLinks links;
  links.pci = pci;
  links.link_mbps = speed_of_links(nvml, gpu);
  for (unsigned int i = 0; i < kMostLinks; ++i) {
    int active = 0;
    if (nvml.link_state(gpu, i, &active) != kOk || active == 0) continue;
    unsigned int type = 0;
    const bool known =
        nvml.link_remote_type != nullptr && nvml.link_remote_type(gpu, i, &type) == kOk;
    if (known && type == kRemoteSwitch) {
      ++links.to_switch;
      continue;
    }
    PciInfo remote{};
    if (nvml.link_remote(gpu, i, &remote) == kOk) ++links.peers[address_of(remote)];
  }
  return links;
}

// Bytes are counted in each direction, as everywhere in the facts.
void fill(const std::vector<GpuLinks>& all, const GpuLinks& own, DeviceFacts* device) {
  const auto add = [&](PciAddress peer, uint32_t links, bool through_switch) {
    if (device->link_count == kMaxDeviceLinks) return;
    device->links[device->link_count++] = {peer, links * own.link_mbps, through_switch ? 1u : 0u};
  };
  for (const GpuLinks& other : all) {
    if (other.pci == own.pci) continue;
    const auto direct = own.peers.find(other.pci);
    if (direct != own.peers.end()) {
      add(other.pci, direct->second, false);
    } else if (own.to_switch != 0 && other.to_switch != 0) {
      add(other.pci, std::min(own.to_switch, other.to_switch), true);
    }
  }
}

void fill_fabric(const Nvml& nvml, Handle* gpu, DeviceFacts* device) {
  FabricInfo info{};
  if (nvml.fabric == nullptr || nvml.fabric(gpu, &info) != kOk) return;
  if (info.state != kFabricCompleted || info.status != kOk) return;
  std::memcpy(device->fabric_cluster, info.cluster, sizeof device->fabric_cluster);
  device->fabric_clique = info.clique;
}

std::string ask(DeviceFacts* device) {
  static Nvml nvml;
  static const std::string why = load(&nvml);
  if (!why.empty()) return why;
  unsigned int count = 0;
  if (nvml.count(&count) != kOk) return "NVML counts no devices";
  std::vector<GpuLinks> all;
  Handle* own = nullptr;
  for (unsigned int i = 0; i < count; ++i) {
    Handle* gpu = nullptr;
    PciInfo info{};
    if (nvml.by_index(i, &gpu) != kOk || nvml.pci_info(gpu, &info) != kOk) continue;
    all.push_back(links_of(nvml, gpu, address_of(info)));
    if (all.back().pci == device->pci) own = gpu;
  }
  if (own == nullptr) return "NVML does not show this GPU";
  for (const GpuLinks& links : all)
    if (links.pci == device->pci) fill(all, links, device);
  fill_fabric(nvml, own, device);
  return "";
}

}  // namespace

std::string add_links(DeviceFacts* device) {
  struct Answer {
    DeviceFacts facts;
    std::string why;
  };
  static std::mutex mutex;
  static auto* const known = new std::map<PciAddress, Answer>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = known->find(device->pci);
  if (found == known->end()) {
    Answer answer;
    answer.facts.pci = device->pci;
    answer.why = ask(&answer.facts);
    found = known->emplace(device->pci, answer).first;
  }
  const DeviceFacts& facts = found->second.facts;
  std::copy(std::begin(facts.links), std::end(facts.links), device->links);
  device->link_count = facts.link_count;
  std::memcpy(device->fabric_cluster, facts.fabric_cluster, sizeof facts.fabric_cluster);
  device->fabric_clique = facts.fabric_clique;
  return found->second.why;
}

}  // namespace fccl
