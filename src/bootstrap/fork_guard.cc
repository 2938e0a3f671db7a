#include "bootstrap/fork_guard.h"

#include <pthread.h>

#include <chrono>

#include "base/wiped_word.h"

namespace fccl {
namespace {

// Rows hold fd + 1; 0 is free. A full table costs only the closing in children.
constexpr int kRows = 8192;
std::atomic<int> rows[kRows];
std::atomic<int> rows_in_use_up_to{0};

void close_in_child() {
  const int limit = rows_in_use_up_to.load(std::memory_order_relaxed);
  for (int row = 0; row < limit; row++) {
    const int value = rows[row].exchange(0, std::memory_order_relaxed);
    if (value != 0) ::close(value - 1);
  }
}

int take_row(int fd) {
  static const int registered = pthread_atfork(nullptr, nullptr, close_in_child);
  if (registered != 0) return -1;
  for (int row = 0; row < kRows; row++) {
    int free = 0;
    if (rows[row].load(std::memory_order_relaxed) != 0) continue;
    if (!rows[row].compare_exchange_strong(free, fd + 1, std::memory_order_relaxed)) continue;
    int limit = rows_in_use_up_to.load(std::memory_order_relaxed);
    while (limit <= row && !rows_in_use_up_to.compare_exchange_weak(limit, row + 1)) {
    }
    return row;
  }
  return -1;
}

std::atomic<uint64_t>* wiped_word() {
  static std::atomic<uint64_t>* const word = make_wiped_word();
  return word;
}

// What this process writes there.
uint64_t value_of_this_process(std::atomic<uint64_t>* word) {
  if (word == nullptr) return static_cast<uint64_t>(getpid());
  uint64_t value = word->load();
  if (value != 0) return value;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const uint64_t own =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) | 1;
  return word->compare_exchange_strong(value, own) ? own : value;
}

}  // namespace

ProcessMark::ProcessMark() : word_(wiped_word()), value_(value_of_this_process(wiped_word())) {}

GuardedFd::GuardedFd(int fd) : fd_(fd), row_(fd >= 0 ? take_row(fd) : -1) {}

void GuardedFd::reset() {
  if (row_ >= 0) rows[row_].store(0, std::memory_order_relaxed);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  row_ = -1;
}

}  // namespace fccl
