// Fork guard: a forked child must not hold our sockets, or the parent's death would not be seen as
// a hang-up and a port would stay taken. Every socket of the bootstrap is in a table; a handler in
// the child (pthread_atfork) closes its copies. close() is all it does, so it is safe after a fork
// of a process with threads. The child's objects are dead from then on: they are leaked, never
// destroyed.
#pragma once
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace fccl {

// Owns a socket and its row of the table.
class GuardedFd {
 public:
  GuardedFd() = default;
  explicit GuardedFd(int fd);
  GuardedFd(GuardedFd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), row_(std::exchange(other.row_, -1)) {}
  GuardedFd& operator=(GuardedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      row_ = std::exchange(other.row_, -1);
    }
    return *this;
  }
  ~GuardedFd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
  int row_ = -1;
};

// The process in which this was made is still the caller's. Asked by every call: no system call
// where the kernel can wipe a page on fork.
class ProcessMark {
 public:
  ProcessMark();
  bool is_here() const {
    return word_ != nullptr ? word_->load(std::memory_order_relaxed) == value_
                            : static_cast<uint64_t>(getpid()) == value_;
  }

 private:
  const std::atomic<uint64_t>* const word_;
  const uint64_t value_;
};

}  // namespace fccl
