// The sum of squares is a perfect binary tree over the ELEMENT index of a row, low bits first,
// padded with +0 to P = 2^ceil(log2 hidden). A row may be split between blocks or ranks only at
// units of P/64 elements, not below one pack; splits exchange the vector of unit sums (at most 64
// floats) and everybody finishes the tree, so no split changes a bit.
#pragma once
#include <cstdint>

#include "device/layout/limits.h"

namespace fccl {

constexpr int kMaxUnits = 64;

struct Units {
  int packs_per_unit;
  int count;  // of units that hold elements
};

FCCL_HOST_DEVICE constexpr int log2_ceil(int value) {
  int log = 0;
  while ((int64_t{1} << log) < value) ++log;
  return log;
}

// `packs` of `elements` each hold one row of `hidden` elements.
FCCL_HOST_DEVICE constexpr Units units_of_row(int hidden, int packs, int elements) {
  const int64_t padded = int64_t{1} << log2_ceil(hidden);
  const int64_t unit = padded / kMaxUnits;
  const int per_unit = unit <= elements ? 1 : static_cast<int>(unit / elements);
  return {per_unit, (packs + per_unit - 1) / per_unit};
}

// Contiguous shares: floor each, the remainder one each to the lowest ranks (fcclRowRange's rule).
struct Share {
  int first;
  int count;
};
FCCL_HOST_DEVICE constexpr Share share_of(int total, int ranks, int rank) {
  const int base = total / ranks;
  const int extra = total % ranks;
  return {rank * base + (rank < extra ? rank : extra), base + (rank < extra ? 1 : 0)};
}

// The rank whose share holds item `index`.
FCCL_HOST_DEVICE constexpr int owner_of_share(int index, int total, int ranks) {
  const int base = total / ranks;
  const int extra = total % ranks;
  const int large = extra * (base + 1);
  return index < large ? index / (base + 1) : extra + (index - large) / (base > 0 ? base : 1);
}

// Packs that one row takes in a sender's slot when columns are owned: the owner's packs, and in the
// second hop its unit sums behind them, four to a pack.
struct ColumnSlots {
  int packs;
  int sum_packs;
};
FCCL_HOST_DEVICE constexpr ColumnSlots column_slots(const Units& units, int ranks) {
  const int most = (units.count + ranks - 1) / ranks;
  return {most * units.packs_per_unit, (most + 3) / 4};
}

}  // namespace fccl
