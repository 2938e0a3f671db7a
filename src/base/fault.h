// Fault hooks: FCCL_TEST_FAULT=phase:rank[:how] makes a step fail on one rank ("*" is every rank),
// so that tests can walk all steps and see that all ranks end with the same error. A step asks
// `fault("memory.alloc", rank)` and fails as if the system had. Cost when unset: one relaxed load.
// Invariant: each name that is asked for is a row of fault_phases.def, or it does not compile.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fccl {

// The name of a hook.
class FaultPhase {
 public:
  consteval FaultPhase(const char* name) : name_(name) {
#define FCCL_FAULT_PHASE(row, doc) known_ = known_ || std::string_view(row) == name;
#include "base/fault_phases.def"
#undef FCCL_FAULT_PHASE
    if (!known_) is_no_row_of_fault_phases_def();
  }
  const char* name() const {
    return name_;
  }

 private:
  static void is_no_row_of_fault_phases_def();  // only to be named by a compiler's error
  const char* name_;
  bool known_ = false;
};

// Sets the hook for the whole process; init calls it with Config::test_fault. "" switches it off.
// InvalidArgument if the text has the wrong form or names no known phase.
Status set_fault(const std::string& spec);

bool fault(FaultPhase phase, int rank);
// The third part of the active hook if it is for this phase and rank, else "".
std::string fault_how(FaultPhase phase, int rank);
// The error of a step that fails by its hook, ok otherwise.
Status fault_status(FaultPhase phase, int rank);

// The same with a given text in place of the process-wide one.
bool fault(const std::string& spec, FaultPhase phase, int rank);

// All phases, for a test that walks them.
const std::vector<std::string>& fault_phases();

}  // namespace fccl
