// The sum of squares is a perfect binary tree over the ELEMENT index of a row, low bits first, padded
// with +0 to P = 2^ceil(log2 hidden). A row may be split between blocks or ranks only at units of
// P/64 elements, not below one pack; splits exchange the vector of unit sums (at most 64 floats) and
// everybody finishes the tree, so no split changes a bit.
#pragma once
#include <cstdint>

namespace fccl {

constexpr int kMaxUnits = 64;

struct Units {
  int packs_per_unit;
  int count;  // of units that hold elements
};

constexpr int log2_ceil(int value) {
  int log = 0;
  while ((int64_t{1} << log) < value) ++log;
  return log;
}

// `packs` of `elements` each hold one row of `hidden` elements.
constexpr Units units_of_row(int hidden, int packs, int elements) {
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
constexpr Share share_of(int total, int ranks, int rank) {
  const int base = total / ranks;
  const int extra = total % ranks;
  return {rank * base + (rank < extra ? rank : extra), base + (rank < extra ? 1 : 0)};
}

}  // namespace fccl
