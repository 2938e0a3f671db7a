#include "comm/health.h"

#include <chrono>

#include "base/log.h"

namespace fccl {

bool Health::fail(const Status& status) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (word_.load(std::memory_order_relaxed) != 0) return false;
    status_ = status;
    last_text_ = status.text();
    word_.store(static_cast<uint32_t>(status.code()), std::memory_order_release);
    abort_.store(1, std::memory_order_release);
  }
  changed_.notify_all();
  FCCL_LOG(Warn, kLogHealth, "%s: %s", code_name(status.code()), status.text().c_str());
  return true;
}

Status Health::status() const {
  if (!failed()) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

void Health::wait_for_failure(int64_t ms) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(ms), [&] {
    return word_.load(std::memory_order_relaxed) != 0;
  });
}

void Health::note(const Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_text_ = status.text();
}

std::string Health::last_text() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_text_;
}

}  // namespace fccl
