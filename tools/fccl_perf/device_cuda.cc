// NVIDIA GPUs through the driver library, opened at run time, so that the tool starts on any host.
// The few types and functions used are declared here; their layout is part of the driver's stable
// ABI. The primary context is shared with fccl's backend, which uses the runtime API.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>

#include "fccl_perf/device.h"

namespace perf {
namespace {

using CuResult = int;
using CuDevice = int;
using CuPointer = unsigned long long;
using CuHandle = void*;

struct Driver {
  CuResult (*init)(unsigned) = nullptr;
  CuResult (*get_error_string)(CuResult, const char**) = nullptr;
  CuResult (*device_get_count)(int*) = nullptr;
  CuResult (*device_get)(CuDevice*, int) = nullptr;
  CuResult (*device_get_name)(char*, int, CuDevice) = nullptr;
  CuResult (*device_get_attribute)(int*, int, CuDevice) = nullptr;
  CuResult (*primary_retain)(CuHandle*, CuDevice) = nullptr;
  CuResult (*set_current)(CuHandle) = nullptr;
  CuResult (*mem_alloc)(CuPointer*, std::size_t) = nullptr;
  CuResult (*mem_free)(CuPointer) = nullptr;
  CuResult (*copy_in)(CuPointer, const void*, std::size_t, CuHandle) = nullptr;
  CuResult (*copy_out)(void*, CuPointer, std::size_t, CuHandle) = nullptr;
  CuResult (*set_bytes)(CuPointer, unsigned char, std::size_t, CuHandle) = nullptr;
  CuResult (*stream_create)(CuHandle*, unsigned) = nullptr;
  CuResult (*stream_destroy)(CuHandle) = nullptr;
  CuResult (*stream_synchronize)(CuHandle) = nullptr;
  CuResult (*begin_capture)(CuHandle, int) = nullptr;
  CuResult (*end_capture)(CuHandle, CuHandle*) = nullptr;
  CuResult (*instantiate)(CuHandle*, CuHandle, unsigned long long) = nullptr;
  CuResult (*graph_upload)(CuHandle, CuHandle) = nullptr;
  CuResult (*graph_launch)(CuHandle, CuHandle) = nullptr;
  CuResult (*graph_exec_destroy)(CuHandle) = nullptr;
  CuResult (*graph_destroy)(CuHandle) = nullptr;
  CuResult (*event_create)(CuHandle*, unsigned) = nullptr;
  CuResult (*event_destroy)(CuHandle) = nullptr;
  CuResult (*event_record)(CuHandle, CuHandle) = nullptr;
  CuResult (*event_synchronize)(CuHandle) = nullptr;
  CuResult (*event_elapsed)(float*, CuHandle, CuHandle) = nullptr;
  std::string problem;
};

template <typename Function>
void find(void* library, const char* name, Function*& field, std::string& problem) {
  field = reinterpret_cast<Function*>(dlsym(library, name));
  if (!field && problem.empty()) problem = fmt::format("the NVIDIA driver has no {}", name);
}

void find_all(void* lib, Driver& d) {
  find(lib, "cuInit", d.init, d.problem);
  find(lib, "cuGetErrorString", d.get_error_string, d.problem);
  find(lib, "cuDeviceGetCount", d.device_get_count, d.problem);
  find(lib, "cuDeviceGet", d.device_get, d.problem);
  find(lib, "cuDeviceGetName", d.device_get_name, d.problem);
  find(lib, "cuDeviceGetAttribute", d.device_get_attribute, d.problem);
  find(lib, "cuDevicePrimaryCtxRetain", d.primary_retain, d.problem);
  find(lib, "cuCtxSetCurrent", d.set_current, d.problem);
  find(lib, "cuMemAlloc_v2", d.mem_alloc, d.problem);
  find(lib, "cuMemFree_v2", d.mem_free, d.problem);
  find(lib, "cuMemcpyHtoDAsync_v2", d.copy_in, d.problem);
  find(lib, "cuMemcpyDtoHAsync_v2", d.copy_out, d.problem);
  find(lib, "cuMemsetD8Async", d.set_bytes, d.problem);
  find(lib, "cuStreamCreate", d.stream_create, d.problem);
  find(lib, "cuStreamDestroy_v2", d.stream_destroy, d.problem);
  find(lib, "cuStreamSynchronize", d.stream_synchronize, d.problem);
  find(lib, "cuStreamBeginCapture_v2", d.begin_capture, d.problem);
  find(lib, "cuStreamEndCapture", d.end_capture, d.problem);
  find(lib, "cuGraphInstantiateWithFlags", d.instantiate, d.problem);
  find(lib, "cuGraphUpload", d.graph_upload, d.problem);
  find(lib, "cuGraphLaunch", d.graph_launch, d.problem);
  find(lib, "cuGraphExecDestroy", d.graph_exec_destroy, d.problem);
  find(lib, "cuGraphDestroy", d.graph_destroy, d.problem);
  find(lib, "cuEventCreate", d.event_create, d.problem);
  find(lib, "cuEventDestroy_v2", d.event_destroy, d.problem);
  find(lib, "cuEventRecord", d.event_record, d.problem);
  find(lib, "cuEventSynchronize", d.event_synchronize, d.problem);
  find(lib, "cuEventElapsedTime", d.event_elapsed, d.problem);
}

// Opened once, by the first rank that asks; never closed.
const Driver& driver() {
  static const Driver instance = [] {
    Driver d;
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
      d.problem = "no NVIDIA driver here (libcuda.so.1)";
      return d;
    }
    find_all(library, d);
    if (d.problem.empty() && d.init(0) != 0)
      d.problem = "the NVIDIA driver finds no GPU (cuInit failed)";
    return d;
  }();
  return instance;
}

Outcome checked(CuResult result, const char* what) {
  if (result == 0) return {};
  const char* text = nullptr;
  driver().get_error_string(result, &text);
  return Outcome::failure(fmt::format("{} failed: {} ({})", what, text ? text : "unknown", result));
}

class CudaDevice : public Device {
 public:
  CudaDevice(int ordinal, bool null_stream) : ordinal_(ordinal), null_stream_(null_stream) {}
  ~CudaDevice() override {
    drop_capture();
    if (flush_ != nullptr) release(flush_);
    for (CuHandle event : events_) driver().event_destroy(event);
    if (stream_ != nullptr) driver().stream_destroy(stream_);
  }

