// Config: the values of config.def for this process. `config()` reads the environment once;
// `read_config` reads it anew (each init does, so that a test may change a variable between two).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace fccl {

struct Config {
#define FCCL_VARIABLE_Int(field) int64_t field = 0;
#define FCCL_VARIABLE_Bool(field) int64_t field = 0;
#define FCCL_VARIABLE_Size(field) int64_t field = 0;
#define FCCL_VARIABLE_Text(field) std::string field;
#define FCCL_VARIABLE(type, field, NAME, fallback, low, high, agree, doc) FCCL_VARIABLE_##type(field)
#include "base/config.def"
#undef FCCL_VARIABLE
#undef FCCL_VARIABLE_Int
#undef FCCL_VARIABLE_Bool
#undef FCCL_VARIABLE_Size
#undef FCCL_VARIABLE_Text
};

// What one variable is, for fccl_info and for the comparison over ranks.
struct VariableInfo {
  std::string name;     // FCCL_...
  std::string type;     // Int, Bool, Size, Text
  std::string value;    // the value in force, as text
  std::string fallback; // the default, as text
  std::string doc;
  bool from_environment = false;
  bool agree = false;
};

// InvalidArgument names the variable, its value and what is allowed.
Result<Config> read_config();
// Parses with `lookup` in place of the environment (tests, fuzzer).
Result<Config> parse_config(const char* (*lookup)(const char* name));
std::vector<VariableInfo> describe_config(const Config& config);

// "64K" -> 65536; K, M, G are powers of 1024.
Result<int64_t> parse_size(const std::string& text);

}  // namespace fccl
