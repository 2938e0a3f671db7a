#include "base/status.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace fccl {

const char* code_name(Code code) {
  switch (code) {
#define FCCL_RESULT(number, name, text) \
  case Code::name:                      \
    return "fccl" #name;
#include "base/result.def"
#undef FCCL_RESULT
  }
  return "unknown";
}

const char* code_text(Code code) {
  switch (code) {
#define FCCL_RESULT(number, name, text) \
  case Code::name:                      \
    return text;
#include "base/result.def"
#undef FCCL_RESULT
  }
  return "unknown result code";
}

static std::string format_text(const char* format, va_list args) {
  char text[768];
  std::vsnprintf(text, sizeof text, format, args);
  return text;
}

Status error(Code code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  return Status(code, std::move(text));
}

Status error_of_rank(int rank, Code code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  return Status(code, rank, std::move(text));
}

Status errno_error(const char* format, ...) {
  const int saved = errno;
  va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  char buffer[128];
  text += ": ";
  text += strerror_r(saved, buffer, sizeof buffer);
  return Status(Code::SystemError, std::move(text));
}

}  // namespace fccl
