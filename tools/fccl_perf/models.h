// Presets: the shapes that well-known models give the fused call. --model picks them by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perf {

struct Model {
  const char* name;
  int64_t hidden;
  int ranks;  // usual tensor parallelism
  std::vector<int64_t> tokens;  // decode batches, then prefill chunks
  const char* what;
};

const std::vector<Model>& models();
const Model* find_model(const std::string& name);
std::string model_list();

}  // namespace perf
