#include "backend/cuda/stream_order.h"

#include "backend/cuda/kernels.h"

namespace fccl {

StreamOrder::~StreamOrder() {
  if (event_ == nullptr) return;
  const DeviceScope scope(device_);
  static_cast<void>(cudaEventDestroy(event_));
}

Result<StreamOrder::Before> StreamOrder::before(cudaStream_t stream, const KernelArgs& args) {
  Before answer;
  FCCL_CUDA_TRY(cudaStreamGetId(stream, &stream_), "cudaStreamGetId");
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  unsigned long long capture = 0;
  cudaGraph_t graph = nullptr;
  size_t dependencies = 0;
  // The legacy stream is never captured, and asking it would end the captures of others.
  if (!is_legacy_stream(stream))
    FCCL_CUDA_TRY(
        cudaStreamGetCaptureInfo(stream, &state, &capture, &graph, nullptr, nullptr, &dependencies),
        "cudaStreamGetCaptureInfo");
  if (state == cudaStreamCaptureStatusInvalidated)
    return error(Code::InvalidUsage,
                 "the capture of this stream was invalidated by an earlier error");
  capturing_ = answer.captured = state == cudaStreamCaptureStatusActive;
  if (mixing_) {
    answer.dependent = false;
    FCCL_TRY(mix_in(stream, capturing_));
  }
  if (capturing_) {
    FCCL_TRY(join_capture(stream, graph, capture, dependencies, &answer));
  } else if (!mixing_ && issued_ != 0 && stream_ != eager_stream_) {
    FCCL_TRY(wait_on(stream, args));
  }
  return answer;
}

Status StreamOrder::join_capture(cudaStream_t stream, cudaGraph_t graph, unsigned long long capture,
                                 size_t dependencies, Before* answer) {
  if (!captured_any_ || capture != capture_) {
    FCCL_TRY(retain(graph, hold_));
    captured_any_ = true;
    capture_ = capture;
    node_ = nullptr;
  } else if (node_ != nullptr && stream_ != capture_stream_) {
    FCCL_CUDA_TRY(cudaStreamUpdateCaptureDependencies(
                      stream, &node_, nullptr, 1, cudaStreamAddCaptureDependencies),
                  "cudaStreamUpdateCaptureDependencies");
    ++dependencies;
  }
  // A programmatic edge needs one kernel in front; with several nodes the launch waits for all.
  if (dependencies > 1) answer->dependent = false;
  return {};
}

Status StreamOrder::wait_on(cudaStream_t stream, const KernelArgs& args) const {
  auto* control = reinterpret_cast<Control*>(args.ex.window[0]);
  const ControlLine* line = &control->line;
  const uint32_t* status = &control->status;
  const uint32_t* host_abort = args.ex.host_abort;
  uint32_t number = issued_;
  void* arguments[] = {&line, &status, &host_abort, &number};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = stream;
  return cuda_status(cudaLaunchKernelExC(&config, wait_for_call_entry(), arguments),
                     "waiting for the launches on another stream");
}

Status StreamOrder::mix_in(cudaStream_t stream, bool captured) {
  if (event_ == nullptr)
    FCCL_CUDA_TRY(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  if (!recorded_) return {};
  return cuda_status(
      cudaStreamWaitEvent(stream, event_, captured ? cudaEventWaitExternal : cudaEventWaitDefault),
      "cudaStreamWaitEvent");
}

Status StreamOrder::after(cudaStream_t stream) {
  if (mixing_) {
    recorded_ = true;
    FCCL_CUDA_TRY(
        cudaEventRecordWithFlags(
            event_, stream, capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault),
        "cudaEventRecord");
  }
  if (!capturing_) {
    ++issued_;
    eager_stream_ = stream_;
    return {};
  }
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
  FCCL_CUDA_TRY(cudaStreamGetCaptureInfo(stream, &state, nullptr, nullptr, &last, nullptr, &count),
                "cudaStreamGetCaptureInfo");
  capture_stream_ = stream_;
  node_ = count == 1 ? last[0] : nullptr;
  return {};
}

}  // namespace fccl
