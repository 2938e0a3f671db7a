// Memory words on HIP: what peers store into and poll, and the caller's tensors.
//
// WHERE. A window (mailboxes, staging, control block) is uncached or fine-grained memory: a line of
// it that stood dirty in an L2 could be written back over a peer's later push. RULE. Whatever is
// changed by one and read by another during a launch is accessed at system scope (sc0 sc1: past the
// L1, and through the L2, to where all XCDs and peers meet), so no access needs a cache written
// back or invalidated, and order is the order of completion: a load has come when its value is
// used, a store has been performed when vmcnt is 0. That is what acquire and release are below;
// buffer_inv in every poll and buffer_wbl2 in front of every pad would cost more than the hop. The
// failure record alone is filled by plain stores, and its release writes back (publish_record).
//
// 16 BYTES. A pack is stored by one 16-byte instruction, so that a wave fills whole lines of the
// link, and loaded by two relaxed 8-byte atomic loads: the compiler knows those, may have those of
// all peers under way at once and waits where a value is used. A 16-byte load at system scope would
// be either volatile, waited for one by one, or assembly, which it cannot wait for. So a pack may
// be torn at 8 bytes, and who loads one must not mind:
//   Lamport  each word of a slot is written once per exchange over the sentinel, and a pack is
//            taken when none of its words is the sentinel: each half is this exchange's then.
//   LL       each half carries its own tag.
//   staging  loaded after the arrival of the tile was seen, which was sent when all was stored.
//   line     is one half.
//   header   the only two halves that belong together: one store instruction of one lane, within a
//            line, is one write on the link, and the reader loads the epoch before the rest.
#pragma once
#include "device/dialect/pack_hip.h"
#include "device/layout/control.h"

