#include "base/fault.h"

#include <atomic>
#include <mutex>

namespace fccl {
namespace {

struct FaultSpec {
  std::string phase;
  std::string rank;
  std::string how;
};

FaultSpec split_spec(const std::string& spec) {
  FaultSpec parts;
  const size_t first = spec.find(':');
  parts.phase = spec.substr(0, first);
  if (first == std::string::npos) return parts;
  const size_t second = spec.find(':', first + 1);
  parts.rank = spec.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  if (second != std::string::npos) parts.how = spec.substr(second + 1);
  return parts;
}

bool matches(const FaultSpec& parts, FaultPhase phase, int rank) {
  return parts.phase == phase.name() && (parts.rank == "*" || parts.rank == std::to_string(rank));
}

// Never destroyed: a hook may be asked by a thread that outlives static destructors.
struct ActiveFault {
  std::atomic<bool> set{false};
  std::mutex mutex;
  FaultSpec parts;
};
ActiveFault& active() {
  static ActiveFault* const instance = new ActiveFault;
  return *instance;
}

}  // namespace

const std::vector<std::string>& fault_phases() {
  static const std::vector<std::string>* const phases = new std::vector<std::string>{
#define FCCL_FAULT_PHASE(name, doc) name,
#include "base/fault_phases.def"
#undef FCCL_FAULT_PHASE
  };
  return *phases;
}

Status set_fault(const std::string& spec) {
  const FaultSpec parts = split_spec(spec);
  if (!spec.empty()) {
    bool known = false;
    for (const std::string& phase : fault_phases()) known = known || phase == parts.phase;
    if (!known || parts.rank.empty())
      return error(Code::InvalidArgument,
                   "FCCL_TEST_FAULT=%s: expected phase:rank[:how] with a phase of fault_phases.def",
                   spec.c_str());
  }
  const std::lock_guard<std::mutex> lock(active().mutex);
  active().parts = parts;
  active().set.store(!spec.empty(), std::memory_order_relaxed);
  return {};
}

bool fault(FaultPhase phase, int rank) {
  if (!active().set.load(std::memory_order_relaxed)) return false;
  const std::lock_guard<std::mutex> lock(active().mutex);
  return matches(active().parts, phase, rank);
}

std::string fault_how(FaultPhase phase, int rank) {
  if (!active().set.load(std::memory_order_relaxed)) return {};
  const std::lock_guard<std::mutex> lock(active().mutex);
  return matches(active().parts, phase, rank) ? active().parts.how : std::string();
}

Status fault_status(FaultPhase phase, int rank) {
  if (!fault(phase, rank)) return {};
  return error(Code::SystemError, "fault hook %s fails on rank %d", phase.name(), rank);
}

bool fault(const std::string& spec, FaultPhase phase, int rank) {
  return !spec.empty() && matches(split_spec(spec), phase, rank);
}

}  // namespace fccl
