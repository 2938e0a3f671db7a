// CPU ranks: host memory, calls that are complete when they return, the monotonic clock.
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "fccl_perf/device.h"

namespace perf {
namespace {

constexpr std::size_t kPage = 4096;

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

// Twice the last level cache, within bounds that a small machine can stand.
std::size_t flush_bytes() {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t wanted =
      cache > 0 ? 2 * static_cast<std::size_t>(cache) : std::size_t{64} << 20;
  return std::min(std::max(wanted, std::size_t{8} << 20), std::size_t{128} << 20);
}

class CpuDevice : public Device {
 public:
  bool is_cpu() const override { return true; }
  int ordinal() const override { return -1; }
  std::string bus_id() const override { return "cpu"; }
  std::string name() const override { return cpu_name(); }
  void* stream() const override { return nullptr; }

  Outcome allocate(void** pointer, std::size_t bytes) override {
    *pointer = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    return *pointer ? Outcome() : Outcome::failure("out of host memory");
  }
  void release(void* pointer) override { std::free(pointer); }
  Outcome upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
  Outcome download(void* to, const void* from, std::size_t bytes) override {
    return upload(to, from, bytes);
  }
  Outcome synchronize() override { return {}; }

  Outcome time_calls(int64_t count, const Enqueue& enqueue, bool each, Timing& timing) override {
    const double begin = now_us();
    double before = begin;
    if (each) timing.each_us.reserve(timing.each_us.size() + static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      PERF_TRY(enqueue(i));
      if (!each) continue;
      const double after = now_us();
      timing.each_us.push_back(after - before);
      before = after;
    }
    timing.host_us = timing.total_us = now_us() - begin;
    return {};
  }

  Outcome capture(int64_t count, const Enqueue& enqueue) override {
    count_ = count;
    enqueue_ = enqueue;
    return {};
  }
  Outcome replay(double& total_us) override {
    Timing timing;
    PERF_TRY(time_calls(count_, enqueue_, false, timing));
    total_us = timing.total_us;
    return {};
  }
  void drop_capture() override { enqueue_ = nullptr; }

  Outcome flush_caches() override {
    if (flush_.empty()) flush_.resize(flush_bytes() / sizeof(uint64_t));
    for (std::size_t i = 0; i < flush_.size(); i += 8) flush_[i] += i;
    return {};
  }

 private:
  int64_t count_ = 0;
  Enqueue enqueue_;
  std::vector<uint64_t> flush_;
};

}  // namespace

double now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace perf
