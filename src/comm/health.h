// Health: the sticky failure of a communicator. Set once, by whoever sees it first: a call, the
// reader thread of the group (a peer died, failed or was aborted) or fcclCommAbort. Takes no lock
// of the communicator, so it can be asked and set from any thread while a call blocks.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "base/status.h"

namespace fccl {

class Health {
 public:
  // True if this call was the first; later failures change nothing.
  bool fail(const Status& status);
  bool failed() const { return word_.load(std::memory_order_acquire) != 0; }
  // Success, or the failure with its text.
  Status status() const;
  // Waits until a failure is there, at most `ms`: the text of the cause may come a moment after its
  // effect.
  void wait_for_failure(int64_t ms) const;

  // A text for fcclGetLastError that does not end the communicator (a refused argument).
  void note(const Status& status);
  std::string last_text() const;

  // The word that users may poll: 0 or a result code.
  const volatile uint32_t* word() const {
    return reinterpret_cast<const volatile uint32_t*>(&word_);
  }
  // Ends waits of the host that take a Limit.
  const std::atomic<uint32_t>* abort_word() const { return &abort_; }

 private:
  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> abort_{0};
  mutable std::mutex mutex_;  // of the texts
  mutable std::condition_variable changed_;
  Status status_;
  std::string last_text_;
};
static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace fccl
