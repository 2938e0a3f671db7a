// Where a thread runs and where its memory lies. Plain system calls: what libnuma and hwloc would
// make of it too, without their state.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "topology/allowed_cpus.h"
#include "topology/detect.h"
#include "topology/text_file.h"

namespace fccl {
namespace {

constexpr int kMaxNodes = 1024;
// linux/mempolicy.h, which is not everywhere
constexpr int kPreferred = 1;
constexpr unsigned kMove = 2;

}  // namespace

int numa_node_of_current_thread() {
  const CpuMask allowed = current_affinity();
  for (int node : parse_list(read_text_file("/sys/devices/system/node/online"), kMaxNodes)) {
    const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
    if (allowed.inside(parse_cpu_list(read_text_file(folder + "/cpulist")))) return node;
  }
  return -1;
}

Status bind_memory(void* memory, size_t bytes, int node) {
  if (node < 0 || bytes == 0) return {};
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (memory == nullptr || node >= kMaxNodes || reinterpret_cast<uintptr_t>(memory) % page != 0) {
    return error(Code::InvalidArgument, "bind_memory: node %d, memory %p", node, memory);
  }
  constexpr size_t kWordBits = 8 * sizeof(unsigned long);
  unsigned long nodes[kMaxNodes / kWordBits] = {};
  nodes[static_cast<size_t>(node) / kWordBits] = 1ul << static_cast<size_t>(node) % kWordBits;
  if (::syscall(SYS_mbind, memory, bytes, kPreferred, nodes, kMaxNodes + 1, kMove) != 0) {
    // Not allowed in many containers, not built into some kernels: the pages stay where they are.
    const Code code = errno == EPERM || errno == ENOSYS ? Code::Unsupported : Code::SystemError;
    const Status status = errno_error("mbind of %zu bytes to NUMA node %d", bytes, node);
    return Status(code, status.text());
  }
  return {};
}

}  // namespace fccl
