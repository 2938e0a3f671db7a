// Memory words on CUDA: what peers store into and poll, and the caller's tensors.
//
// Everything that a peer may touch is accessed relaxed at system scope, 16 bytes at a time; release
// and acquire would double the hop and are used by the flag protocol only. Accesses are volatile
// assembly in source order, so that a load written before a poll is issued before it. The control
// line belongs to the own device: it is read with one relaxed 16-byte load and advanced by one
// 8-byte compare-and-swap over {gen, seq}; nobody reads it between that and the end of the launch.
#pragma once
#include "device/dialect/pack_cuda.h"
#include "device/layout/control.h"

namespace fccl::FCCL_TARGET {

FCCL_DEVICE void store_peer(char* to, const Pack& p) {
  asm volatile("st.relaxed.sys.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "r"(p.w[0]),
               "r"(p.w[1]),
               "r"(p.w[2]),
               "r"(p.w[3])
               : "memory");
}
FCCL_DEVICE Pack load_peer(const char* from) {
  Pack p;
  asm volatile("ld.relaxed.sys.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(p.w[0]), "=r"(p.w[1]), "=r"(p.w[2]), "=r"(p.w[3])
               : "l"(from)
               : "memory");
  return p;
}

// Plain 16-byte access, ordered by flags or private to this rank.
FCCL_DEVICE void store_staged(char* to, const Pack& p) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "r"(p.w[0]),
               "r"(p.w[1]),
               "r"(p.w[2]),
               "r"(p.w[3])
               : "memory");
}
FCCL_DEVICE Pack load_staged(const char* from) {
  Pack p;
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(p.w[0]), "=r"(p.w[1]), "=r"(p.w[2]), "=r"(p.w[3])
               : "l"(from)
               : "memory");
  return p;
}

// ---- the caller's tensors: any alignment of an element; the last pack of a row may be partial.
// kWhole: every row is whole packs, aligned to 16 bytes.
FCCL_DEVICE bool is_aligned(const char* p) {
  return (reinterpret_cast<uintptr_t>(p) & 15) == 0;
}

template <class T>
FCCL_DEVICE Pack load_elements(const char* from, int count) {
  Pack p = zero_pack();
  FCCL_UNROLL for (int i = 0; i < kElements<T>; ++i) {
    if (i >= count) continue;
    if constexpr (T::bytes == 4) {
      p.w[i] = reinterpret_cast<const volatile uint32_t*>(from)[i];
    } else {
      p.w[i / 2] |= static_cast<uint32_t>(reinterpret_cast<const volatile uint16_t*>(from)[i])
                    << (i % 2 * 16);
    }
  }
  return p;
}
template <class T>
FCCL_DEVICE void store_elements(char* to, int count, const Pack& p) {
  FCCL_UNROLL for (int i = 0; i < kElements<T>; ++i) {
    if (i >= count) continue;
    if constexpr (T::bytes == 4) {
      reinterpret_cast<volatile uint32_t*>(to)[i] = p.w[i];
    } else {
      reinterpret_cast<volatile uint16_t*>(to)[i] =
          static_cast<uint16_t>(p.w[i / 2] >> (i % 2 * 16));
    }
  }
}
template <class T, bool kWhole>
FCCL_DEVICE Pack load_user(const char* row, int pack, int elements) {
  const char* from = row + static_cast<int64_t>(pack) * kPackBytes;
  if constexpr (kWhole) {
    return load_staged(from);
  } else {
    const int left = elements - pack * kElements<T>;
    return left >= kElements<T> && is_aligned(from) ? load_staged(from)
                                                    : load_elements<T>(from, left);
  }
}
template <class T, bool kWhole>
FCCL_DEVICE void store_user(char* row, int pack, int elements, const Pack& p) {
  char* to = row + static_cast<int64_t>(pack) * kPackBytes;
  [[maybe_unused]] const int left = elements - pack * kElements<T>;
  if constexpr (kWhole) {
    store_staged(to, p);
  } else if (left >= kElements<T> && is_aligned(to)) {
    store_staged(to, p);
  } else {
    store_elements<T>(to, left, p);
  }
}
// Elements of an fp32 vector (weight, bias) that belong to a pack of kElements<T>.
template <class T, bool kWhole>
FCCL_DEVICE Floats<kElements<T>> load_user_f32(const char* vector, int pack, int elements) {
  constexpr int N = kElements<T>;
  const float* from = reinterpret_cast<const float*>(vector) + static_cast<int64_t>(pack) * N;
  Floats<N> r;
  FCCL_UNROLL for (int i = 0; i < N; ++i) r.v[i] =
      pack * N + i < elements ? *reinterpret_cast<const volatile float*>(from + i) : 0.0f;
  return r;
}

