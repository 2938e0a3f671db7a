// Memory words on the CPU: what peers store into and poll.
//
// store_peer/load_peer move 16 bytes of a mailbox. Each aligned 8-byte half is a single access on every
// 64-bit CPU (16 bytes on x86-64 with AVX); readers test all four words, so a torn pack is seen as not
// arrived. Halves are release stores and acquire loads: that orders a slot's re-arm before the peer's
// next push on weakly ordered CPUs and is what ThreadSanitizer understands; on x86-64 they are plain
// moves, so there (without TSan) one vector access does it.
//
// Sleeping: a writer stores its data, then rings: a sequentially consistent read-modify-write of the
// reader's doorbell, then a look at its sleepers. A reader counts itself as a sleeper (sequentially
// consistent), reads the doorbell, looks at the data once more and sleeps only while the doorbell is
// unchanged. In the total order of those accesses either the writer sees the sleeper and wakes it, or
// the reader reads the new doorbell, which synchronises with the writer, and so sees the data.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/dialect/pack_cpu.h"

namespace fccl::FCCL_TARGET {

FCCL_DEVICE void store_peer(char* to, Pack p) {
#if defined(__x86_64__) && !FCCL_TSAN
  *reinterpret_cast<volatile __m128i*>(to) = p.words.raw;
#else
  uint64_t half[2];
  hn::StoreU(p.words, WordTag(), reinterpret_cast<uint32_t*>(half));
  __atomic_store_n(reinterpret_cast<uint64_t*>(to), half[0], __ATOMIC_RELEASE);
  __atomic_store_n(reinterpret_cast<uint64_t*>(to) + 1, half[1], __ATOMIC_RELEASE);
#endif
}

FCCL_DEVICE Pack load_peer(const char* from) {
#if defined(__x86_64__) && !FCCL_TSAN
  return {Words{*reinterpret_cast<const volatile __m128i*>(from)}};
#else
  uint64_t half[2];
  half[0] = __atomic_load_n(reinterpret_cast<const uint64_t*>(from), __ATOMIC_ACQUIRE);
  half[1] = __atomic_load_n(reinterpret_cast<const uint64_t*>(from) + 1, __ATOMIC_ACQUIRE);
  return {hn::LoadU(WordTag(), reinterpret_cast<const uint32_t*>(half))};
#endif
}

// Plain 16-byte access, ordered by flags.
FCCL_DEVICE void store_staged(char* to, Pack p) {
  hn::StoreU(p.words, WordTag(), reinterpret_cast<uint32_t*>(to));
}
FCCL_DEVICE Pack load_staged(const char* from) {
  return {hn::LoadU(WordTag(), reinterpret_cast<const uint32_t*>(from))};
}

template <class Word>
FCCL_DEVICE Word load_relaxed(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
template <class Word>
FCCL_DEVICE Word load_acquire(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
template <class Word>
FCCL_DEVICE void store_release(Word* word, Word value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
template <class Word>
FCCL_DEVICE Word fetch_add(Word* word, Word value) {
  return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
}
template <class Word>
FCCL_DEVICE bool compare_and_swap(Word* word, Word expected, Word desired) {
  return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

FCCL_DEVICE void ring(Doorbell& bell) {
  fetch_add(&bell.count, 1u);
  if (__atomic_load_n(&bell.sleepers, __ATOMIC_SEQ_CST) != 0)
    syscall(SYS_futex, &bell.count, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

FCCL_DEVICE void sleep_on(Doorbell& bell, uint32_t count, int64_t max_ns) {
  timespec limit{static_cast<time_t>(max_ns / 1000000000), static_cast<long>(max_ns % 1000000000)};
  syscall(SYS_futex, &bell.count, FUTEX_WAIT, count, &limit, nullptr, 0);
}

FCCL_DEVICE uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

FCCL_DEVICE void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace fccl::FCCL_TARGET
