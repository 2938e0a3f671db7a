// Status: how every fallible function inside the library answers. The place that decides an error
// writes its text once; callers only propagate with FCCL_TRY. Nothing here throws; std::bad_alloc
// of the standard library is turned into a code at the border (src/api/guard.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace fccl {

enum class Code : int32_t {
#define FCCL_RESULT(number, name, text) name = number,
#include "base/result.def"
#undef FCCL_RESULT
};

const char* code_name(Code code);
const char* code_text(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : code_(code), text_(std::move(text)) {}
  // An error that another rank caused: `rank` is the one to name.
  Status(Code code, int rank, std::string text)
      : code_(code), rank_(rank), text_(std::move(text)) {}

  bool ok() const { return code_ == Code::Success; }
  Code code() const { return code_; }
  int rank() const { return rank_; }  // the rank that is to blame, -1 if none is known
  const std::string& text() const { return text_; }

 private:
  Code code_ = Code::Success;
  int rank_ = -1;
  std::string text_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

// printf-style error: error(Code::SystemError, "bind %s: %s", address, strerror(errno)).
[[gnu::format(printf, 2, 3)]] Status error(Code code, const char* format, ...);
[[gnu::format(printf, 3, 4)]] Status error_of_rank(int rank, Code code, const char* format, ...);
// SystemError with errno's text appended.
[[gnu::format(printf, 1, 2)]] Status errno_error(const char* format, ...);

}  // namespace fccl

#define FCCL_TRY(expr)                           \
  do {                                           \
    ::fccl::Status fccl_status_ = (expr);        \
    if (!fccl_status_.ok()) return fccl_status_; \
  } while (0)
// Declares `name` from a Result, or returns its Status.
#define FCCL_TRY_ASSIGN(name, expr)                         \
  auto name##_result_ = (expr);                             \
  if (!name##_result_.ok()) return name##_result_.status(); \
  auto& name = *name##_result_