// ---- single words
FCCL_DEVICE uint32_t load_relaxed(const uint32_t* word) {
  uint32_t v;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(word) : "memory");
  return v;
}
FCCL_DEVICE uint64_t load_relaxed(const uint64_t* word) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
  return v;
}
FCCL_DEVICE uint32_t load_acquire(const uint32_t* word) {
  uint32_t v;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(word) : "memory");
  return v;
}
FCCL_DEVICE uint64_t load_acquire(const uint64_t* word) {
  uint64_t v;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
  return v;
}
FCCL_DEVICE void store_release(uint32_t* word, uint32_t value) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
FCCL_DEVICE void store_release(uint64_t* word, uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
FCCL_DEVICE uint32_t fetch_add(uint32_t* word, uint32_t value) {
  uint32_t old;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(word), "r"(value)
               : "memory");
  return old;
}
FCCL_DEVICE bool compare_and_swap(uint32_t* word, uint32_t expected, uint32_t desired) {
  return atomicCAS_system(word, expected, desired) == expected;
}

// ---- the control block
FCCL_DEVICE ControlLine load_line(const Control& control) {
  uint32_t low, high;
  ControlLine line;
  asm volatile("ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(low), "=r"(high), "=r"(line.gen), "=r"(line.seq)
               : "l"(&control.line)
               : "memory");
  line.epoch = static_cast<uint64_t>(high) << 32 | low;
  return line;
}

// What advance_line found, to be looked at when the answer has come.
struct Advanced {
  uint64_t seen = kPoisonedGeneration;  // {gen, seq}
  // Was the line neither `now` nor poisoned?
  FCCL_DEVICE bool overlapped(const ControlLine& now) const {
    return seen != (static_cast<uint64_t>(now.seq) << 32 | now.gen) &&
           static_cast<uint32_t>(seen) != kPoisonedGeneration;
  }
};
FCCL_DEVICE Advanced advance_line(ControlLine& line, const ControlLine& now,
                                  const ControlLine& next) {
  Advanced result;
  const uint64_t expected = static_cast<uint64_t>(now.seq) << 32 | now.gen;
  const uint64_t desired = static_cast<uint64_t>(next.seq) << 32 | next.gen;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(result.seen)
               : "l"(&line.gen), "l"(expected), "l"(desired)
               : "memory");
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(&line.epoch), "l"(next.epoch)
               : "memory");
  return result;
}
FCCL_DEVICE void poison_line(ControlLine& line) {
  atomicExch(&line.gen, kPoisonedGeneration);
}

FCCL_DEVICE void store_header(CallHeader& to, const CallHeader& header) {
  store_peer(reinterpret_cast<char*>(&to),
             {{static_cast<uint32_t>(header.epoch),
               static_cast<uint32_t>(header.epoch >> 32),
               header.hash,
               header.tokens}});
}
FCCL_DEVICE CallHeader load_header(const CallHeader& from) {
  const Pack p = load_peer(reinterpret_cast<const char*>(&from));
  return {static_cast<uint64_t>(p.w[1]) << 32 | p.w[0], p.w[2], p.w[3]};
}
// A peer need not support atomics of ours: a plain store, any status of a failed communicator will
// do.
FCCL_DEVICE void store_status(uint32_t& to, uint32_t word) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(&to), "r"(word) : "memory");
}
FCCL_DEVICE void publish_record(uint32_t* complete) {
  store_release(complete, 1u);
}

FCCL_DEVICE uint64_t now_ns() {
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

// The host's word costs a trip over PCI: one lane of a warp looks, of warps beyond the first only
// now and then (they learn of it by the status word).
FCCL_DEVICE uint32_t host_word(const uint32_t* word) {
  const bool often = threadIdx.x < 32 || (now_ns() >> 10 & 15) == 0;
  const int lane = static_cast<int>(threadIdx.x & 31);
  if (!often || lane != __ffs(static_cast<int>(__activemask())) - 1) return 0;
  return load_acquire(word);
}

// Kernels that follow in the stream may have been started early (programmatic dependent launch).
FCCL_DEVICE void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
FCCL_DEVICE void start_later_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Nothing to do ahead here: see the CPU's.
FCCL_DEVICE void fetch_to_read(const char*) {}
FCCL_DEVICE void fetch_to_write(char*) {}

}  // namespace fccl::FCCL_TARGET
