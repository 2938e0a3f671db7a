// Settings: every row of config.def is taken whole or refused in one line that names the variable,
// the value and what is allowed.
#include "base/config.h"

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "harness/catch.h"

using namespace fccl;

namespace {

std::map<std::string, std::string> environment;

const char* look_up(const char* name) {
  const auto row = environment.find(name);
  return row == environment.end() ? nullptr : row->second.c_str();
}

Result<Config> parse(std::map<std::string, std::string> values) {
  environment = std::move(values);
  return parse_config(look_up);
}

}  // namespace

TEST_CASE("config_defaults_hold_when_nothing_is_set") {
  Result<Config> config = parse({});
  REQUIRE(config.ok());
  CHECK(config->init_timeout_ms == 120000);
  CHECK(config->spin_us == -1);
  CHECK(config->huge_pages == 1);
  CHECK(config->debug.empty());
  CHECK(config->set_mask == 0);
}

TEST_CASE("config_an_empty_value_is_no_value") {
  Result<Config> config = parse({{"FCCL_INIT_TIMEOUT_MS", ""}, {"FCCL_BACKEND", ""}});
  REQUIRE(config.ok());
  CHECK(config->init_timeout_ms == 120000);
  CHECK(config->set_mask == 0);
}

TEST_CASE("config_legal_values_are_taken") {
  Result<Config> config = parse({{"FCCL_INIT_TIMEOUT_MS", " 2000 "},
                                 {"FCCL_WORKSPACE_BYTES", "16M"},
                                 {"FCCL_CHECK", "1"},
                                 {"FCCL_DEBUG", "info"},
                                 {"FCCL_CPU_LEVEL", "V3"},
                                 {"FCCL_SOCKET_FAMILY", "af_inet6"},
                                 {"FCCL_SOCKET_IFNAME", "^lo,docker"},
                                 {"FCCL_SPIN_US", "-1"}});
  REQUIRE(config.ok());
  CHECK(config->init_timeout_ms == 2000);
  CHECK(config->workspace_bytes == 16 * 1048576);
  CHECK(config->check == 1);
  CHECK(config->debug == "INFO");
  CHECK(config->cpu_level == "v3");
  CHECK(config->socket_family == "AF_INET6");
  CHECK(config->socket_ifname == "^lo,docker");
  CHECK(config->is_set(Variable::spin_us));
  CHECK_FALSE(config->is_set(Variable::huge_pages));
}

