// Handles of communicators. A handle is a number in the shape of a pointer, never followed: it
// names a row of a table and the row's generation, so that a destroyed or wrong handle is an error
// and not a crash. A call pins its row; Destroy makes the handle invalid at once and frees the
// object after the last pin is gone.
#pragma once
#include <fccl/fccl.h>

#include <memory>

#include "comm/communicator.h"

namespace fccl {

// Keeps a communicator alive for one call. Empty: the handle is not valid.
class Pinned {
 public:
  explicit Pinned(fcclComm_t handle);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  explicit operator bool() const { return comm_ != nullptr; }
  Communicator* operator->() const { return comm_; }
  Communicator& operator*() const { return *comm_; }

 private:
  int row_ = -1;
  Communicator* comm_ = nullptr;
};

Result<fcclComm_t> make_handle(std::unique_ptr<Communicator> comm);
// Takes the handle out of the table; null if it is not valid (any more). Waits for other threads'
// pins after it has aborted what they wait for, if they do not end by themselves within
// `patience_ms`.
std::unique_ptr<Communicator> take_handle(fcclComm_t handle, int64_t patience_ms);

}  // namespace fccl
