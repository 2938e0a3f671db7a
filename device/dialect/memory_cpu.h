// Memory words on the CPU: what peers store into and poll.
//
// store_peer/load_peer move 16 bytes of a mailbox. Each aligned 8-byte half is a single access on
// every 64-bit CPU (16 bytes on x86-64 with AVX); readers test all four words, so a torn pack is
// seen as not arrived. Halves are release stores and acquire loads: that orders a slot's re-arm
// before the peer's next push on weakly ordered CPUs and is what ThreadSanitizer understands; on
// x86-64 they are plain moves, so there (without TSan) one vector access does it.
//
// Sleeping: a writer stores its data and then, after a full fence, looks at the reader's count of
// sleepers: only if there are any it counts the doorbell up and wakes them. A reader counts itself
// as a sleeper (a full fence too), reads the doorbell, looks at the data once more and sleeps only
// while the doorbell is unchanged. Of two threads that each store, fence and look, one at least
// sees the other's store: either the writer sees the sleeper, or the reader sees the data. While
// nobody sleeps the doorbell's line is only read and stays in every cache.
#pragma once
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/dialect/pack_cpu.h"
#include "device/dialect/pause.h"

namespace fccl::FCCL_TARGET {

FCCL_DEVICE void store_peer(char* to, Pack p) {
#if defined(__x86_64__) && !FCCL_TSAN && FCCL_PACK_BYTES == 16
  *reinterpret_cast<volatile __m128i*>(to) = p.words.raw;
#else
  uint64_t part[kPackBytes / 8];
  hn::StoreU(p.words, WordTag(), reinterpret_cast<uint32_t*>(part));
  for (int i = 0; i < kPackBytes / 8; ++i)
    __atomic_store_n(reinterpret_cast<uint64_t*>(to) + i, part[i], __ATOMIC_RELEASE);
#endif
}

FCCL_DEVICE Pack load_peer(const char* from) {
#if defined(__x86_64__) && !FCCL_TSAN && FCCL_PACK_BYTES == 16
  return {Words{*reinterpret_cast<const volatile __m128i*>(from)}};
#else
  uint64_t part[kPackBytes / 8];
  for (int i = 0; i < kPackBytes / 8; ++i)
    part[i] = __atomic_load_n(reinterpret_cast<const uint64_t*>(from) + i, __ATOMIC_ACQUIRE);
  return {hn::LoadU(WordTag(), reinterpret_cast<const uint32_t*>(part))};
#endif
}

// Plain access to a pack, ordered by flags.
FCCL_DEVICE void store_staged(char* to, Pack p) {
  hn::StoreU(p.words, WordTag(), reinterpret_cast<uint32_t*>(to));
}
FCCL_DEVICE Pack load_staged(const char* from) {
  return {hn::LoadU(WordTag(), reinterpret_cast<const uint32_t*>(from))};
}

// A call of the host begins when the one before it has ended.
FCCL_DEVICE void wait_for_earlier_kernels() {}

// Asks for a line a little ahead of `at`. A pack is a quarter of a line, so each is asked for four
// times; the repeats cost less than a branch.
constexpr int kFetchAhead = 1024;  // bytes: as many lines as a core has misses in flight
FCCL_DEVICE void fetch_to_read(const char* at) {
  __builtin_prefetch(at + kFetchAhead, 0);
}
FCCL_DEVICE void fetch_to_write(char* at) {
  __builtin_prefetch(at + kFetchAhead, 1);
}

// ---- the caller's tensors: any alignment; the last pack of a row may be partial. kWhole: every
// row is whole packs (on a GPU: and aligned to 16 bytes).
template <class T, bool kWhole>
FCCL_DEVICE Pack load_user(const char* row, int pack, int elements) {
  const char* from = row + static_cast<int64_t>(pack) * kPackBytes;
  if constexpr (!kWhole) {
    const int64_t bytes =
        static_cast<int64_t>(elements) * T::bytes - static_cast<int64_t>(pack) * kPackBytes;
    if (bytes < kPackBytes) {
      uint32_t words[kPackWords] = {};
      if (bytes > 0) std::memcpy(words, from, static_cast<size_t>(bytes));
      return pack_of_words(words);
    }
  }
  return load_staged(from);
}
template <class T, bool kWhole>
FCCL_DEVICE void store_user(char* row, int pack, int elements, Pack p) {
  char* to = row + static_cast<int64_t>(pack) * kPackBytes;
  if constexpr (!kWhole) {
    const int64_t bytes =
        static_cast<int64_t>(elements) * T::bytes - static_cast<int64_t>(pack) * kPackBytes;
    if (bytes < kPackBytes) {
      uint32_t words[kPackWords];
      pack_to_words(p, words);
      if (bytes > 0) std::memcpy(to, words, static_cast<size_t>(bytes));
      return;
    }
  }
  store_staged(to, p);
}
// Elements of an fp32 vector (weight, bias) that belong to a pack of kElements<T>.
template <class T, bool kWhole>
FCCL_DEVICE Floats<kElements<T>> load_user_f32(const char* vector, int pack, int elements) {
  constexpr int N = kElements<T>;
  const char* from = vector + static_cast<int64_t>(pack) * N * 4;
  const int left = elements - pack * N;
  float x[N] = {};
  if (left > 0) std::memcpy(x, from, sizeof(float) * static_cast<size_t>(left < N ? left : N));
  return load_floats<N>(x);
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
  return __atomic_compare_exchange_n(
      word, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

FCCL_DEVICE uint32_t float_bits(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
FCCL_DEVICE float float_of_bits(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}
// 1 / sqrt, rounded once.
FCCL_DEVICE float inverse_sqrt(float x) {
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
}
FCCL_DEVICE float fused_multiply_add(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

// ---- the control block
FCCL_DEVICE uint64_t load_line(const uint64_t& line) {
  return load_acquire(&line);
}
FCCL_DEVICE uint64_t add_to_line(uint64_t& line, uint64_t part) {
  return fetch_add(&line, part);
}
FCCL_DEVICE uint64_t answer(uint64_t found) {
  return found;
}
FCCL_DEVICE void poison(uint64_t& line) {
  __atomic_fetch_or(&line, kPoisonedLine, __ATOMIC_SEQ_CST);
}

// Header: the number is stored last and loaded first.
FCCL_DEVICE void store_header(CallHeader& to, const CallHeader& header) {
  __atomic_store_n(&to.hash, header.hash, __ATOMIC_RELAXED);
  __atomic_store_n(&to.tokens, header.tokens, __ATOMIC_RELAXED);
  store_release(&to.number, header.number);
}
FCCL_DEVICE CallHeader load_header(const CallHeader& from) {
  CallHeader header;
  header.number = load_acquire(&from.number);
  header.hash = load_relaxed(&from.hash);
  header.tokens = load_relaxed(&from.tokens);
  return header;
}
FCCL_DEVICE void store_status(uint32_t& to, uint32_t word) {
  compare_and_swap(&to, 0u, word);
}
FCCL_DEVICE uint32_t host_word(const uint32_t* word) {
  return load_acquire(word);
}
FCCL_DEVICE void publish_record(uint32_t* complete) {
  store_release(complete, 1u);
}

// Before a look at sleepers. ThreadSanitizer knows no fences; there the look is a
// read-modify-write.
FCCL_DEVICE void stores_before_looks() {
#if !FCCL_TSAN
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
FCCL_DEVICE void ring(Doorbell& bell) {
#if FCCL_TSAN
  const uint32_t sleepers = fetch_add(&bell.sleepers, 0u);
#else
  const uint32_t sleepers = load_relaxed(&bell.sleepers);
#endif
  if (sleepers == 0) return;
  fetch_add(&bell.count, 1u);
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
  pause_polling();
}
// To a rank that shares this CPU and may be the one that is waited for.
FCCL_DEVICE void give_way() {
  sched_yield();
}

}  // namespace fccl::FCCL_TARGET
