// The order of one communicator's launches over streams and captures (PROTOCOL section 4).
//
// Same stream: nothing. Eager change of stream: the new stream waits until the eager launches so
// far have ended, by the count in the control line; the former stream's handle is not touched, it
// may be gone. (Captured launches do not count: replays cannot be counted here.) Inside one
// capture: the former node becomes a dependency. FCCL_GRAPH_MIXING=1: an event between all
// launches, external inside captures.
#pragma once
#include "backend/cuda/device.h"
#include "backend/cuda/retired.h"

namespace fccl {

class StreamOrder {
 public:
  StreamOrder(const CudaDevice& device, bool mixing)
      : device_(device), mixing_(mixing), hold_(std::make_shared<GraphHold>()) {}
  ~StreamOrder();

  struct Before {
    bool captured = false;
    bool dependent = true;  // programmatic dependent launch is possible
  };
  // What must stand in front of a launch on `stream`.
  Result<Before> before(cudaStream_t stream, const KernelArgs& args);
  // After a launch that succeeded.
  Status after(cudaStream_t stream);

  // Eager launches so far, as control.seq counts them.
  uint32_t issued() const { return issued_; }
  bool captured_any() const { return captured_any_; }
  // Nothing is launched any more: `kept` lives until no graph needs it.
  void end(KeptMemory kept) {
    hold_->kept = std::move(kept);
    hold_.reset();
  }

 private:
  Status join_capture(cudaStream_t stream, cudaGraph_t graph, unsigned long long capture,
                      size_t dependencies, Before* answer);
  Status wait_on(cudaStream_t stream, const KernelArgs& args) const;
  Status mix_in(cudaStream_t stream, bool captured);

  const CudaDevice& device_;
  const bool mixing_;
  std::shared_ptr<GraphHold> hold_;

  uint32_t issued_ = 0;
  unsigned long long eager_stream_ = 0;  // id of the last eager launch's stream
  unsigned long long stream_ = 0;  // id of this launch's
  bool capturing_ = false;  // this launch
  bool captured_any_ = false;
  unsigned long long capture_ = 0;  // of the last captured launch
  unsigned long long capture_stream_ = 0;
  cudaGraphNode_t node_ = nullptr;
  cudaEvent_t event_ = nullptr;  // mixing only
  bool recorded_ = false;
};

// NULL and the handle for it.
inline bool is_legacy_stream(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy;
}

}  // namespace fccl
