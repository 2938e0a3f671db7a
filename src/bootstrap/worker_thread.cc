#include "bootstrap/worker_thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

namespace fccl {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // The new thread inherits the mask.
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
    return error(Code::SystemError, "cannot block signals for thread %s", name);
  std::thread thread;
  Status status;
  try {
    thread = std::thread(std::move(body));
    (void)pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error& failure) {
    status = error(Code::OutOfResources, "cannot start thread %s: %s", name, failure.what());
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return thread;
}

}  // namespace fccl
