// Log: silent unless FCCL_DEBUG or a callback asks. One line per event: to the callback, if there
// is one; to FCCL_DEBUG_FILE, if FCCL_DEBUG is set too; else to stderr, if FCCL_DEBUG is set. The
// unique id and keys are never passed to it.
#pragma once
#include <cstdint>
#include <string>

#include "base/status.h"

namespace fccl {

struct Config;

enum class LogLevel : int32_t { None = 0, Version = 1, Warn = 2, Info = 3, Trace = 4 };

// One bit each; FCCL_DEBUG_SUBSYS takes their lower-case names in NCCL's list grammar
// ("init,memory",
// "^bootstrap"). Warnings are not filtered.
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
  kLogAll = (1u << 10) - 1,
};

// Called one line at a time, from any thread that calls fccl. Without FCCL_DEBUG it gets
// warnings. What it logs itself through fccl is dropped. When set_log_callback returns, the former
// callback is not running any more, unless the caller is that callback.
using LogCallback = void (*)(void* context, int32_t level, const char* line);
void set_log_callback(LogCallback callback, void* context);

// The three debug variables of `config` take the place of what the first log call read from the
// environment.
void configure_log(const Config& config);

// Masks of LogSubsystem for "init,memory", "^bootstrap", "all", "" (all); InvalidArgument
// otherwise.
Result<uint32_t> parse_log_subsystems(const std::string& text);
std::string log_subsystem_names();

// The rank that this thread's lines show while the object lives.
class LogRank {
 public:
  explicit LogRank(int rank);
  ~LogRank();
  LogRank(const LogRank&) = delete;
  LogRank& operator=(const LogRank&) = delete;

 private:
  int former_;
};

bool log_enabled(LogLevel level, uint32_t subsystem);
// Keeps errno.
[[gnu::format(printf, 3, 4)]] void log_line(LogLevel level, uint32_t subsystem, const char* format,
                                            ...);

}  // namespace fccl

#define FCCL_LOG(level, subsystem, ...)                                          \
  do {                                                                           \
    if (::fccl::log_enabled(::fccl::LogLevel::level, ::fccl::subsystem))         \
      ::fccl::log_line(::fccl::LogLevel::level, ::fccl::subsystem, __VA_ARGS__); \
  } while (0)
