#include "fccl_perf/local_norm.h"

#include <fccl/fccl.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "fccl_perf/numbers.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define PERF_X86_LEVELS 1
#endif

// Vectors are passed between inlined functions only: the changed calling convention does not
// matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace perf {
namespace portable {
#include "fccl_perf/local_norm_body.inc"
}  // namespace portable

#ifdef PERF_X86_LEVELS
#define PERF_HALF_CONVERSIONS 1
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
namespace avx2 {
#include "fccl_perf/local_norm_body.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
namespace avx512 {
#include "fccl_perf/local_norm_body.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

namespace {

struct Level {
  const char* name;
  void (*norm)(const LocalNorm&, float*);
  void (*widen)(const void*, float*, int64_t, int);
  void (*narrow)(const float*, void*, int64_t, int);
};

const Level& level() {
  static const Level chosen = [] {
#ifdef PERF_X86_LEVELS
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
      return Level{"avx512", avx512::norm, avx512::widen_all, avx512::narrow_all};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      return Level{"avx2", avx2::norm, avx2::widen_all, avx2::narrow_all};
    }
#endif
    return Level{"portable", portable::norm, portable::widen_all, portable::narrow_all};
  }();
  return chosen;
}

}  // namespace

void run_local_norm(const LocalNorm& call) {
  thread_local std::vector<float> row;
  if (row.size() < static_cast<std::size_t>(call.hidden))
    row.resize(static_cast<std::size_t>(call.hidden));
  level().norm(call, row.data());
}

void widen(const void* from, float* to, int64_t count, int datatype) {
  level().widen(from, to, count, datatype);
}
void narrow(const float* from, void* to, int64_t count, int datatype) {
  level().narrow(from, to, count, datatype);
}
const char* local_norm_level() {
  return level().name;
}

}  // namespace perf
