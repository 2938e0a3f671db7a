// The result of a step of fccl_perf: fine, or one line of text that says what was wrong. The tool
// is its own program, so it has its own small type instead of the library's Status.
#pragma once

#include <string>
#include <utility>

namespace perf {

class [[nodiscard]] Outcome {
 public:
  Outcome() = default;
  static Outcome failure(std::string text) {
    Outcome outcome;
    outcome.text_ = std::move(text);
    if (outcome.text_.empty()) outcome.text_ = "unknown failure";
    return outcome;
  }
  bool ok() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace perf

// Leaves the function with the failure of `expression`, if it failed.
#define PERF_TRY(expression)                     \
  do {                                           \
    ::perf::Outcome perf_outcome = (expression); \
    if (!perf_outcome.ok()) return perf_outcome; \
  } while (false)
