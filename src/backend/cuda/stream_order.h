// The order of one communicator's launches over streams and captures (PROTOCOL section 4).
//
// Eager: an event behind each launch, for which a launch on another stream waits. It is recorded at
// once and not when the stream changes, since a stream may be destroyed as soon as it was used and
// a handle that is gone may not be touched; it also tells when the launches have ended. Inside one
// capture: the former node becomes a dependency. FCCL_GRAPH_MIXING=1: the event stands between all
// launches, external inside captures.
//
// What may be asked of a stream that captures is little: cudaStreamGetId ends the capture.
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
    bool dependent = true;  // programmatic dependent launch is possible
  };
  // What must stand in front of a launch on `stream`.
  Result<Before> before(cudaStream_t stream);
  // After a launch that succeeded.
  Status after(cudaStream_t stream);

  // Has what was launched so far ended? Replays of graphs are counted with FCCL_GRAPH_MIXING only.
  Result<bool> ended() const;
  bool captured_any() const { return captured_any_; }
  // Nothing is launched any more: `kept` lives until no graph needs it.
  void end(KeptMemory kept) {
    hold_->kept = std::move(kept);
    hold_.reset();
  }

 private:
  // A stream as a capture sees it.
  struct Capture {
    cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* last = nullptr;  // what the next node depends on
    size_t count = 0;
  };
  static Result<Capture> capture_of(cudaStream_t stream);
  Status make_event();
  Status join_eager(cudaStream_t stream, Before* answer);
  Status join_capture(cudaStream_t stream, const Capture& capture, Before* answer);

  const CudaDevice& device_;
  const bool mixing_;
  std::shared_ptr<GraphHold> hold_;

  unsigned long long eager_stream_ = 0;  // id of the last eager launch's stream
  unsigned long long stream_ = 0;  // id of this launch's, if it is eager
  bool capturing_ = false;  // this launch
  bool captured_any_ = false;
  unsigned long long capture_ = 0;  // of the last captured launch
  cudaStream_t capture_stream_ = nullptr;
  cudaGraphNode_t node_ = nullptr;
  cudaEvent_t event_ = nullptr;
  bool recorded_ = false;
};

// NULL and the handle for it.
inline bool is_legacy_stream(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy;
}

}  // namespace fccl
