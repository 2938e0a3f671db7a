// A kernel of one thread that ends when the launches of a communicator up to `number` have ended:
// what orders a launch after those on another stream, whose handle may be gone. A wait of the
// stream itself (cuStreamWaitValue32) could not end when those launches fail; this one does. It
// needs no deadline of its own: it waits for launches of the own device, which have theirs, never
// for a peer.
#include "backend/cuda/kernels.h"
#include "device/layout/control.h"

namespace fccl {
namespace {

__device__ uint32_t load_word(const uint32_t* word) {
  return *static_cast<const volatile uint32_t*>(word);
}

__global__ void wait_for_call(const ControlLine* line, const uint32_t* status,
                              const uint32_t* host_abort, uint32_t number) {
  constexpr uint32_t kRounds = 256;
  for (uint32_t round = 1;; ++round) {
    if (static_cast<int32_t>(load_word(&line->seq) - number) >= 0) return;
    if (load_word(&line->gen) >= kGenerations) return;  // closed by a failure
    if (round % kRounds != 0) continue;
    const uint32_t told = load_word(host_abort);
    if (load_word(status) != 0 || (told != 0 && failure_of(told) != Failure::Left)) return;
    __nanosleep(200);
  }
}

}  // namespace

const void* wait_for_call_entry() {
  return reinterpret_cast<const void*>(&wait_for_call);
}

}  // namespace fccl
