// Deadline and Limit: the two things every wait on the host takes. One clock for all of them.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace fccl {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static Deadline after_ms(int64_t ms) {
    Deadline d;
    d.start_ = Clock::now();
    d.ms_ = ms;
    return d;
  }
  bool expired() const { return remaining_ms() <= 0; }
  int64_t limit_ms() const { return ms_; }
  int64_t elapsed_ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
  }
  int64_t remaining_ms() const { return ms_ - elapsed_ms(); }
  // The timeout of one poll() or futex slice: never longer than `slice_ms`, so that an abort is
  // seen.
  int slice_ms(int slice_ms = 50) const {
    const int64_t left = remaining_ms();
    return static_cast<int>(left < 0 ? 0 : left < slice_ms ? left : slice_ms);
  }

 private:
  Clock::time_point start_{};
  int64_t ms_ = 0;
};

// A deadline and the word that ends the wait early. `abort` may be null.
struct Limit {
  Deadline deadline;
  const std::atomic<uint32_t>* abort = nullptr;
  bool aborted() const { return abort != nullptr && abort->load(std::memory_order_acquire) != 0; }
};

}  // namespace fccl
