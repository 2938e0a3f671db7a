// Making and ending communicators.
#include "api/guard.h"
#include "api/structs.h"
#include "comm/make.h"

using namespace fccl;

static Status whole_config(const fcclConfig* given, fcclConfig* config) {
  *config = FCCL_CONFIG_INITIALIZER;
  return read_struct("config", given, FCCL_CONFIG_MAGIC, config);
}

extern "C" {

fcclResult_t fcclGetUniqueId(fcclUniqueId* id) {
  return guard([&]() -> Status {
    if (id == nullptr) return null_argument("id");
    FCCL_TRY_ASSIGN(config, read_config());
    return create_unique_id(config, reinterpret_cast<uint8_t*>(id->internal));
  });
}

fcclResult_t fcclCommInitRankConfig(fcclComm_t* comm, int nranks, const fcclUniqueId* id, int rank,
                                    const fcclConfig* config) {
  return guard([&]() -> Status {
    if (comm == nullptr) return null_argument("comm");
    *comm = nullptr;
    if (id == nullptr) return null_argument("id");
    fcclConfig whole;
    FCCL_TRY(whole_config(config, &whole));
    return make_by_id(whole, nranks, rank, *id, comm);
  });
}

fcclResult_t fcclCommInitRank(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank) {
  return fcclCommInitRankConfig(comm, nranks, &id, rank, nullptr);
}

fcclResult_t fcclCommInitAllConfig(fcclComm_t* comms, int nranks, const int* devices,
                                   const fcclConfig* config) {
  return guard([&]() -> Status {
    if (comms == nullptr) return null_argument("comms");
    for (int r = 0; r < nranks; ++r) comms[r] = nullptr;
    fcclConfig whole;
    FCCL_TRY(whole_config(config, &whole));
    return make_all(whole, nranks, devices, comms);
  });
}

fcclResult_t fcclCommInitAll(fcclComm_t* comms, int nranks, const int* devices) {
  return fcclCommInitAllConfig(comms, nranks, devices, nullptr);
}

fcclResult_t fcclCommInitAllgather(fcclComm_t* comm, int nranks, int rank,
                                   fcclAllgather_t allgather, void* context,
                                   const fcclConfig* config) {
  return guard([&]() -> Status {
    if (comm == nullptr) return null_argument("comm");
    *comm = nullptr;
    if (allgather == nullptr) return null_argument("allgather");
    fcclConfig whole;
    FCCL_TRY(whole_config(config, &whole));
    return make_by_allgather(whole, nranks, rank, allgather, context, comm);
  });
}

fcclResult_t fcclCommSplit(fcclComm_t comm, int color, int key, fcclComm_t* newcomm,
                           const fcclConfig* config) {
  return guard_ready(comm, [&](Communicator& parent) -> Status {
    if (newcomm == nullptr) return null_argument("newcomm");
    *newcomm = nullptr;
    fcclConfig whole;
    FCCL_TRY(whole_config(config, &whole));
    return make_by_split(parent, color, key, config == nullptr ? nullptr : &whole, newcomm);
  });
}

fcclResult_t fcclCommFinalize(fcclComm_t comm) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    const auto lock = c.lock();
    return c.finalize();
  });
}

fcclResult_t fcclCommDestroy(fcclComm_t comm) {
  return guard([&]() -> Status {
    if (comm == nullptr) return {};
    int64_t patience = 0;
    {
      const Pinned pinned(comm);
      if (!pinned)
        return error(Code::InvalidArgument,
                     "comm is not a communicator (destroyed already, or no handle of fccl)");
      if (!pinned->in_this_process())
        return error(
            Code::InvalidUsage,
            "the communicator belongs to the parent process; the child must leave it alone");
      patience = pinned->settings().destroy_timeout_ms;
    }
    if (take_handle(comm, patience) == nullptr)
      return error(Code::InvalidArgument, "comm is being destroyed by another thread");
    return {};
  });
}

fcclResult_t fcclCommAbort(fcclComm_t comm) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    if (!c.in_this_process())
      return error(Code::InvalidUsage,
                   "the communicator belongs to the parent process; the child must leave it alone");
    c.abort();
    return {};
  });
}

fcclResult_t fcclCommGetAsyncError(fcclComm_t comm, fcclResult_t* result) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    if (result == nullptr) return null_argument("result");
    c.poll_failure();
    if (c.health().failed()) {
      *result = static_cast<fcclResult_t>(*c.health().word());
    } else {
      *result = c.initialized() ? fcclSuccess : fcclInProgress;
    }
    return {};
  });
}

fcclResult_t fcclCommErrorWord(fcclComm_t comm, const volatile uint32_t** word) {
  return guard_comm(comm, [&](Communicator& c) -> Status {
    if (word == nullptr) return null_argument("word");
    *word = c.health().word();
    return {};
  });
}

fcclResult_t fcclCommSetTimeout(fcclComm_t comm, int64_t ms) {
  return guard_ready(comm, [&](Communicator& c) -> Status {
    constexpr int64_t kDayMs = 86400000;
    if (ms < 1 || ms > kDayMs)
      return error(Code::InvalidArgument,
                   "timeout is %lld ms; allowed: 1 to %lld",
                   static_cast<long long>(ms),
                   static_cast<long long>(kDayMs));
    const auto lock = c.lock();
    return c.set_timeout(ms);
  });
}

}  // extern "C"

FCCL_ALIAS(fcclResult_t, fcclGetUniqueId, (fcclUniqueId*));
FCCL_ALIAS(fcclResult_t, fcclCommInitRank, (fcclComm_t*, int, fcclUniqueId, int));
FCCL_ALIAS(fcclResult_t, fcclCommInitRankConfig,
           (fcclComm_t*, int, const fcclUniqueId*, int, const fcclConfig*));
FCCL_ALIAS(fcclResult_t, fcclCommInitAll, (fcclComm_t*, int, const int*));
FCCL_ALIAS(fcclResult_t, fcclCommInitAllConfig, (fcclComm_t*, int, const int*, const fcclConfig*));
FCCL_ALIAS(fcclResult_t, fcclCommInitAllgather,
           (fcclComm_t*, int, int, fcclAllgather_t, void*, const fcclConfig*));
FCCL_ALIAS(fcclResult_t, fcclCommSplit, (fcclComm_t, int, int, fcclComm_t*, const fcclConfig*));
FCCL_ALIAS(fcclResult_t, fcclCommFinalize, (fcclComm_t));
FCCL_ALIAS(fcclResult_t, fcclCommDestroy, (fcclComm_t));
FCCL_ALIAS(fcclResult_t, fcclCommAbort, (fcclComm_t));
FCCL_ALIAS(fcclResult_t, fcclCommGetAsyncError, (fcclComm_t, fcclResult_t*));
FCCL_ALIAS(fcclResult_t, fcclCommErrorWord, (fcclComm_t, const volatile uint32_t**));
FCCL_ALIAS(fcclResult_t, fcclCommSetTimeout, (fcclComm_t, int64_t));
