// Memory that peers can map.
#include "api/guard.h"

using namespace fccl;

static Limit call_limit(Communicator& c) {
  return {Deadline::after_ms(c.settings().init_timeout_ms), c.health().abort_word()};
}

extern "C" {

fcclResult_t fcclMemAlloc(fcclComm_t comm, void** ptr, size_t bytes) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    if (ptr == nullptr) return null_argument("ptr");
    *ptr = nullptr;
    const auto lock = c.lock();
    FCCL_TRY_ASSIGN(memory, c.user_memory().allocate(c.context(), bytes, c.memory_kind()));
    *ptr = memory;
    return {};
  });
}

fcclResult_t fcclMemFree(fcclComm_t comm, void* ptr) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    const auto lock = c.lock();
    return c.user_memory().free(ptr);
  });
}

fcclResult_t fcclCommWindowRegister(fcclComm_t comm, void* ptr, size_t bytes,
                                    fcclWindow_t* window) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    if (window == nullptr) return null_argument("window");
    *window = nullptr;
    const auto lock = c.lock();
    FCCL_TRY(c.usable());
    WindowArgs args;
    args.group = &c.group();
    args.facts = &c.situation().facts;
    args.context = &c.context();
    args.memory_kind = c.memory_kind();
    args.phase = "user window";
    FCCL_TRY_ASSIGN(made, c.user_memory().register_window(args, ptr, bytes, call_limit(c)));
    *window = made;
    return {};
  });
}

fcclResult_t fcclCommWindowPeer(fcclComm_t comm, fcclWindow_t window, int peer, void** ptr) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    if (ptr == nullptr) return null_argument("ptr");
    const auto lock = c.lock();
    FCCL_TRY_ASSIGN(at, c.user_memory().peer(window, peer, c.ranks()));
    *ptr = at;
    return {};
  });
}

fcclResult_t fcclCommWindowDeregister(fcclComm_t comm, fcclWindow_t window) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    const auto lock = c.lock();
    return c.user_memory().deregister(window);
  });
}

}  // extern "C"

FCCL_ALIAS(fcclResult_t, fcclMemAlloc, (fcclComm_t, void**, size_t));
FCCL_ALIAS(fcclResult_t, fcclMemFree, (fcclComm_t, void*));
FCCL_ALIAS(fcclResult_t, fcclCommWindowRegister, (fcclComm_t, void*, size_t, fcclWindow_t*));
FCCL_ALIAS(fcclResult_t, fcclCommWindowPeer, (fcclComm_t, fcclWindow_t, int, void**));
FCCL_ALIAS(fcclResult_t, fcclCommWindowDeregister, (fcclComm_t, fcclWindow_t));
