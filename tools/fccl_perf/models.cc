#include "fccl_perf/models.h"

#include <fmt/format.h>

namespace perf {
namespace {

const std::vector<int64_t> kDecode = {1, 2, 4, 8, 16, 32, 64, 128, 256};
const std::vector<int64_t> kServing = {1, 4, 16, 64, 128, 256, 512, 1024, 2048};

}  // namespace

const std::vector<Model>& models() {
  // Hidden sizes are those of the published configurations (config.json of each model).
  static const std::vector<Model> table = {
      {"llama3-8b", 4096, 2, kDecode, "Llama 3 8B"},
      {"llama3-70b", 8192, 8, kServing, "Llama 3 70B"},
      {"llama3-405b", 16384, 8, kServing, "Llama 3 405B"},
      {"qwen2.5-7b", 3584, 2, kDecode, "Qwen 2.5 7B"},
      {"qwen3-32b", 5120, 4, kServing, "Qwen 3 32B"},
      {"qwen2.5-72b", 8192, 8, kServing, "Qwen 2.5 72B"},
      {"mixtral-8x7b", 4096, 2, kServing, "Mixtral 8x7B"},
      {"mistral-large", 12288, 8, kServing, "Mistral Large 123B"},
      {"deepseek-v3", 7168, 8, kServing, "DeepSeek V3 and R1"},
      {"gpt-oss-20b", 2880, 2, kDecode, "gpt-oss 20B"},
      {"gpt-oss-120b", 2880, 8, kServing, "gpt-oss 120B"},
      {"gemma2-27b", 4608, 4, kServing, "Gemma 2 27B"},
      {"phi3-mini", 3072, 2, kDecode, "Phi 3 mini"},
  };
  return table;
}

const Model* find_model(const std::string& name) {
  for (const Model& model : models()) {
    if (name == model.name) return &model;
  }
  return nullptr;
}

std::string model_list() {
  std::string text = fmt::format("{:<16} {:>7} {:>6}  {}\n", "model", "hidden", "ranks", "tokens");
  for (const Model& model : models()) {
    std::string tokens;
    for (const int64_t count : model.tokens)
      tokens += (tokens.empty() ? "" : ",") + std::to_string(count);
    text += fmt::format("{:<16} {:>7} {:>6}  {}  ({})\n",
                        model.name,
                        model.hidden,
                        model.ranks,
                        tokens,
                        model.what);
  }
  return text;
}

}  // namespace perf
