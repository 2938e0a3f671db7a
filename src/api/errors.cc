// Version, texts, log.
#include "api/guard.h"
#include "base/log.h"

using namespace fccl;

extern "C" {

fcclResult_t fcclGetVersion(int* version) {
  return guard([&]() -> Status {
    if (version == nullptr) return null_argument("version");
    *version = FCCL_VERSION_CODE;
    return {};
  });
}

const char* fcclGetErrorString(fcclResult_t result) {
  return code_text(static_cast<Code>(result));
}

const char* fcclGetLastError(fcclComm_t comm) {
  try {
    if (comm == nullptr) return last_text_of_thread();
    const Pinned pinned(comm);
    return keep_text_of_thread(pinned ? pinned->health().last_text()
                                      : "comm is not a communicator");
  } catch (...) {
    return "out of memory";
  }
}

fcclResult_t fcclSetLogCallback(fcclLogCallback_t callback, void* context) {
  return guard([&]() -> Status {
    set_log_callback(callback, context);
    return {};
  });
}

}  // extern "C"

FCCL_ALIAS(fcclResult_t, fcclGetVersion, (int*));
FCCL_ALIAS(const char*, fcclGetErrorString, (fcclResult_t));
FCCL_ALIAS(const char*, fcclGetLastError, (fcclComm_t));
FCCL_ALIAS(fcclResult_t, fcclSetLogCallback, (fcclLogCallback_t, void*));