  Outcome open() {
    const Driver& d = driver();
    CuHandle context = nullptr;
    PERF_TRY(checked(d.device_get(&device_, ordinal_), "cuDeviceGet"));
    PERF_TRY(checked(d.primary_retain(&context, device_), "cuDevicePrimaryCtxRetain"));
    PERF_TRY(checked(d.set_current(context), "cuCtxSetCurrent"));
    constexpr unsigned kNonBlocking = 1;
    if (null_stream_) return {};
    return checked(d.stream_create(&stream_, kNonBlocking), "cuStreamCreate");
  }

  bool is_cpu() const override { return false; }
  int ordinal() const override { return ordinal_; }
  void* stream() const override { return stream_; }
  std::string name() const override {
    char text[128] = "GPU";
    driver().device_get_name(text, sizeof(text), device_);
    return text;
  }
  std::string bus_id() const override {
    constexpr int kBus = 33;
    constexpr int kSlot = 34;
    constexpr int kDomain = 50;
    return fmt::format(
        "{:04x}:{:02x}:{:02x}", attribute(kDomain), attribute(kBus), attribute(kSlot));
  }

  Outcome allocate(void** pointer, std::size_t bytes) override {
    CuPointer address = 0;
    PERF_TRY(checked(driver().mem_alloc(&address, bytes), "cuMemAlloc"));
    *pointer = reinterpret_cast<void*>(address);
    return {};
  }
  void release(void* pointer) override { driver().mem_free(reinterpret_cast<CuPointer>(pointer)); }
  Outcome upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    PERF_TRY(checked(driver().copy_in(reinterpret_cast<CuPointer>(to), from, bytes, stream_),
                     "cuMemcpyHtoDAsync"));
    return synchronize();
  }
  Outcome download(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    PERF_TRY(checked(driver().copy_out(to, reinterpret_cast<CuPointer>(from), bytes, stream_),
                     "cuMemcpyDtoHAsync"));
    return synchronize();
  }
  Outcome synchronize() override {
    return checked(driver().stream_synchronize(stream_), "cuStreamSynchronize");
  }

  Outcome time_calls(int64_t count, const Enqueue& enqueue, bool each, Timing& timing) override;
  Outcome capture(int64_t count, const Enqueue& enqueue) override;
  Outcome replay(double& total_us) override;
  void drop_capture() override {
    if (exec_ != nullptr) driver().graph_exec_destroy(exec_);
    if (graph_ != nullptr) driver().graph_destroy(graph_);
    exec_ = graph_ = nullptr;
  }

