#include "backend/cuda/stream_order.h"

#include <algorithm>

namespace fccl {
namespace {

constexpr unsigned long long kLegacyId = 1;  // as cudaStreamGetId tells it

}  // namespace

StreamOrder::~StreamOrder() {
  // Nodes of graphs that may be replayed later name it.
  if (event_ == nullptr || (mixing_ && captured_any_)) return;
  const DeviceScope scope(device_);
  static_cast<void>(cudaEventDestroy(event_));
}

Result<StreamOrder::Capture> StreamOrder::capture_of(cudaStream_t stream) {
  Capture c;
  // The legacy stream is never captured, and asking it would end the captures of others.
  if (is_legacy_stream(stream)) return c;
  const cudaGraphEdgeData* edges = nullptr;  // asked for, since nodes alone may be refused
  FCCL_CUDA_TRY(
      cudaStreamGetCaptureInfo(stream, &c.state, &c.id, &c.graph, &c.last, &edges, &c.count),
      "cudaStreamGetCaptureInfo");
  if (c.state == cudaStreamCaptureStatusInvalidated)
    return error(Code::InvalidUsage,
                 "the capture of this stream was invalidated by an earlier error");
  return c;
}

Result<StreamOrder::Before> StreamOrder::before(cudaStream_t stream) {
  Before answer;
  FCCL_TRY_ASSIGN(capture, capture_of(stream));
  capturing_ = capture.state == cudaStreamCaptureStatusActive;
  if (!capturing_) {
    FCCL_TRY(join_eager(stream, &answer));
    return answer;
  }
  if (mixing_) {
    FCCL_TRY(make_event());
    // Also before the first launch: replays come after launches that are not known yet.
    FCCL_CUDA_TRY(cudaStreamWaitEvent(stream, event_, cudaEventWaitExternal),
                  "cudaStreamWaitEvent");
    FCCL_TRY_ASSIGN(again, capture_of(stream));
    capture = again;
  }
  FCCL_TRY(join_capture(stream, capture, &answer));
  return answer;
}

Status StreamOrder::make_event() {
  if (event_ != nullptr) return {};
  return cuda_status(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
}

Status StreamOrder::join_eager(cudaStream_t stream, Before* answer) {
  stream_ = kLegacyId;
  if (!is_legacy_stream(stream))
    FCCL_CUDA_TRY(cudaStreamGetId(stream, &stream_), "cudaStreamGetId");
  FCCL_TRY(make_event());
  if (!recorded_ || (!mixing_ && stream_ == eager_stream_)) return {};
  answer->dependent = false;
  return cuda_status(cudaStreamWaitEvent(stream, event_, cudaEventWaitDefault),
                     "cudaStreamWaitEvent");
}

Status StreamOrder::join_capture(cudaStream_t stream, const Capture& capture, Before* answer) {
  const size_t count = capture.count;
  // One kernel in front can let this one start early; of anything else the end is awaited.
  cudaGraphNodeType type = cudaGraphNodeTypeKernel;
  if (count == 1)
    FCCL_CUDA_TRY(cudaGraphNodeGetType(capture.last[0], &type), "cudaGraphNodeGetType");
  if (!captured_any_ || capture.id != capture_) {
    FCCL_TRY(retain(capture.graph, hold_));
    captured_any_ = true;
    capture_ = capture.id;
    node_ = nullptr;
  }
  // The handle of the stream per thread means another stream on another thread.
  const bool same_stream = stream == capture_stream_ && stream != cudaStreamPerThread;
  const bool follows = std::find(capture.last, capture.last + count, node_) != capture.last + count;
  if (node_ != nullptr && !same_stream && !follows) {
    FCCL_CUDA_TRY(cudaStreamUpdateCaptureDependencies(
                      stream, &node_, nullptr, 1, cudaStreamAddCaptureDependencies),
                  "cudaStreamUpdateCaptureDependencies");
    answer->dependent = false;
  }
  if (count > 1 || type != cudaGraphNodeTypeKernel) answer->dependent = false;
  return {};
}

Status StreamOrder::after(cudaStream_t stream) {
  if (!capturing_) {
    FCCL_CUDA_TRY(cudaEventRecord(event_, stream), "cudaEventRecord");
    recorded_ = true;
    eager_stream_ = stream_;
    return {};
  }
  if (mixing_) {
    FCCL_CUDA_TRY(cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal),
                  "cudaEventRecord");
    recorded_ = true;
  }
  FCCL_TRY_ASSIGN(capture, capture_of(stream));
  capture_stream_ = stream;
  node_ = capture.count == 1 ? capture.last[0] : nullptr;
  return {};
}

Result<bool> StreamOrder::ended() const {
  if (!recorded_) return true;
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  FCCL_CUDA_TRY(state, "cudaEventQuery");
  return true;
}

}  // namespace fccl
