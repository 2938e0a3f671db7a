// The control block at the start of each rank's window, and the failure record in its host memory.
// Shared by host and device on every target; offsets are part of the wire format between ranks of
// one communicator (same build), so they are asserted.
//
// Who writes what:
//   line: own blocks only, each adds its part of one exchange (Exchange::begin). A failure poisons
//   it.
//
//   status: own kernels, and the kernels and health threads of PEERS; nonzero = this communicator
//   failed.
//
//   limit_ns: own host (fcclCommSetTimeout); read in slow paths only.
//
//   doorbell: CPU ranks; the owner counts its sleepers, peers that have stored and see any count it
//   up and wake them.
//
//   headers: peers, or on CPU ranks the owner; one per generation and sender, never re-armed (an
//   older epoch = absent).
//
//   pads: peers, or on CPU ranks the owner (flags.h); epochs, monotone, never consumed.
//
//   roll_call: all CPU ranks, in the window of rank 0 (roll_call.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "device/layout/limits.h"

namespace fccl {

constexpr int kGenerations = 3;  // Lamport and LL regions
constexpr int kStagingGenerations = 2;  // flag staging, by parity of the epoch
constexpr int kMaxTiles = 256;  // signal pads of one hop and sender
constexpr int kHops = 2;

// The control line is one word: the number of the next exchange (from 1; 47 bits are nine years of
// one every two microseconds), and below it what its blocks have added so far. Bit 63: poisoned.
constexpr int kBlockBits = 16;
constexpr uint64_t kPoisonedLine = uint64_t{1} << 63;
FCCL_HOST_DEVICE constexpr uint64_t line_of(uint64_t epoch) {
  return epoch << kBlockBits;
}
FCCL_HOST_DEVICE constexpr bool is_poisoned(uint64_t line) {
  return (line & kPoisonedLine) != 0;
}
FCCL_HOST_DEVICE constexpr uint64_t epoch_of(uint64_t line) {
  return (line & ~kPoisonedLine) >> kBlockBits;
}
// epoch % 3, of all its bits: 2^16 = 1 modulo 3, so the sum of its digits does.
FCCL_HOST_DEVICE constexpr uint32_t generation_of(uint64_t epoch) {
  const auto low = static_cast<uint32_t>(epoch);
  return ((low & 0xFFFFu) + (low >> 16) + static_cast<uint32_t>(epoch >> 32)) % kGenerations;
}

struct alignas(16) CallHeader {
  uint64_t number;  // the epoch, and in bits 48..63 a hash of the call's options
  uint32_t hash;  // op, hidden, type, algorithm, in bits that can be read back
  uint32_t tokens;  // rows of this launch
};
constexpr int kEpochBits = 48;
FCCL_HOST_DEVICE constexpr uint64_t header_number(uint64_t epoch, uint32_t options) {
  return epoch | static_cast<uint64_t>(options) << kEpochBits;
}
FCCL_HOST_DEVICE constexpr uint64_t epoch_in(const CallHeader& header) {
  return header.number & ((uint64_t{1} << kEpochBits) - 1);
}
FCCL_HOST_DEVICE constexpr uint32_t options_in(const CallHeader& header) {
  return static_cast<uint32_t>(header.number >> kEpochBits);
}

struct Doorbell {
  uint32_t count;
  uint32_t sleepers;
};

struct RollCallWords {
  uint64_t arrived;
  alignas(128) uint64_t made;
  uint32_t scale_bits;  // of the row's norm
};

struct alignas(128) Control {
  uint64_t line;
  alignas(128) uint32_t status;
  uint32_t unused;
  uint64_t limit_ns;
  alignas(128) Doorbell doorbell;
  alignas(128) CallHeader headers[kGenerations][kMaxRanks];
  alignas(128) uint64_t pads[kHops][kMaxRanks][kMaxTiles];
  alignas(128) RollCallWords roll_call;
};
static_assert(sizeof(CallHeader) == 16);
static_assert(offsetof(Control, status) == 128 && offsetof(Control, doorbell) == 256 &&
              offsetof(Control, headers) == 384);

// What a status word or the record says happened.
enum class Failure : uint32_t {
  None = 0,
  Timeout = 1,
  Aborted = 2,
  Peer = 3,
  Mismatch = 4,
  Overlap = 5,
  Died = 6,
  Left = 7
};

// A status word: failure kind in bits 0..7, in bits 8..15 the rank that died, else the rank that
// saw it first; bit 31 set.
FCCL_HOST_DEVICE constexpr uint32_t status_word(Failure failure, int rank) {
  return 0x80000000u | (static_cast<uint32_t>(rank) << 8) | static_cast<uint32_t>(failure);
}
// Ranks that said good-bye, a bit each in bits 8..23. Ends only waits for a rank that left before
// this exchange: whoever left later has stored all that it owed.
FCCL_HOST_DEVICE constexpr uint32_t left_word(uint32_t mask) {
  return 0x80000000u | ((mask & 0xFFFFu) << 8) | static_cast<uint32_t>(Failure::Left);
}
FCCL_HOST_DEVICE constexpr bool has_left(uint32_t word, int rank) {
  return (word & 0xFFu) == static_cast<uint32_t>(Failure::Left) && ((word >> (8 + rank)) & 1u) != 0;
}
FCCL_HOST_DEVICE constexpr Failure failure_of(uint32_t status) {
  return static_cast<Failure>(status & 0xFFu);
}
FCCL_HOST_DEVICE constexpr int rank_of(uint32_t status) {
  return static_cast<int>((status >> 8) & 0xFFu);
}

// Written once by the winner of a compare-and-swap on `claimed`, in host memory.
struct FailureRecord {
  uint32_t claimed;
  uint32_t complete;  // 1 after the fields below are written
  uint32_t failure;  // Failure
  int32_t peer;  // whom it waited for
  uint64_t epoch;  // of this exchange
  uint64_t seen;  // epoch in the peer's header of this generation
  uint64_t expected;
  uint32_t hop;
  uint32_t row;
  uint32_t seen_hash;
  uint32_t expected_hash;
  uint32_t seen_tokens;
  uint32_t expected_tokens;
  uint32_t seen_options;
  uint32_t expected_options;
};

}  // namespace fccl