  Outcome flush_caches() override {
    constexpr std::size_t kBytes = std::size_t{256} << 20;  // beyond the L2 of every GPU so far
    if (flush_ == nullptr) PERF_TRY(allocate(&flush_, kBytes));
    return checked(driver().set_bytes(reinterpret_cast<CuPointer>(flush_), 1, kBytes, stream_),
                   "cuMemsetD8Async");
  }

 private:
  int attribute(int which) const {
    int value = 0;
    driver().device_get_attribute(&value, which, device_);
    return value;
  }
  Outcome need_events(std::size_t count) {
    while (events_.size() < count) {
      CuHandle event = nullptr;
      PERF_TRY(checked(driver().event_create(&event, 0), "cuEventCreate"));
      events_.push_back(event);
    }
    return {};
  }
  Outcome elapsed(std::size_t from, std::size_t to, double& us) {
    float ms = 0;
    PERF_TRY(
        checked(driver().event_elapsed(&ms, events_[from], events_[to]), "cuEventElapsedTime"));
    us = static_cast<double>(ms) * 1e3;
    return {};
  }

  int ordinal_;
  bool null_stream_;
  CuDevice device_ = 0;
  CuHandle stream_ = nullptr;
  CuHandle graph_ = nullptr;
  CuHandle exec_ = nullptr;
  void* flush_ = nullptr;
  std::vector<CuHandle> events_;
};

Outcome CudaDevice::time_calls(int64_t count, const Enqueue& enqueue, bool each, Timing& timing) {
  const Driver& d = driver();
  const std::size_t last = each ? static_cast<std::size_t>(count) : 1;
  PERF_TRY(need_events(last + 1));
  PERF_TRY(checked(d.event_record(events_[0], stream_), "cuEventRecord"));
  const double begin = now_us();
  for (int64_t i = 0; i < count; ++i) {
    PERF_TRY(enqueue(i));
    if (each)
      PERF_TRY(checked(d.event_record(events_[static_cast<std::size_t>(i) + 1], stream_),
                       "cuEventRecord"));
  }
  timing.host_us = now_us() - begin;
  if (!each) PERF_TRY(checked(d.event_record(events_[1], stream_), "cuEventRecord"));
  PERF_TRY(synchronize());
  PERF_TRY(elapsed(0, last, timing.total_us));
  for (std::size_t i = 0; each && i < last; ++i) {
    double us = 0;
    PERF_TRY(elapsed(i, i + 1, us));
    timing.each_us.push_back(us);
  }
  return {};
}

Outcome CudaDevice::capture(int64_t count, const Enqueue& enqueue) {
  constexpr int kThreadLocal = 1;
  const Driver& d = driver();
  drop_capture();
  PERF_TRY(checked(d.begin_capture(stream_, kThreadLocal), "cuStreamBeginCapture"));
  Outcome outcome;
  for (int64_t i = 0; i < count && outcome.ok(); ++i) outcome = enqueue(i);
  const CuResult ended = d.end_capture(stream_, &graph_);
  PERF_TRY(outcome);
  PERF_TRY(checked(ended, "cuStreamEndCapture"));
  PERF_TRY(checked(d.instantiate(&exec_, graph_, 0), "cuGraphInstantiate"));
  PERF_TRY(checked(d.graph_upload(exec_, stream_), "cuGraphUpload"));
  return synchronize();
}

Outcome CudaDevice::replay(double& total_us) {
  const Driver& d = driver();
  PERF_TRY(need_events(2));
  PERF_TRY(checked(d.event_record(events_[0], stream_), "cuEventRecord"));
  PERF_TRY(checked(d.graph_launch(exec_, stream_), "cuGraphLaunch"));
  PERF_TRY(checked(d.event_record(events_[1], stream_), "cuEventRecord"));
  PERF_TRY(synchronize());
  return elapsed(0, 1, total_us);
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  if (!driver().problem.empty() || driver().device_get_count(&count) != 0) return 0;
  return count;
}

std::unique_ptr<Device> make_cuda_device(int ordinal, bool null_stream, std::string& problem) {
  problem = driver().problem;
  if (!problem.empty()) return nullptr;
  if (ordinal >= cuda_device_count()) {
    problem = fmt::format("GPU {} is wanted, this process sees {}", ordinal, cuda_device_count());
    return nullptr;
  }
  auto device = std::make_unique<CudaDevice>(ordinal, null_stream);
  const Outcome opened = device->open();
  problem = opened.text();
  if (!opened.ok()) return nullptr;
  return device;
}

}  // namespace perf
