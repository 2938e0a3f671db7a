// Where rows are cut: shares, units and column slots as arithmetic, and the map of a window.
#include <vector>

#include "device/layout/workspace.h"
#include "device/types/units.h"
#include "harness/catch.h"
#include "harness/number.h"
#include "harness/reference.h"

namespace fccl::test {

TEST_CASE("units: shares cover everything once, in order, and know their owner") {
  for (int total = 0; total <= 70; ++total) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      int next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Share share = share_of(total, ranks, rank);
        REQUIRE(share.first == next);
        REQUIRE(share.count >= total / ranks);
        REQUIRE(share.count <= (total + ranks - 1) / ranks);
        for (int i = 0; i < share.count; ++i)
          REQUIRE(owner_of_share(share.first + i, total, ranks) == rank);
        next += share.count;
      }
      REQUIRE(next == total);
    }
  }
}

// A unit must be a whole subtree of the row's tree: its size in elements a power of two.
TEST_CASE("units: every unit is a subtree of the row's tree") {
  for (const int elements : {4, 8}) {
    for (int hidden = 1; hidden <= 20000; hidden += 1 + hidden / 7) {
      const int packs = (hidden + elements - 1) / elements;
      const Units units = units_of_row(hidden, packs, elements);
      const int size = units.packs_per_unit * elements;
      INFO("hidden " << hidden << " elements " << elements);
      CHECK((size & (size - 1)) == 0);
      CHECK(units.count >= 1);
      CHECK(units.count <= kMaxUnits);
      CHECK((units.count - 1) * units.packs_per_unit < packs);
      CHECK(units.count * units.packs_per_unit >= packs);
    }
  }
}

TEST_CASE("units: the tree over unit sums is the tree over the row") {
  for (int hidden : {1, 2, 7, 63, 65, 100, 1000, 2880, 5120, 8191}) {
    std::vector<float> x;
    for (int i = 0; i < hidden; ++i)
      x.push_back(static_cast<float>(
          unit_interval(mix(static_cast<uint64_t>(i), static_cast<uint64_t>(hidden))) - 0.5));
    const Units units = units_of_row(hidden, (hidden + 7) / 8, 8);
    const size_t size = static_cast<size_t>(units.packs_per_unit) * 8;
    std::vector<float> sums;
    for (size_t first = 0; first < x.size(); first += size) {
      std::vector<float> part(
          x.begin() + static_cast<std::ptrdiff_t>(first),
          x.begin() + static_cast<std::ptrdiff_t>(std::min(first + size, x.size())));
      part.resize(size, 0.0f);
      sums.push_back(tree_of_squares(part));
    }
    while (sums.size() > 1) {
      if (sums.size() % 2 != 0) sums.push_back(0.0f);
      for (size_t i = 0; i < sums.size() / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
      sums.resize(sums.size() / 2);
    }
    CHECK(sums[0] == tree_of_squares(x));
  }
}

TEST_CASE("units: column slots hold any owner's packs and unit sums") {
  for (int ranks = 1; ranks <= 16; ++ranks) {
    for (const int hidden : {1, 7, 65, 1000, 5120, 16384}) {
      const int packs = (hidden + 7) / 8;
      const Units units = units_of_row(hidden, packs, 8);
      const ColumnSlots slots = column_slots(units, ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        const Share share = share_of(units.count, ranks, rank);
        CHECK(share.count * units.packs_per_unit <= slots.packs);
        CHECK(share.count <= 4 * slots.sum_packs);
      }
    }
  }
}

TEST_CASE(
    "window: regions are apart, aligned, and every sender's slot lies inside its generation") {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const uint64_t bytes : {1ull, 4096ull, 1000003ull, 1ull << 32}) {
      const WorkspaceLayout layout = make_layout(ranks, bytes, bytes / 2 + 1, bytes);
      const Region* regions[] = {&layout.lamport, &layout.ll, &layout.staging};
      uint64_t end = sizeof(Control);
      for (int i = 0; i < 3; ++i) {
        const int generations = i == 2 ? kStagingGenerations : kGenerations;
        CHECK(regions[i]->offset >= end);
        CHECK(regions[i]->offset % kWindowAlign == 0);
        end = regions[i]->offset + regions[i]->generation * static_cast<uint64_t>(generations);
        for (const bool two_hops : {false, true}) {
          const uint64_t slot = hop_bytes(*regions[i], ranks, two_hops);
          CHECK(slot % 128 == 0);
          CHECK(slot * static_cast<uint64_t>(ranks) * (two_hops ? 2 : 1) <= regions[i]->generation);
        }
      }
      CHECK(layout.bytes >= end);
      CHECK(layout.lamport.generation >= bytes);
    }
  }
}

}  // namespace fccl::test
