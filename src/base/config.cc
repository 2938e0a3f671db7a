// Reads the table of config.def from the environment. Called by each init, by the log and by
// fccl_info; nobody else in the library looks at the environment. A value is either taken whole or
// refused with one line that names the variable, the value and what is allowed.
#include "base/config.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/log.h"

namespace fccl {
namespace {

constexpr size_t kMaxTextBytes = 4096;

// Text variables that take one of a few words; any letter case is understood, the word is stored.
struct Choice {
  std::string_view name;
  std::string_view words;  // separated by one space
};
constexpr Choice kChoices[] = {
    {"FCCL_DEBUG", "VERSION WARN INFO TRACE"},
    {"FCCL_BACKEND", "cpu cuda hip"},
    {"FCCL_SOCKET_FAMILY", "AF_INET AF_INET6"},
    {"FCCL_CPU_LEVEL", "v2 v3 v4 neon scalar"},
};

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

// What is loaded, opened or written must not be chosen by the caller of a set-user-id program.
bool needs_trusted_caller(std::string_view name) {
  return ends_with(name, "_DIR") || ends_with(name, "_FILE") || ends_with(name, "_PLUGIN");
}

const char* lookup_environment(const char* name) {
  return needs_trusted_caller(name) ? ::secure_getenv(name) : std::getenv(name);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i])))
      return false;
  }
  return true;
}

// A value as it may stand in a one-line message: printable, short.
std::string shown(std::string_view value) {
  constexpr size_t kShown = 64;
  std::string text;
  for (char c : value.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  if (value.size() > kShown) text += "...";
  return text;
}

Status refuse(const char* name, std::string_view value, const std::string& allowed) {
  return error(Code::InvalidArgument,
               "%s=%s is not legal; allowed: %s",
               name,
               shown(value).c_str(),
               allowed.c_str());
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool parse_int(std::string_view text, int64_t* value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return failure == std::errc() && end == text.data() + text.size();
}

std::string range_text(int64_t low, int64_t high) {
  return std::to_string(low) + " to " + std::to_string(high);
}

Status take_number(const char* name, std::string_view value, int64_t low, int64_t high, bool size,
                   int64_t* field) {
  std::string allowed = range_text(low, high);
  int64_t parsed = 0;
  if (size) {
    allowed += " bytes, with K, M or G for powers of 1024";
    Result<int64_t> bytes = parse_size(std::string(trim(value)));
    if (!bytes.ok()) return refuse(name, value, allowed);
    parsed = *bytes;
  } else if (!parse_int(trim(value), &parsed)) {
    return refuse(name, value, allowed);
  }
  if (parsed < low || parsed > high) return refuse(name, value, allowed);
  *field = parsed;
  return {};
}

Status take_choice(const Choice& choice, const char* name, std::string_view value,
                   std::string* field) {
  std::string allowed;
  std::string_view rest = choice.words;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    if (equal_ignoring_case(word, trim(value))) {
      *field = word;
      return {};
    }
    if (!allowed.empty()) allowed += ", ";
    allowed += word;
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
  }
  return refuse(name, value, allowed);
}

Status take_text(const char* name, std::string_view value, std::string* field) {
  for (const Choice& choice : kChoices) {
    if (choice.name == name) return take_choice(choice, name, value, field);
  }
  if (value.size() > kMaxTextBytes) {
    return refuse(name, value, "at most " + std::to_string(kMaxTextBytes) + " bytes");
  }
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return refuse(name, value, "text without control characters");
  }
  if (std::string_view(name) == "FCCL_DEBUG_SUBSYS") {
    if (!parse_log_subsystems(std::string(value)).ok()) {
      return refuse(name, value, "a list of " + log_subsystem_names() + ", all; ^ excludes");
    }
  }
  *field = value;
  return {};
}

// The four row types; `low` and `high` are unused where a type has its own rule.
Status take_Int(const char* name, std::string_view value, int64_t low, int64_t high,
                int64_t* field) {
  return take_number(name, value, low, high, false, field);
}
Status take_Bool(const char* name, std::string_view value, int64_t, int64_t, int64_t* field) {
  if (trim(value) != "0" && trim(value) != "1") return refuse(name, value, "0 or 1");
  *field = trim(value) == "1" ? 1 : 0;
  return {};
}
Status take_Size(const char* name, std::string_view value, int64_t low, int64_t high,
                 int64_t* field) {
  return take_number(name, value, low, high, true, field);
}
Status take_Text(const char* name, std::string_view value, int64_t, int64_t, std::string* field) {
  return take_text(name, value, field);
}

// Every legal value lands in the Config; the first illegal one is the Status.
Status parse_into(const char* (*lookup)(const char* name), Config* config) {
  Status first;
  uint64_t bit = 1;
#define FCCL_VARIABLE(type, field, NAME, fallback, low, high, agree, doc)               \
  config->field = fallback;                                                             \
  if (const char* value = lookup("FCCL_" #NAME); value != nullptr && *value != '\0') {  \
    Status status =                                                                     \
        take_##type("FCCL_" #NAME, value, int64_t{low}, int64_t{high}, &config->field); \
    if (status.ok()) {                                                                  \
      config->set_mask |= bit;                                                          \
    } else if (first.ok()) {                                                            \
      first = std::move(status);                                                        \
    }                                                                                   \
  }                                                                                     \
  bit <<= 1;
#include "base/config.def"
#undef FCCL_VARIABLE
  return first;
}

std::string value_text(int64_t value) {
  return std::to_string(value);
}
std::string value_text(const std::string& value) {
  return value;
}

}  // namespace

Result<Config> parse_config(const char* (*lookup)(const char* name)) {
  Config config;
  FCCL_TRY(parse_into(lookup, &config));
  return config;
}

Result<Config> read_config() {
  return parse_config(lookup_environment);
}

Config read_config_leniently() {
  Config config;
  // The error is reported by the next read_config; here only the legal values matter.
  static_cast<void>(parse_into(lookup_environment, &config));
  return config;
}

std::vector<VariableInfo> describe_config(const Config& config) {
  std::vector<VariableInfo> rows;
  rows.reserve(kVariables);
#define FCCL_VARIABLE(type, field, NAME, fallback, low, high, agree, doc) \
  rows.push_back({"FCCL_" #NAME,                                          \
                  #type,                                                  \
                  value_text(config.field),                               \
                  value_text(decltype(config.field)(fallback)),           \
                  doc,                                                    \
                  config.is_set(Variable::field),                         \
                  (agree) != 0});
#include "base/config.def"
#undef FCCL_VARIABLE
  return rows;
}

Result<int64_t> parse_size(const std::string& text) {
  std::string_view digits = text;
  int shift = 0;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'K':
      case 'k':
        shift = 10;
        break;
      case 'M':
      case 'm':
        shift = 20;
        break;
      case 'G':
      case 'g':
        shift = 30;
        break;
      default:
        break;
    }
    if (shift != 0) digits.remove_suffix(1);
  }
  int64_t count = 0;
  if (!parse_int(digits, &count) || count < 0 || count > (INT64_MAX >> shift)) {
    return error(Code::InvalidArgument,
                 "'%s' is not a size; allowed: 0 or more bytes, with K, M or G for powers of 1024",
                 shown(text).c_str());
  }
  return count << shift;
}

}  // namespace fccl
