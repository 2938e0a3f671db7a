// Fault hooks: FCCL_TEST_FAULT=phase:rank[:how] makes a step fail on one rank ("*" is every rank),
// so that tests can walk all steps and see that all ranks end with the same error. A step asks
// `fault("memory.alloc", rank)` and fails as if the system had. Cost when unset: one relaxed load.
// Invariant: each name that is asked for is a row of fault_phases.def.
#pragma once
#include <string>
#include <vector>

#include "base/status.h"

namespace fccl {

// Sets the hook for the whole process; init calls it with Config::test_fault. "" switches it off.
// InvalidArgument if the text has the wrong form or names no known phase.
Status set_fault(const std::string& spec);

bool fault(const char* phase, int rank);
// The third part of the active hook if it is for this phase and rank, else "".
std::string fault_how(const char* phase, int rank);
// The error of a step that fails by its hook, ok otherwise.
Status fault_status(const char* phase, int rank);

// The same with a given text in place of the process-wide one.
bool fault(const std::string& spec, const char* phase, int rank);

// All phases, for a test that walks them.
const std::vector<std::string>& fault_phases();

}  // namespace fccl
