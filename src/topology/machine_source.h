// The three places that the picture of a machine can come from. All fill the same part of
// MachineFacts: packages, cores, CPUs, nodes, distances, caches, memory, PCI devices and links; the
// rest (identity, what is allowed) is added by detect_machine.
#pragma once
#include <string>

#include "base/status.h"
#include "topology/facts.h"

namespace fccl {

// From /sys and /proc below `root` ("" or, in tests, a folder that stands for /). Never fails: what
// is not there stays at its default.
MachineFacts machine_from_sysfs(const std::string& root);

// From hwloc. Unsupported if there is no usable libhwloc. `dump`, if not null, gets the machine as
// XML.
Result<MachineFacts> machine_from_hwloc(std::string* dump);

// From the text of an hwloc XML file; InvalidArgument says why it is none.
Result<MachineFacts> machine_from_xml(const std::string& text);

// By PCI class and vendor; false: of no interest.
bool pci_kind_of(uint32_t class_code, uint32_t vendor, PciKind* kind);
// GPUs first, then by address; rewrites the links' indexes accordingly.
void sort_devices(MachineFacts* machine);

}  // namespace fccl
