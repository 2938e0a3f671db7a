// The map of a rank's window: control block, Lamport generations, LL lines, flag staging. Every
// rank of a communicator has the same map; nothing in it depends on the shape of a call (a base
// that did would let two exchanges of different shape meet in one slot).
//
//   one-shot: from rank f in [f * G/ranks, (f+1) * G/ranks) of a generation of G bytes
//   two-shot: first hop in the lower half, second hop in the upper, each split by sender
#pragma once
#include "device/layout/args.h"

namespace fccl {

constexpr uint64_t kWindowAlign = 4096;

struct Region {
  uint64_t offset = 0;  // of generation 0 in the window
  uint64_t generation = 0;  // bytes of one generation (G), a multiple of 2 * ranks * 128
};

struct WorkspaceLayout {
  Region lamport;
  Region ll;
  Region staging;
  uint64_t bytes = 0;
};

// Bytes of one tensor that one launch can move: `oneshot` by all-to-all pushes, `twoshot` by hops.
struct Capacity {
  uint64_t oneshot = 0;
  uint64_t twoshot = 0;
};

constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

inline Region make_region(uint64_t& offset, uint64_t generation, int ranks, int generations) {
  Region region;
  region.offset = offset;
  region.generation = round_up(generation, 2ull * static_cast<uint64_t>(ranks) * 128);
  offset = round_up(offset + region.generation * static_cast<uint64_t>(generations), kWindowAlign);
  return region;
}

inline WorkspaceLayout make_layout(int ranks, uint64_t lamport, uint64_t ll, uint64_t staging) {
  WorkspaceLayout layout;
  uint64_t offset = round_up(sizeof(Control), kWindowAlign);
  layout.lamport = make_region(offset, lamport, ranks, kGenerations);
  layout.ll = make_region(offset, ll, ranks, kGenerations);
  layout.staging = make_region(offset, staging, ranks, kStagingGenerations);
  layout.bytes = offset;
  return layout;
}

constexpr uint64_t kMostWindowBytes = uint64_t{16} << 32;  // kernels count packs in 32 bits

inline uint64_t hop_bytes(const Region& region, int ranks, bool two_hops) {
  return region.generation / (two_hops ? 2u : 1u) / static_cast<uint64_t>(ranks);
}

// Tells a launch where its slots are.
inline void place_slots(ExchangeArgs& ex, const Region& region, bool two_hops) {
  ex.region = region.offset;
  ex.generation = static_cast<uint32_t>(region.generation / 16);
  ex.hop_stride = two_hops ? ex.generation / 2 : 0;
  ex.from_stride = static_cast<uint32_t>(hop_bytes(region, ex.ranks, two_hops) / 16);
  if (ex.ranks != 2) return;
  const uint64_t slot = uint64_t{ex.from_stride} * 16;
  ex.to_peer = ex.window[1] + region.offset + static_cast<uint64_t>(ex.rank) * slot;
  ex.from_peer = ex.window[0] + region.offset + static_cast<uint64_t>(1 - ex.rank) * slot;
}

}  // namespace fccl
