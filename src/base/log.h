// Log: silent unless FCCL_DEBUG or a callback asks. One line per event, to the callback, to
// FCCL_DEBUG_FILE or to stderr. The unique id and keys are never passed to it.
#pragma once
#include <cstdint>

namespace fccl {

enum class LogLevel : int32_t { None = 0, Version = 1, Warn = 2, Info = 3, Trace = 4 };

// One bit each; FCCL_DEBUG_SUBSYS takes their lower-case names in NCCL's list grammar ("init,memory", "^bootstrap").
enum LogSubsystem : uint32_t {
  kLogInit = 1u << 0,
  kLogBootstrap = 1u << 1,
  kLogTopology = 1u << 2,
  kLogMemory = 1u << 3,
  kLogSelect = 1u << 4,
  kLogCall = 1u << 5,
  kLogHealth = 1u << 6,
  kLogBackend = 1u << 7,
  kLogPlugin = 1u << 8,
  kLogEnv = 1u << 9,
};

using LogCallback = void (*)(void* context, int32_t level, const char* line);
void set_log_callback(LogCallback callback, void* context);

bool log_enabled(LogLevel level, uint32_t subsystem);
[[gnu::format(printf, 3, 4)]] void log_line(LogLevel level, uint32_t subsystem, const char* format, ...);

}  // namespace fccl

#define FCCL_LOG(level, subsystem, ...)                                        \
  do {                                                                         \
    if (::fccl::log_enabled(::fccl::LogLevel::level, ::fccl::subsystem))       \
      ::fccl::log_line(::fccl::LogLevel::level, ::fccl::subsystem, __VA_ARGS__); \
  } while (0)
