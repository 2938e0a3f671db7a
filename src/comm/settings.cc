#include "comm/settings.h"

#include <cstdlib>

#include "device/layout/control.h"
#include "select/algorithms.h"

namespace fccl {
namespace {

Status check_range(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return error(Code::InvalidArgument,
               "config.%s is %lld; allowed: %lld to %lld",
               field,
               static_cast<long long>(value),
               static_cast<long long>(low),
               static_cast<long long>(high));
}

Status check_config(const fcclConfig& c) {
  constexpr int64_t kDayMs = 86400000;
  FCCL_TRY(check_range("backend", c.backend, 0, 3));
  FCCL_TRY(check_range("device", c.device, 0, 1024));
  FCCL_TRY(check_range("blocking", c.blocking, -1, 1));
  FCCL_TRY(check_range("shared_device", c.shared_device, -1, 1));
  FCCL_TRY(check_range("check", c.check, -1, 1));
  FCCL_TRY(check_range("deterministic", c.deterministic, -1, 1));
  FCCL_TRY(check_range("max_blocks", c.max_blocks, 0, 1024));
  FCCL_TRY(check_range("max_tokens", c.max_tokens, 0, int64_t{1} << 40));
  FCCL_TRY(check_range("hidden", c.hidden, 0, int64_t{1} << 30));
  FCCL_TRY(check_range("init_timeout_ms", c.init_timeout_ms, 0, kDayMs));
  FCCL_TRY(check_range("call_timeout_ms", c.call_timeout_ms, 0, kDayMs));
  return check_range("destroy_timeout_ms", c.destroy_timeout_ms, 0, kDayMs);
}

// environment, then config, then default
int64_t choose(const Config& env, Variable variable, int64_t from_env, int64_t from_config) {
  return env.is_set(variable) || from_config == 0 ? from_env : from_config;
}

Result<int32_t> backend_number(const std::string& name) {
  if (name == "cpu") return fcclBackendCpu;
  if (name == "cuda") return fcclBackendCuda;
  if (name == "hip") return fcclBackendHip;
  return error(
      Code::InvalidArgument, "FCCL_BACKEND is \"%s\"; allowed: cpu, cuda, hip", name.c_str());
}

Result<uint64_t> capacity_of(const Settings& s) {
  if (s.env.workspace_bytes != 0) return static_cast<uint64_t>(s.env.workspace_bytes);
  if (s.max_tokens == 0 || s.hidden == 0) return uint64_t{0};
  const int64_t row = (s.hidden * element_bytes(s.type) + 15) / 16 * 16;
  if (s.max_tokens >= (int64_t{1} << 46) / row)
    return error(Code::InvalidArgument,
                 "config.max_tokens x config.hidden is more than 2^46 bytes");
  // One row more: where rows are owned, fewer than ranks or an odd count leave a rank with a row
  // above its even share.
  return static_cast<uint64_t>(row * (s.max_tokens + 1));
}

}  // namespace

Result<TypeKind> type_kind(int32_t datatype) {
  switch (datatype) {
    case fcclFloat32:
      return TypeKind::F32;
    case fcclFloat16:
      return TypeKind::F16;
    case fcclBfloat16:
      return TypeKind::BF16;
    case fcclInt8:
    case fcclUint8:
    case fcclInt32:
    case fcclUint32:
    case fcclInt64:
    case fcclUint64:
    case fcclFloat64:
    case fcclFloat8e4m3:
    case fcclFloat8e5m2:
    case fcclInt8Output:
    case fcclFloat4e2m1:
      return error(Code::Unsupported,
                   "datatype %d has no kernels; supported: float32, float16, bfloat16",
                   datatype);
    default:
      return error(Code::InvalidArgument,
                   "datatype %d is unknown; supported: float32 (7), float16 (6), bfloat16 (9)",
                   datatype);
  }
}

Result<Settings> make_settings(const fcclConfig& c) {
  FCCL_TRY(check_config(c));
  FCCL_TRY_ASSIGN(env, read_config());
  FCCL_TRY(check_algo_setting(env.algo));
  Settings s;
  s.backend = c.backend;
  if (!env.backend.empty()) {
    FCCL_TRY_ASSIGN(number, backend_number(env.backend));
    s.backend = number;
  }
  s.device = c.device - 1;
  s.blocking = c.blocking >= 0;
  s.shared_device = choose(env, Variable::shared_device, env.shared_device, c.shared_device) > 0;
  s.check = choose(env, Variable::check, env.check, c.check) > 0;
  s.deterministic = c.deterministic >= 0;
  s.max_blocks =
      static_cast<int32_t>(choose(env, Variable::max_blocks, env.max_blocks, c.max_blocks));
  if (c.datatype != 0) {
    FCCL_TRY_ASSIGN(type, type_kind(c.datatype));
    s.type = type;
  }
  s.max_tokens = c.max_tokens;
  s.hidden = c.hidden;
  s.init_timeout_ms =
      choose(env, Variable::init_timeout_ms, env.init_timeout_ms, c.init_timeout_ms);
  s.call_timeout_ms =
      choose(env, Variable::call_timeout_ms, env.call_timeout_ms, c.call_timeout_ms);
  s.destroy_timeout_ms =
      choose(env, Variable::destroy_timeout_ms, env.destroy_timeout_ms, c.destroy_timeout_ms);
  if (!env.test_epoch.empty()) s.first_epoch = std::strtoull(env.test_epoch.c_str(), nullptr, 0);
  if (s.first_epoch == 0) s.first_epoch = 1;
  if (epoch_of(line_of(s.first_epoch)) != s.first_epoch)
    return error(Code::InvalidArgument, "FCCL_TEST_EPOCH must be below 2^47");
  if (c.name != nullptr) s.name = std::string(c.name).substr(0, 63);
  s.env = std::move(env);
  FCCL_TRY_ASSIGN(capacity, capacity_of(s));
  s.capacity_bytes = capacity;
  return s;
}

std::vector<std::pair<std::string, std::string>> Settings::agreed() const {
  std::vector<std::pair<std::string, std::string>> list;
  list.emplace_back("config.backend", std::to_string(backend));
  list.emplace_back("config.deterministic", std::to_string(deterministic));
  list.emplace_back("config.shared_device", std::to_string(shared_device));
  list.emplace_back("config.check", std::to_string(check));
  list.emplace_back("config.max_blocks", std::to_string(max_blocks));
  list.emplace_back(
      "capacity (config.max_tokens x config.hidden x config.datatype, FCCL_WORKSPACE_BYTES)",
      std::to_string(capacity_bytes));
  for (const VariableInfo& variable : describe_config(env))
    if (variable.agree) list.emplace_back(variable.name, variable.value);
  return list;
}

std::string settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings.agreed()) text += name + "=" + value + "\n";
  return text;
}

Status compare_settings(const std::vector<std::string>& texts) {
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    size_t at = 0;
    while (at < texts[0].size() && at < texts[rank].size() && texts[0][at] == texts[rank][at]) ++at;
    if (at == texts[0].size() && at == texts[rank].size()) continue;
    auto line = [&](const std::string& text) {
      const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
      const size_t begin = before == std::string::npos ? 0 : before + 1;
      return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin)
          .substr(0, 200);
    };
    return error_of_rank(
        static_cast<int>(rank),
        Code::Mismatch,
        "settings differ: rank 0 has %s, rank %zu has %s; make them equal on all ranks",
        line(texts[0]).c_str(),
        rank,
        line(texts[rank]).c_str());
  }
  return {};
}

}  // namespace fccl
