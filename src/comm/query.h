// Questions before any communicator exists, answered by the code that init and calls use.
#pragma once
#include "comm/settings.h"
#include "select/plan.h"

namespace fccl {

// The situation of `ranks` processes on this host, as far as this process can know it. Leaves
// nothing behind; makes no device context.
Result<Situation> expected_situation(const Settings& settings, int ranks);
Result<BackendKind> expected_backend(const Settings& settings);

}  // namespace fccl
