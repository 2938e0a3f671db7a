// Understanding the value of one option: each function fills its field or says what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fccl_perf/numbers_list.h"
#include "fccl_perf/options.h"

namespace perf {

// "allowed is <what>".
Outcome allowed(const std::string& what);

template <typename T>
Outcome set_integer(const std::string& value, int64_t low, int64_t high, T& field,
                    const char* what) {
  const auto number = parse_integer(value);
  if (!number || *number < low || *number > high) return allowed(what);
  field = static_cast<T>(*number);
  return {};
}

Outcome set_bool(const std::string& value, bool& field);
Outcome set_size(const std::string& value, std::size_t low, std::size_t& field);
Outcome set_real(const std::string& value, double low, double& field, const char* what);
Outcome set_numbers(const std::string& value, std::vector<int64_t>& field, int64_t low);
Outcome set_choice(const std::string& value, const char* zero, const char* one, int& field);

Outcome set_types(Options& options, const std::string& value);
Outcome set_op(Options& options, const std::string& value);
Outcome set_redop(Options& options, const std::string& value);
Outcome set_root(Options& options, const std::string& value);
Outcome set_backend(Options& options, const std::string& value);
Outcome set_models(Options& options, const std::string& value);
Outcome set_peers(Options& options, const std::string& value);
Outcome set_skew(Options& options, const std::string& value);
Outcome set_plots(Options& options, const std::string& value);
Outcome set_json(Options& options, const std::string& value);
Outcome set_eps(Options& options, const std::string& value);
Outcome set_in_place(Options& options, const std::string& value);
Outcome set_inject(Options& options, const std::string& value);
Outcome set_print(Options& options, const std::string& value);

}  // namespace perf
