// Starts the library's own threads: all signals blocked (they belong to the application's threads),
// a name for debuggers, and an error instead of an exception when the system has no thread left.
#pragma once
#include <functional>
#include <thread>

#include "base/status.h"

namespace fccl {

Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace fccl
