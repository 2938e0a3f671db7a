// The log's one state: what is asked for (an atomic word, so that a silent log costs one load), and
// behind a mutex the callback, the file and the host name. A line leaves in one write(). In a
// forked child the log is silent: the mutex may be held by a thread that does not exist there.
#include "base/log.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/config.h"
#include "base/unique_fd.h"

namespace fccl {
namespace {

constexpr size_t kLineBytes = 1024;
constexpr const char* kSubsystems[] = {"init",
                                       "bootstrap",
                                       "topology",
                                       "memory",
                                       "select",
                                       "call",
                                       "health",
                                       "backend",
                                       "plugin",
                                       "env"};
constexpr int kSubsystemCount = sizeof kSubsystems / sizeof kSubsystems[0];
static_assert(kLogAll == (1u << kSubsystemCount) - 1, "one name per LogSubsystem");

// level in the low byte, subsystem mask above; kUnread until the environment was looked at.
constexpr uint32_t kUnread = ~0u;
constexpr uint32_t pack_asked(LogLevel level, uint32_t mask) {
  return static_cast<uint32_t>(level) | mask << 8;
}

struct State {
  std::mutex mutex;
  LogLevel level = LogLevel::None;  // of FCCL_DEBUG
  uint32_t mask = kLogAll;
  LogCallback callback = nullptr;
  void* context = nullptr;
  bool file_named = false;
  UniqueFd file;
  std::atomic<pid_t> pid{0};
  char host[64] = "?";
};

std::atomic<uint32_t> asked{kUnread};
thread_local int thread_rank = -1;
thread_local bool in_callback = false;

// Never destroyed: threads may log while the process exits.
State& state() {
  static State* const instance = new State;
  return *instance;
}

LogLevel level_of(const std::string& name) {
  if (name == "VERSION") return LogLevel::Version;
  if (name == "WARN") return LogLevel::Warn;
  if (name == "INFO") return LogLevel::Info;
  if (name == "TRACE") return LogLevel::Trace;
  return LogLevel::None;
}

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::Version:
      return "VERSION";
    case LogLevel::Warn:
      return "WARN";
    case LogLevel::Info:
      return "INFO";
    case LogLevel::Trace:
      return "TRACE";
    case LogLevel::None:
      break;
  }
  return "-";
}

const char* subsystem_name(uint32_t subsystem) {
  for (int i = 0; i < kSubsystemCount; ++i) {
    if ((subsystem >> i & 1) != 0) return kSubsystems[i];
  }
  return "-";
}

void publish(const State& s) {
  LogLevel level = s.level;
  // A callback alone asks for warnings; FCCL_DEBUG beside it has the say.
  if (s.callback != nullptr && level == LogLevel::None) level = LogLevel::Warn;
  asked.store(pack_asked(level, s.mask), std::memory_order_release);
}

// %h is the host name, %p the process id, %% a percent sign.
std::string expand_file_name(const std::string& pattern, const State& s) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') {
      name += s.host;
    } else if (next == 'p') {
      name += std::to_string(s.pid.load());
    } else if (next == '%') {
      name += '%';
    } else {
      name += pattern[i];
      continue;
    }
    ++i;
  }
  return name;
}

void write_whole(int fd, const char* text, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(fd, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a log that cannot be written is no reason to fail
    text += written;
    bytes -= static_cast<size_t>(written);
  }
}

struct Line {
  char text[kLineBytes];
  size_t bytes = 0;  // without the newline, which stands at text[bytes]
};

// Peers' texts may hold anything: no control character reaches the log, so one event is one line.
void finish_line(Line* line) {
  line->bytes = std::min(line->bytes, kLineBytes - 2);
  for (size_t i = 0; i < line->bytes; ++i) {
    const auto byte = static_cast<unsigned char>(line->text[i]);
    if (byte < 0x20 || byte == 0x7f) line->text[i] = ' ';
  }
  line->text[line->bytes] = '\n';
  line->text[line->bytes + 1] = '\0';
}

void make_line(const State& s, LogLevel level, uint32_t subsystem, const char* format, va_list args,
               Line* line) {
  char rank[16] = "-";
  if (thread_rank >= 0) std::snprintf(rank, sizeof rank, "%d", thread_rank);
  const int head = std::snprintf(line->text,
                                 kLineBytes,
                                 "%s:%d:%ld [%s] fccl %s %s ",
                                 s.host,
                                 static_cast<int>(s.pid.load()),
                                 static_cast<long>(::syscall(SYS_gettid)),
                                 rank,
                                 level_name(level),
                                 subsystem_name(subsystem));
  const auto used = static_cast<size_t>(std::max(head, 0));
  const int body = std::vsnprintf(line->text + used, kLineBytes - used, format, args);
  line->bytes = used + static_cast<size_t>(std::max(body, 0));
  finish_line(line);
}

