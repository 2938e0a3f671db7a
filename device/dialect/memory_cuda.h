// Memory words on CUDA: what peers store into and poll, and the caller's tensors.
//
// Everything that a peer may touch is accessed relaxed at system scope, 16 bytes at a time; release
// and acquire would double the hop and are used by the flag protocol only. Accesses are volatile
// assembly in source order, so that a load written before a poll is issued before it. The control
// line belongs to the own device: relaxed accesses at its scope.
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

// Memory of this rank that no peer touches.
FCCL_DEVICE void store_own(char* to, const Pack& p) {
  store_staged(to, p);
}
FCCL_DEVICE Pack load_own(const char* from) {
  return load_staged(from);
}
template <class Word>
FCCL_DEVICE Word load_own_word(const Word* from) {
  return *reinterpret_cast<const volatile Word*>(from);
}
template <class Word>
FCCL_DEVICE void store_own_word(Word* to, Word value) {
  *reinterpret_cast<volatile Word*>(to) = value;
}

}  // namespace fccl::FCCL_TARGET

#include "device/dialect/memory_gpu.h"

namespace fccl::FCCL_TARGET {

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
FCCL_DEVICE bool compare_and_swap(uint32_t* word, uint32_t expected, uint32_t desired) {
  return atomicCAS_system(word, expected, desired) == expected;
}

// ---- the control block
FCCL_DEVICE uint64_t load_line(const uint64_t& line) {
  uint64_t seen;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(&line) : "memory");
  return seen;
}
FCCL_DEVICE uint64_t add_to_line(uint64_t& line, uint64_t part) {
  uint64_t found;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(found)
               : "l"(&line), "l"(part)
               : "memory");
  return found;
}
// Nothing is made of it, and so it is not waited for, before this place.
FCCL_DEVICE uint64_t answer(uint64_t found) {
  asm volatile("" : "+l"(found));
  return found;
}
FCCL_DEVICE void poison(uint64_t& line) {
  asm volatile("red.relaxed.gpu.global.or.b64 [%0], %1;" ::"l"(&line), "l"(kPoisonedLine)
               : "memory");
}

FCCL_DEVICE void store_header(CallHeader& to, const CallHeader& header) {
  store_peer(reinterpret_cast<char*>(&to),
             {{static_cast<uint32_t>(header.number),
               static_cast<uint32_t>(header.number >> 32),
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

// What is made of arguments and indices is computed here and kept, not again where it is used: the
// compiler would put that behind the wait for earlier kernels, where it costs time. It goes into a
// condition that never holds (no union of addresses and small numbers is ~0), and on which all that
// follows depends.
FCCL_DEVICE void compute_before_here(uint64_t bits) {
  asm volatile("{.reg .pred p; setp.eq.s64 p, %0, -1; @p exit;}" ::"l"(bits) : "memory");
}

// Nothing to do ahead here: see the CPU's.
FCCL_DEVICE void fetch_to_read(const char*) {}
FCCL_DEVICE void fetch_to_write(char*) {}

}  // namespace fccl::FCCL_TARGET
