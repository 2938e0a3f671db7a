// detect_machine: one picture of the machine per process, from the best source there is, completed
// with what belongs to the calling thread. A machine read from FCCL_TOPO_FILE has no identity of
// its own: host id, allowed CPUs and CPU level stay those of the host that the rank really runs on.
#include "topology/detect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>

#include "base/log.h"
#include "base/unique_fd.h"
#include "topology/allowed_cpus.h"
#include "topology/identity.h"
#include "topology/machine_source.h"
#include "topology/xml_reader.h"

namespace fccl {
namespace {

// Never a device, a pipe or an endless file.
Result<std::string> read_topology_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return errno_error("FCCL_TOPO_FILE: cannot open %s", path.c_str());
  struct stat found {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return error(Code::InvalidArgument, "FCCL_TOPO_FILE: %s is not a plain file", path.c_str());
  }
  if (found.st_size > static_cast<off_t>(kMaxXmlBytes)) {
    return error(Code::InvalidArgument, "FCCL_TOPO_FILE: %s is longer than 16 MiB", path.c_str());
  }
  std::string text(static_cast<size_t>(found.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("FCCL_TOPO_FILE: cannot read %s", path.c_str());
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  if (text.empty()) {
    return error(Code::InvalidArgument, "FCCL_TOPO_FILE: %s is empty", path.c_str());
  }
  return text;
}

// Beside the file and then into place, because several ranks may be told the same name.
Status write_topology_file(const std::string& path, const std::string& text) {
  std::string beside = path + ".XXXXXX";
  const UniqueFd file(::mkostemp(beside.data(), O_CLOEXEC));
  if (!file.valid()) return errno_error("FCCL_TOPO_DUMP_FILE: cannot write %s", path.c_str());
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(file.get(), text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<size_t>(put);
  }
  if (done == text.size() && ::fchmod(file.get(), 0644) == 0 &&
      ::rename(beside.c_str(), path.c_str()) == 0) {
    return {};
  }
  const Status status = errno_error("FCCL_TOPO_DUMP_FILE: cannot write %s", path.c_str());
  ::unlink(beside.c_str());
  return status;
}

Result<MachineFacts> machine_of_file(const std::string& path) {
  FCCL_TRY_ASSIGN(xml, read_topology_file(path));
  Result<MachineFacts> machine = machine_from_xml(xml);
  if (!machine.ok()) {
    return error(machine.status().code(),
                 "FCCL_TOPO_FILE=%s: %s",
                 path.c_str(),
                 machine.status().text().c_str());
  }
  machine->source = "file " + path;
  return machine;
}

// A machine that was read from a file is written as it was read.
Status dump_machine(const Config& config) {
  std::string xml;
  if (!config.topo_file.empty()) {
    FCCL_TRY_ASSIGN(text, read_topology_file(config.topo_file));
    xml = std::move(text);
  } else if (Result<MachineFacts> machine = machine_from_hwloc(&xml); !machine.ok()) {
    return error(machine.status().code(),
                 "FCCL_TOPO_DUMP_FILE=%s: %s",
                 config.topo_dump_file.c_str(),
                 machine.status().text().c_str());
  }
  return write_topology_file(config.topo_dump_file, xml);
}

MachineFacts look_at_machine() {
  Result<MachineFacts> machine = machine_from_hwloc(nullptr);
  if (machine.ok()) return *machine;
  MachineFacts fallback = machine_from_sysfs("");
  fallback.why_source = machine.status().text();
  return fallback;
}

// The machine does not change under a process; looking takes from milliseconds to a second.
MachineFacts this_machine() {
  static std::mutex mutex;
  static const MachineFacts* known = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known == nullptr) {
    known = new MachineFacts(look_at_machine());  // kept until the process ends
    FCCL_LOG(Info,
             kLogTopology,
             "machine by %s%s%s: %d packages, %zu NUMA nodes, %d CPUs, %d GPUs",
             known->source.c_str(),
             known->why_source.empty() ? "" : ", ",
             known->why_source.c_str(),
             known->packages,
             known->nodes.size(),
             known->cpus,
             known->gpus());
  }
  return *known;
}

void add_identity(const Config& config, MachineFacts* machine) {
  const HostIdentity identity = host_identity(config.hostid);
  if (machine->this_host || machine->host_name.empty()) machine->host_name = identity.host_name;
  machine->boot_id = identity.boot_id;
  machine->host_id = identity.host_id;
  machine->boot_id_hash = identity.boot_id_hash;
}

void add_allowed(MachineFacts* machine) {
  machine->allowed = current_affinity();
  const CpuQuota quota = read_cpu_quota("");
  machine->quota_millicpus = quota.millicpus;
  machine->quota_group = quota.group;
}

}  // namespace

Result<MachineFacts> detect_machine(const Config& config) {
  MachineFacts machine;
  if (config.topo_file.empty()) {
    machine = this_machine();
  } else {
    FCCL_TRY_ASSIGN(read, machine_of_file(config.topo_file));
    machine = std::move(read);
  }
  if (!config.topo_dump_file.empty()) FCCL_TRY(dump_machine(config));
  FCCL_TRY_ASSIGN(level, cpu_level_of(config));
  machine.cpu_level = level;
  add_identity(config, &machine);
  add_allowed(&machine);
  return machine;
}

}  // namespace fccl
