// Settings: environment, then config, then default, read once per init. `agreed` lists what must be
// equal on all ranks, by the name a user knows it by, so that a difference is named with both
// values.
#pragma once
#include <fccl/fccl.h>

#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "device/layout/args.h"

namespace fccl {

struct Settings {
  Config env;
  int32_t backend = 0;  // fcclBackend_t
  int32_t device = -1;  // ordinal, -1: current
  bool blocking = true;
  bool shared_device = false;
  bool check = false;
  bool deterministic = true;
  int32_t max_blocks = 0;
  TypeKind type = TypeKind::BF16;
  int64_t max_tokens = 0;
  int64_t hidden = 0;
  uint64_t capacity_bytes = 0;  // asked for; 0: the backend's default
  int64_t init_timeout_ms = 0;
  int64_t call_timeout_ms = 0;
  int64_t destroy_timeout_ms = 0;
  uint64_t first_epoch = 1;
  std::string name;

  std::vector<std::pair<std::string, std::string>> agreed() const;
};

// `config` is a whole, checked struct of this version.
Result<Settings> make_settings(const fcclConfig& config);

// As bytes for the exchange, and compared: Mismatch names the first difference to rank 0.
std::string settings_text(const Settings& settings);
Status compare_settings(const std::vector<std::string>& texts);

Result<TypeKind> type_kind(int32_t datatype);  // Unsupported for known types without kernels

}  // namespace fccl
