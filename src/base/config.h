// Config: the values of config.def, read from the environment by `read_config` (each init does, so
// that a test may change a variable between two). Precedence is environment, then the caller's
// config struct, then the default: `is_set` says whether the environment spoke.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace fccl {

// One name per row of config.def, in its order: Variable::debug, ...
enum class Variable : int32_t {
#define FCCL_VARIABLE(type, field, NAME, fallback, low, high, agree, doc) field,
#include "base/config.def"
#undef FCCL_VARIABLE
  kCount
};
inline constexpr int kVariables = static_cast<int>(Variable::kCount);
static_assert(kVariables <= 64, "Config::set_mask has one bit per variable");

struct Config {
#define FCCL_VARIABLE_Int(field) int64_t field = 0;
#define FCCL_VARIABLE_Bool(field) int64_t field = 0;
#define FCCL_VARIABLE_Size(field) int64_t field = 0;
#define FCCL_VARIABLE_Text(field) std::string field;
#define FCCL_VARIABLE(type, field, NAME, fallback, low, high, agree, doc) \
  FCCL_VARIABLE_##type(field)
#include "base/config.def"
#undef FCCL_VARIABLE
#undef FCCL_VARIABLE_Int
#undef FCCL_VARIABLE_Bool
#undef FCCL_VARIABLE_Size
#undef FCCL_VARIABLE_Text
  uint64_t set_mask = 0;  // bit i: Variable i came from the environment

  bool is_set(Variable variable) const {
    return (set_mask >> static_cast<int>(variable) & 1) != 0;
  }
};

// What one variable is, for fccl_info and for the comparison over ranks.
struct VariableInfo {
  std::string name;  // FCCL_...
  std::string type;  // Int, Bool, Size, Text
  std::string value;  // the value in force, as text
  std::string fallback;  // the default, as text
  std::string doc;
  bool from_environment = false;
  bool agree = false;
};

// InvalidArgument names the variable, its value and what is allowed, in one line.
Result<Config> read_config();
// As read_config, but a variable with an illegal value keeps its default: for the log, which must
// work before and while an error is reported.
Config read_config_leniently();
// Parses with `lookup` in place of the environment (tests, fuzzer).
Result<Config> parse_config(const char* (*lookup)(const char* name));
// All variables in the order of config.def, with the values of `config`.
std::vector<VariableInfo> describe_config(const Config& config);

// "64K" -> 65536; K, M, G are powers of 1024.
Result<int64_t> parse_size(const std::string& text);

}  // namespace fccl
