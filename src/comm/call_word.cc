#include "comm/call_word.h"

#include "select/algorithms.h"

namespace fccl {

CallWord call_word(const KernelId& id, int64_t hidden, uint32_t options) {
  const uint32_t mixed = options * 2654435761u;
  return {static_cast<uint32_t>(id.op) | static_cast<uint32_t>(id.type) << 3 |
              static_cast<uint32_t>(id.algo) << 5 | static_cast<uint32_t>(id.protocol) << 7 |
              static_cast<uint32_t>(hidden) << 9,
          mixed >> 16};
}

std::string describe_call(const CallWord& call) {
  static const char* const kOps[] = {
      "fused", "all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  static const char* const kTypes[] = {"float32", "float16", "bfloat16"};
  const uint32_t word = call.shape;
  const uint32_t op = word & 7u;
  const uint32_t type = (word >> 3) & 3u;
  if (op > 4 || type > 2) return "an unknown operation";
  const auto algo = static_cast<AlgoKind>((word >> 5) & 3u);
  const auto protocol = static_cast<ProtocolKind>((word >> 7) & 3u);
  return std::string(kOps[op]) + " " + kTypes[type] + " hidden " + std::to_string(word >> 9) +
         " options " + std::to_string(call.options) + " by " + algorithm_name(algo, protocol);
}

Status with_code_in_text(const Status& status) {
  return Status(
      status.code(), status.rank(), std::string(code_name(status.code())) + ": " + status.text());
}

Code code_in_text(const std::string& text) {
  if (text.find(code_name(Code::Mismatch)) != std::string::npos) return Code::Mismatch;
  if (text.find(code_name(Code::Timeout)) != std::string::npos) return Code::Timeout;
  return Code::RemoteError;
}

}  // namespace fccl
