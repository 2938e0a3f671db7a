// Where the buffers of a rank live: host memory for CPU ranks, a GPU through its driver. One Device
// per rank, used by that rank's thread only. The tool links no vendor library: device_cuda.cc opens
// the driver at run time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fccl_perf/outcome.h"

namespace perf {

class Device {
 public:
  virtual ~Device() = default;
  virtual bool is_cpu() const = 0;
  virtual int ordinal() const = 0;  // -1 on the CPU
  virtual std::string bus_id() const = 0;  // "0000:1b:00"
  virtual std::string name() const = 0;
  virtual void* stream() const = 0;

  virtual Outcome allocate(void** pointer, std::size_t bytes) = 0;
  virtual void release(void* pointer) = 0;
  virtual Outcome upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual Outcome download(void* to, const void* from, std::size_t bytes) = 0;
  virtual Outcome synchronize() = 0;

  // Runs `enqueue(i)` for i in [0, count), a host function that launches call number i. Device
  // times of each, in us, go to `each` (if wanted), the whole to `total_us`, the host's time to
  // `host_us`.
  using Enqueue = std::function<Outcome(int64_t)>;
  struct Timing {
    double total_us = 0;
    double host_us = 0;
    std::vector<double> each_us;
  };
  virtual Outcome time_calls(int64_t count, const Enqueue& enqueue, bool each, Timing& timing) = 0;

  // Captures the calls into one graph; replay() then gives the device time of one replay. On the
  // CPU a replay is a plain loop under one pair of clock readings.
  virtual Outcome capture(int64_t count, const Enqueue& enqueue) = 0;
  virtual Outcome replay(double& total_us) = 0;
  virtual void drop_capture() = 0;

  // Empties the caches that a call could profit from.
  virtual Outcome flush_caches() = 0;
};

std::unique_ptr<Device> make_cpu_device();
// Null with a reason in `problem` if the machine has no such GPU or no driver.
std::unique_ptr<Device> make_cuda_device(int ordinal, bool null_stream, std::string& problem);
int cuda_device_count();

// Monotonic time in microseconds.
double now_us();

}  // namespace perf