TEST_CASE("config_illegal_values_name_variable_value_and_what_is_allowed") {
  struct Row {
    const char *name, *value, *allowed;
  };
  const Row rows[] = {
      {"FCCL_INIT_TIMEOUT_MS", "0", "1 to 86400000"},
      {"FCCL_INIT_TIMEOUT_MS", "86400001", "1 to 86400000"},
      {"FCCL_INIT_TIMEOUT_MS", "99999999999999999999", "1 to 86400000"},
      {"FCCL_INIT_TIMEOUT_MS", "2s", "1 to 86400000"},
      {"FCCL_INIT_TIMEOUT_MS", "1.5", "1 to 86400000"},
      {"FCCL_MAX_BLOCKS", "-1", "0 to 1024"},
      {"FCCL_CHECK", "2", "0 or 1"},
      {"FCCL_CHECK", "yes", "0 or 1"},
      {"FCCL_WORKSPACE_BYTES", "-1", "powers of 1024"},
      {"FCCL_WORKSPACE_BYTES", "65G", "0 to 68719476736"},
      {"FCCL_WORKSPACE_BYTES", "K", "powers of 1024"},
      {"FCCL_WORKSPACE_BYTES", "1KB", "powers of 1024"},
      {"FCCL_WORKSPACE_BYTES", "9999999999G", "powers of 1024"},
      {"FCCL_DEBUG", "LOUD", "VERSION, WARN, INFO, TRACE"},
      {"FCCL_DEBUG_SUBSYS", "init,nothing", "bootstrap"},
      {"FCCL_DEBUG_SUBSYS", "^", "^ excludes"},
      {"FCCL_BACKEND", "tpu", "cpu, cuda, hip"},
      {"FCCL_CPU_LEVEL", "v5", "v2, v3, v4, neon, scalar"},
      {"FCCL_SOCKET_FAMILY", "4", "AF_INET, AF_INET6"},
      {"FCCL_HOSTID", "a\nb", "control characters"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name, row.value);
    Result<Config> config = parse({{row.name, row.value}});
    REQUIRE_FALSE(config.ok());
    CHECK(config.status().code() == Code::InvalidArgument);
    const std::string& text = config.status().text();
    INFO(text);
    CHECK(text.find(row.name) == 0);
    CHECK(text.find(row.allowed) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
    if (std::string(row.value).find('\n') == std::string::npos) {
      CHECK(text.find(row.value) != std::string::npos);
    }
  }
}

TEST_CASE("config_a_long_value_is_refused_with_a_short_text") {
  Result<Config> config = parse({{"FCCL_HOSTID", std::string(100000, 'x')}});
  REQUIRE_FALSE(config.ok());
  CHECK(config.status().text().size() < 256);
}

TEST_CASE("config_describe_lists_every_variable_once_with_its_source") {
  Result<Config> config = parse({{"FCCL_MAX_BLOCKS", "7"}});
  REQUIRE(config.ok());
  const std::vector<VariableInfo> rows = describe_config(*config);
  REQUIRE(rows.size() == static_cast<size_t>(kVariables));
  std::set<std::string> names;
  int from_environment = 0;
  for (const VariableInfo& row : rows) {
    CAPTURE(row.name);
    names.insert(row.name);
    CHECK(row.name.rfind("FCCL_", 0) == 0);
    CHECK_FALSE(row.doc.empty());
    from_environment += row.from_environment ? 1 : 0;
    if (row.from_environment) {
      CHECK(row.name == "FCCL_MAX_BLOCKS");
      CHECK(row.value == "7");
      CHECK(row.fallback == "0");
      CHECK(row.agree);
    } else {
      CHECK(row.value == row.fallback);
    }
  }
  CHECK(names.size() == rows.size());
  CHECK(from_environment == 1);
}

TEST_CASE("config_every_default_is_itself_legal") {
  const std::vector<VariableInfo> rows = describe_config(*parse({}));
  for (const VariableInfo& row : rows) {
    CAPTURE(row.name, row.fallback);
    CHECK(parse({{row.name, row.fallback}}).ok());
  }
}

TEST_CASE("config_reads_the_environment_anew_each_time") {
  REQUIRE(::setenv("FCCL_INIT_TIMEOUT_MS", "1234", 1) == 0);
  CHECK(read_config()->init_timeout_ms == 1234);
  REQUIRE(::setenv("FCCL_INIT_TIMEOUT_MS", "never", 1) == 0);
  CHECK_FALSE(read_config().ok());
  CHECK(read_config_leniently().init_timeout_ms == 120000);
  REQUIRE(::unsetenv("FCCL_INIT_TIMEOUT_MS") == 0);
  CHECK(read_config()->init_timeout_ms == 120000);
}

TEST_CASE("config_sizes") {
  struct Row {
    const char* text;
    int64_t bytes;  // -1: refused
  };
  const Row rows[] = {{"0", 0},
                      {"1", 1},
                      {"64K", 65536},
                      {"64k", 65536},
                      {"3M", 3 << 20},
                      {"8G", int64_t{8} << 30},
                      {"8589934591G", int64_t{8589934591} << 30},
                      {"8589934592G", -1},
                      {"9223372036854775807", INT64_MAX},
                      {"9223372036854775808", -1},
                      {"", -1},
                      {"K", -1},
                      {"-1", -1},
                      {"-1K", -1},
                      {"+1", -1},
                      {" 1", -1},
                      {"1 K", -1},
                      {"1KK", -1},
                      {"0x10", -1}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    Result<int64_t> bytes = parse_size(row.text);
    CHECK(bytes.ok() == (row.bytes >= 0));
    if (bytes.ok()) CHECK(*bytes == row.bytes);
  }
}
