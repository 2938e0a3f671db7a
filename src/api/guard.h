// The border: what every public function does around its body. Nothing is thrown across it, the
// last error of the thread and of the communicator is kept, and each function has a second name,
// pfccl..., for interposers.
#pragma once
#include <fccl/fccl.h>

#include <exception>
#include <new>

#include "base/status.h"
#include "comm/handles.h"

namespace fccl {

// Keeps the text for fcclGetLastError(NULL) and answers the code.
fcclResult_t answer(const Status& status);
const char* last_text_of_thread();
const char* keep_text_of_thread(std::string text);

// Runs `body` (-> Status) and turns what the standard library may throw into a code.
template <class Body>
fcclResult_t guard(Body&& body) noexcept {
  try {
    return answer(body());
  } catch (const std::bad_alloc&) {
    return fcclOutOfResources;
  } catch (...) {
    return fcclInternalError;
  }
}

// The same for functions of a communicator: `body(Communicator&)`.
template <class Body>
fcclResult_t guard_comm(fcclComm_t handle, Body&& body) noexcept {
  return guard([&]() -> Status {
    const Pinned comm(handle);
    if (!comm)
      return error(Code::InvalidArgument,
                   "comm is not a communicator (NULL, destroyed, or no handle of fccl)");
    const Status status = body(*comm);
    if (!status.ok()) comm->health().note(status);
    return status;
  });
}

// For what only a communicator whose init is done can answer.
template <class Body>
fcclResult_t guard_ready(fcclComm_t handle, Body&& body) noexcept {
  return guard_comm(handle, [&](Communicator& comm) -> Status {
    if (!comm.in_this_process())
      return error(Code::InvalidUsage,
                   "the communicator belongs to the parent process; after fork make a new one");
    if (!comm.initialized())
      return comm.health().failed()
                 ? comm.health().status()
                 : error(Code::InvalidUsage,
                         "init is still in progress; poll fcclCommGetAsyncError first");
    const Status status = body(comm);
    // A wait that ended because the communicator failed meanwhile tells why it failed.
    const bool stopped = status.code() == Code::Aborted && comm.health().failed();
    return stopped ? comm.health().status() : status;
  });
}

inline Status null_argument(const char* name) {
  return error(Code::InvalidArgument, "%s is NULL", name);
}

}  // namespace fccl

// Defines the second name of a public function.
#define FCCL_ALIAS(type, name, parameters) \
  extern "C" FCCL_API type p##name parameters __attribute__((alias(#name)))