namespace fccl::FCCL_TARGET {

using Words = uint32_t __attribute__((ext_vector_type(4), may_alias));

template <class Word>
FCCL_DEVICE FCCL_GLOBAL Word* global(Word* word) {
  return (FCCL_GLOBAL Word*)word;
}

// Holds until `value` has come from memory; what follows in the source is issued after it.
template <class Word>
FCCL_DEVICE Word come(Word value) {
  asm volatile("" : "+v"(value)::"memory");
  return value;
}
// Holds until all stores of this wave have been performed.
FCCL_DEVICE void stores_done() {
  asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
}

// ---- single words
template <class Word>
FCCL_DEVICE Word load_relaxed(const Word* word) {
  return __hip_atomic_load(global(word), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
template <class Word>
FCCL_DEVICE void store_relaxed(Word* word, Word value) {
  __hip_atomic_store(global(word), value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
template <class Word>
FCCL_DEVICE Word load_acquire(const Word* word) {
  return come(load_relaxed(word));
}
template <class Word>
FCCL_DEVICE void store_release(Word* word, Word value) {
  stores_done();
  store_relaxed(word, value);
}
FCCL_DEVICE bool compare_and_swap(uint32_t* word, uint32_t expected, uint32_t desired) {
  return __hip_atomic_compare_exchange_strong(global(word),
                                              &expected,
                                              desired,
                                              __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED,
                                              __HIP_MEMORY_SCOPE_SYSTEM);
}

// ---- packs
// The two cycles behind the store: it may still read its registers, and the compiler, which knows
// that of its own stores, does not know what this assembly is.
FCCL_DEVICE void store_peer(char* to, const Pack& p) {
  const Words words = {p.w[0], p.w[1], p.w[2], p.w[3]};
  asm volatile("global_store_dwordx4 %0, %1, off sc0 sc1\n\ts_nop 1" ::"v"(global(to)), "v"(words)
               : "memory");
}
FCCL_DEVICE Pack pack_of_halves(uint64_t low, uint64_t high) {
  return {{static_cast<uint32_t>(low),
           static_cast<uint32_t>(low >> 32),
           static_cast<uint32_t>(high),
           static_cast<uint32_t>(high >> 32)}};
}
FCCL_DEVICE Pack load_peer(const char* from) {
  const uint64_t* half = reinterpret_cast<const uint64_t*>(from);
  const uint64_t low = load_relaxed(half);
  const uint64_t high = load_relaxed(half + 1);
  return pack_of_halves(low, high);
}
// Ordered by flags; in a window, so at system scope all the same.
FCCL_DEVICE void store_staged(char* to, const Pack& p) {
  store_peer(to, p);
}
FCCL_DEVICE Pack load_staged(const char* from) {
  return load_peer(from);
}

// Memory of this rank that no peer touches.
FCCL_DEVICE void store_own(char* to, const Pack& p) {
  *(FCCL_GLOBAL Words*)to = Words{p.w[0], p.w[1], p.w[2], p.w[3]};
}
FCCL_DEVICE Pack load_own(const char* from) {
  const Words words = *(const FCCL_GLOBAL Words*)from;
  return {{words[0], words[1], words[2], words[3]}};
}
template <class Word>
FCCL_DEVICE Word load_own_word(const Word* from) {
  using Aliased = Word __attribute__((may_alias));
  return *(const FCCL_GLOBAL Aliased*)from;
}
template <class Word>
FCCL_DEVICE void store_own_word(Word* to, Word value) {
  using Aliased = Word __attribute__((may_alias));
  *(FCCL_GLOBAL Aliased*)to = value;
}

}  // namespace fccl::FCCL_TARGET

#include "device/dialect/memory_gpu.h"

namespace fccl::FCCL_TARGET {

// ---- the control block
// The same for all lanes of a wave: in scalar registers, and what is made of it.
FCCL_DEVICE uint32_t uniform(uint32_t word) {
  return static_cast<uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(word)));
}
FCCL_DEVICE uint64_t load_line(const uint64_t& line) {
  const uint64_t seen = load_relaxed(&line);
  const uint32_t low = uniform(static_cast<uint32_t>(seen));
  const uint32_t high = uniform(static_cast<uint32_t>(seen >> 32));
  return static_cast<uint64_t>(high) << 32 | low;
}
FCCL_DEVICE uint64_t add_to_line(uint64_t& line, uint64_t part) {
  return __hip_atomic_fetch_add(global(&line), part, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
FCCL_DEVICE uint64_t answer(uint64_t found) {
  return found;
}
FCCL_DEVICE void poison(uint64_t& line) {
  __hip_atomic_fetch_or(global(&line), kPoisonedLine, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

FCCL_DEVICE void store_header(CallHeader& to, const CallHeader& header) {
  store_peer(reinterpret_cast<char*>(&to),
             {{static_cast<uint32_t>(header.number),
               static_cast<uint32_t>(header.number >> 32),
               header.hash,
               header.tokens}});
}
// All waited for, used or not: of a load that is never used the compiler believes, wherever paths
// meet, that it may be under way, and waits there; with it for every push, for loads and stores
// complete in one order.
FCCL_DEVICE CallHeader load_header(const CallHeader& from) {
  CallHeader header;
  header.number = load_acquire(&from.number);
  header.hash = load_acquire(&from.hash);
  header.tokens = load_acquire(&from.tokens);
  return header;
}
// A peer need not support atomics of ours: a plain store, any status of a failed communicator will
// do.
FCCL_DEVICE void store_status(uint32_t& to, uint32_t word) {
  store_relaxed(&to, word);
}
FCCL_DEVICE void publish_record(uint32_t* complete) {
  __hip_atomic_store(global(complete), 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

// The counter of constant rate: 100 MHz on gfx942 and gfx950.
FCCL_DEVICE uint64_t now_ns() {
  return __builtin_amdgcn_s_memrealtime() * 10;
}

// The host's word costs a trip over PCI, one for a wave; waves beyond the first look only now and
// then (they learn of it by the status word).
FCCL_DEVICE uint32_t host_word(const uint32_t* word) {
  const bool often = __builtin_amdgcn_workitem_id_x() < 64 || (now_ns() >> 10 & 15) == 0;
  return often ? load_acquire(word) : 0;
}

// Launches of a stream do not overlap here.
FCCL_DEVICE void wait_for_earlier_kernels() {}
FCCL_DEVICE void compute_before_here(uint64_t) {}
FCCL_DEVICE void start_later_kernels() {}

// Nothing to do ahead here: see the CPU's.
FCCL_DEVICE void fetch_to_read(const char*) {}
FCCL_DEVICE void fetch_to_write(char*) {}

}  // namespace fccl::FCCL_TARGET
