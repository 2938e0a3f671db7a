#include "api/guard.h"

namespace fccl {
namespace {
thread_local std::string last_text;  // of this thread's last failure
thread_local std::string kept_text;  // what fcclGetLastError handed out
}  // namespace

fcclResult_t answer(const Status& status) {
  if (!status.ok()) last_text = status.text();
  return static_cast<fcclResult_t>(status.code());
}
const char* last_text_of_thread() {
  return last_text.c_str();
}
const char* keep_text_of_thread(std::string text) {
  kept_text = std::move(text);
  return kept_text.c_str();
}

}  // namespace fccl