// Holding the mutex.
void deliver(State& s, LogLevel level, Line* line, bool to_stderr_at_least) {
  if (s.callback != nullptr) {
    line->text[line->bytes] = '\0';
    in_callback = true;
    s.callback(s.context, static_cast<int32_t>(level), line->text);
    in_callback = false;
    line->text[line->bytes] = '\n';
  }
  if (s.level == LogLevel::None) return;
  if (s.file.valid()) {
    write_whole(s.file.get(), line->text, line->bytes + 1);
  } else if (s.callback == nullptr && (!s.file_named || to_stderr_at_least)) {
    write_whole(STDERR_FILENO, line->text, line->bytes + 1);
  }
}

[[gnu::format(printf, 2, 3)]] void warn_about_file(State& s, const char* format, ...) {
  Line line;
  va_list args;
  va_start(args, format);
  make_line(s, LogLevel::Warn, kLogEnv, format, args, &line);
  va_end(args);
  deliver(s, LogLevel::Warn, &line, true);
}

// Holding the mutex. A file that cannot be opened costs one warning; its lines are dropped, since
// the user who named a file wants a clean stderr.
void apply(State& s, const Config& config) {
  s.pid = ::getpid();
  if (::gethostname(s.host, sizeof s.host) != 0) std::strcpy(s.host, "?");
  s.host[sizeof s.host - 1] = '\0';
  s.level = level_of(config.debug);
  Result<uint32_t> mask = parse_log_subsystems(config.debug_subsys);
  s.mask = mask.ok() ? *mask : uint32_t{kLogAll};
  s.file.reset();
  s.file_named = !config.debug_file.empty();
  if (s.file_named && s.level != LogLevel::None) {
    const std::string name = expand_file_name(config.debug_file, s);
    s.file.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
    if (!s.file.valid()) {
      const int failure = errno;
      char buffer[128];
      warn_about_file(s,
                      "FCCL_DEBUG_FILE: cannot open %s: %s; its lines are dropped",
                      name.c_str(),
                      strerror_r(failure, buffer, sizeof buffer));
    }
  }
  publish(s);
}

void read_environment_once() {
  const Config config = read_config_leniently();
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (asked.load(std::memory_order_acquire) == kUnread) apply(s, config);
}

}  // namespace

Result<uint32_t> parse_log_subsystems(const std::string& text) {
  std::string_view rest = text;
  const bool exclude = !rest.empty() && rest.front() == '^';
  if (exclude) rest.remove_prefix(1);
  if (rest.empty() && !exclude) return uint32_t{kLogAll};
  uint32_t mask = 0;
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    const std::string word(rest.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    uint32_t bits = ::strcasecmp(word.c_str(), "all") == 0 ? uint32_t{kLogAll} : 0;
    for (int i = 0; i < kSubsystemCount; ++i) {
      if (::strcasecmp(word.c_str(), kSubsystems[i]) == 0) bits = 1u << i;
    }
    if (bits == 0) {
      return error(Code::InvalidArgument, "'%.32s' is no log subsystem", word.c_str());
    }
    mask |= bits;
  }
  return exclude ? kLogAll & ~mask : mask;
}

std::string log_subsystem_names() {
  std::string names;
  for (const char* name : kSubsystems) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

void set_log_callback(LogCallback callback, void* context) {
  const bool unread = asked.load(std::memory_order_acquire) == kUnread;
  const Config config = unread ? read_config_leniently() : Config();
  State& s = state();
  // Inside the callback this thread holds the mutex already.
  std::unique_lock<std::mutex> lock(s.mutex, std::defer_lock);
  if (!in_callback) lock.lock();
  s.callback = callback;
  s.context = context;
  // A warning about FCCL_DEBUG_FILE belongs to the new callback.
  if (unread && asked.load(std::memory_order_acquire) == kUnread) {
    apply(s, config);
  } else {
    publish(s);
  }
}

void configure_log(const Config& config) {
  State& s = state();
  std::unique_lock<std::mutex> lock(s.mutex, std::defer_lock);
  if (!in_callback) lock.lock();
  apply(s, config);
}

LogRank::LogRank(int rank) : former_(thread_rank) {
  thread_rank = rank;
}
LogRank::~LogRank() {
  thread_rank = former_;
}

bool log_enabled(LogLevel level, uint32_t subsystem) {
  uint32_t now = asked.load(std::memory_order_acquire);
  if (now == kUnread) {
    read_environment_once();
    now = asked.load(std::memory_order_acquire);
  }
  if (level == LogLevel::None || static_cast<uint32_t>(level) > (now & 0xffu)) return false;
  return level <= LogLevel::Warn || ((now >> 8) & subsystem) != 0;
}

void log_line(LogLevel level, uint32_t subsystem, const char* format, ...) {
  const int saved = errno;
  State& s = state();
  if (!in_callback && s.pid.load() == ::getpid()) {
    const std::lock_guard<std::mutex> lock(s.mutex);
    Line line;
    va_list args;
    va_start(args, format);
    make_line(s, level, subsystem, format, args, &line);
    va_end(args);
    deliver(s, level, &line, false);
  }
  errno = saved;
}

}  // namespace fccl
