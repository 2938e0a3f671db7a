// The buffers of one rank: several sets used in turn, each buffer between guard bytes, filled from
// the pattern and compared with the truth afterwards.
#pragma once

#include <fccl/fccl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fccl_perf/case.h"
#include "fccl_perf/device.h"
#include "fccl_perf/pattern.h"

namespace perf {

// What a call reads and writes. Plain collectives use input as send and norm_out as receive buffer.
struct Operands {
  const void* input = nullptr;
  const void* residual = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  void* residual_out = nullptr;
  void* norm_out = nullptr;
  void* allreduce_out = nullptr;
};

// How a call uses the buffers. Sharded: the residual is used in the rank's own rows only.
struct Placement {
  bool in_place = false;
  bool sharded = false;
  bool canonical_nan = false;  // every NaN that is stored must be fccl's, not just any
};

// Guarded memory of the device. Grows, never shrinks.
class Buffer {
 public:
  static constexpr char kCanary = '\xa5';  // what an output holds that was never written

  ~Buffer();
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // `registered`: 0 the device's memory, 1 fcclMemAlloc, 2 with a window too (collective).
  Outcome reserve(Device* device, fcclComm_t comm, int registered, std::size_t bytes,
                  std::size_t shift);
  Outcome fill(const void* content);  // and the guards
  Outcome fill_canary();
  Outcome download(std::vector<char>& content, bool& guards_intact) const;
  char* data() const { return base_ + kGuard + shift_; }
  std::size_t bytes() const { return bytes_; }
  void release();

 private:
  static constexpr std::size_t kGuard = 256;
  Device* device_ = nullptr;
  fcclComm_t comm_ = nullptr;
  fcclWindow_t window_ = nullptr;
  char* base_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t bytes_ = 0;
  std::size_t shift_ = 0;
};

struct CheckResult {
  int64_t wrong = 0;
  std::string first;  // the first wrong element: where, both values, the tolerance
};

class Workbench {
 public:
  Workbench(const Options& options, Device* device, fcclComm_t comm, int rank, int ranks);
  Outcome prepare(const Case& one);
  // Fills set `which` for a checked call: inputs from `pattern`, outputs with a canary.
  Outcome fill(int which, const Pattern& pattern, const Placement& place);
  // Compares what the call left in the set with the truth. `inject`: a fault to plant before, or
  // empty.
  Outcome check(int which, const Pattern& pattern, const Placement& place,
                const std::string& inject, CheckResult& result);
  Operands operands(int which, const Placement& place) const;
  int sets() const { return static_cast<int>(sets_.size()); }
  // Before the communicator goes: registered memory belongs to it.
  void release();

 private:
  struct Set {
    Buffer input, residual, residual_out, norm_out, allreduce_out;
    std::vector<char> input_copy, residual_copy;
  };
  void check_residual(const Set& set, const std::vector<char>& content, const TrueRow& truth,
                      int64_t row, const Placement& place, CheckResult& result);
  Outcome check_fused(Set& set, const Pattern& pattern, const Placement& place,
                      const std::string& inject, CheckResult& result);
  Outcome check_plain(Set& set, const Pattern& pattern, const Placement& place,
                      const std::string& inject, CheckResult& result);
  Outcome check_input(const Buffer& buffer, const std::vector<char>& copy, bool spoil,
                      const char* name, CheckResult& result);
  Outcome take(const Buffer& buffer, const std::string& inject, const char* name,
               std::vector<char>& content, CheckResult& result);
  void compare(const std::vector<char>& content, int64_t index, double truth, double ulps,
               const char* name, CheckResult& result);
  void own_rows(const Placement& place, int64_t& first, int64_t& count) const;

  const Options& options_;
  Device* device_;
  fcclComm_t comm_;
  int rank_;
  int ranks_;
  Case case_;
  bool canonical_nan_ = false;
  std::vector<std::unique_ptr<Set>> sets_;
  Buffer weight_;
  Buffer bias_;
};

}  // namespace perf
