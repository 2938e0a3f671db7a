// Settings of any bytes: each line NAME=value of the input is a variable. A setting is taken or
// refused in one line that names it, and what was taken means the same when it is read again as
// text.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "base/config.h"
#include "base/log.h"

using namespace fccl;

namespace {

std::map<std::string, std::string> environment;

const char* look_up(const char* name) {
  const auto row = environment.find(name);
  return row == environment.end() ? nullptr : row->second.c_str();
}

void demand(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  environment.clear();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t equals = line.find('=');
    if (equals != std::string::npos) {
      environment["FCCL_" + line.substr(0, equals)] = line.substr(equals + 1);
    }
    begin = end + 1;
  }
  static_cast<void>(parse_size(text));
  static_cast<void>(parse_log_subsystems(text));

  Result<Config> config = parse_config(look_up);
  if (!config.ok()) {
    const std::string& why = config.status().text();
    demand(config.status().code() == Code::InvalidArgument);
    demand(why.rfind("FCCL_", 0) == 0 && why.find('\n') == std::string::npos && why.size() < 767);
    return 0;
  }
  const std::vector<VariableInfo> rows = describe_config(*config);
  environment.clear();
  for (const VariableInfo& row : rows) {
    if (row.from_environment) environment[row.name] = row.value;
  }
  Result<Config> again = parse_config(look_up);
  demand(again.ok() && again->set_mask == config->set_mask);
  const std::vector<VariableInfo> same = describe_config(*again);
  for (size_t i = 0; i < rows.size(); ++i) demand(rows[i].value == same[i].value);
  return 0;
}
