// The fused CPU kernels of every level, ranks as threads over plain windows: all pairs of the
// factors that could matter, bit for bit against the scalar reference on every rank after every
// launch, and the reference itself against float64. The launches of a group run back to back with
// no barrier, so ranks drift as far as the protocol lets them.
#include <map>

#include "harness/catch.h"
#include "harness/generator.h"
#include "harness/kernel_case.h"
#include "harness/pairs.h"

namespace fccl::test {
namespace {

// The last one: two-shot rows whose row the last rank to arrive owns.
constexpr int kPaths = 8;
const AlgoKind kAlgos[kPaths] = {AlgoKind::Oneshot,
                                 AlgoKind::Oneshot,
                                 AlgoKind::Oneshot,
                                 AlgoKind::TwoshotRows,
                                 AlgoKind::TwoshotRows,
                                 AlgoKind::TwoshotCols,
                                 AlgoKind::TwoshotCols,
                                 AlgoKind::TwoshotRows};
const ProtocolKind kProtocols[kPaths] = {ProtocolKind::Lamport,
                                         ProtocolKind::Flags,
                                         ProtocolKind::LL,
                                         ProtocolKind::Lamport,
                                         ProtocolKind::Flags,
                                         ProtocolKind::Lamport,
                                         ProtocolKind::Flags,
                                         ProtocolKind::Flags};
const int kRanks[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 16};
const int kHidden[] = {1, 7, 63, 65, 1000, 2880, 4096, 5120, 7168, 8191, 16384};
const int kTokens[] = {1, 3, 5, 17};
const int kTileRows[] = {1, 2, 7, 64};

enum Factor {
  kAlgo,
  kType,
  kRank,
  kHid,
  kTok,
  kLevel,
  kPlain,
  kTile,
  kBlocks,
  kChunk,
  kResidual,
  kSum,
  kSharded,
  kWeight,
  kOffset,
  kUnfused,
  kBias,
  kShareOut,
  kShareNorm,
  kPlace,
  kEps,
  kChecked,
  kChaos,
  kFactors
};

std::vector<int> factor_sizes() {
  std::vector<int> sizes(kFactors, 2);
  sizes[kAlgo] = kPaths;
  sizes[kType] = 3;
  sizes[kRank] = 10;
  sizes[kHid] = 11;
  sizes[kTok] = 4;
  sizes[kLevel] = static_cast<int>(kernel_levels().size());
  sizes[kTile] = 4;
  sizes[kBlocks] = 3;
  sizes[kResidual] = 4;
  sizes[kBias] = 3;
  sizes[kShareOut] = 3;
  sizes[kShareNorm] = 3;
  sizes[kPlace] = 4;
  return sizes;
}

KernelCase case_of(const FactorRow& row) {
  const auto at = [&row](Factor f) { return row[static_cast<size_t>(f)]; };
  static const Placement placements[] = {{0, 0}, {0, 64}, {1, 0}, {3, 5}};
  KernelCase c;
  c.id = {OpKind::FusedNorm,
          kAlgos[at(kAlgo)],
          kProtocols[at(kAlgo)],
          static_cast<TypeKind>(at(kType)),
          at(kPlain) == 1};
  c.level = kernel_levels()[static_cast<size_t>(at(kLevel))];
  c.ranks = kRanks[at(kRank)];
  c.tokens = kTokens[at(kTok)];
  c.hidden = kHidden[at(kHid)];
  c.tile_rows = kTileRows[at(kTile)];
  c.blocks = 1 + at(kBlocks);
  c.chunk_rows = at(kChunk) == 0 ? 0 : 2;
  c.residual = (at(kResidual) & 1) == 0;
  c.residual_out = (at(kResidual) & 2) == 0;
  c.allreduce_out = at(kSum) == 1;
  c.sharded = at(kSharded) == 1;
  c.last_reduces = at(kAlgo) == kPaths - 1;
  c.weight = at(kWeight) == 1 ? VectorType::Float32 : VectorType::Tensor;
  c.weight_plus_one = at(kOffset) == 1;
  c.as_unfused = at(kUnfused) == 1;
  c.bias = static_cast<VectorType>(at(kBias));
  c.residual_out_in = static_cast<Share>(at(kShareOut));
  c.norm_out_in = static_cast<Share>(at(kShareNorm));
  c.placement = placements[at(kPlace)];
  c.eps = at(kEps) == 0 ? 1e-6f : 0.0f;
  c.checked = at(kChecked) == 1;
  c.chaos = at(kChaos) == 0 ? 0 : 1;
  return c;
}

// Keeps a test at seconds: the large rows with many ranks run elsewhere, a few at a time.
// Sanitizers are a hundred times slower and look for other things than sizes.
bool is_small_enough(const KernelCase& c) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int64_t kMost = 8192 * 4;
#else
  constexpr int64_t kMost = 17 * 8192 * 4;
#endif
  return c.tokens * c.hidden * c.ranks <= kMost;
}

// Runs the cases, all of one rank count, in one world, back to back.
void run_group(const std::vector<KernelCase>& cases, uint64_t start_epoch = 1) {
  KernelWorld::Options options;
  options.ranks = cases[0].ranks;
  options.start_epoch = start_epoch;
  options.slot_bytes = 0;
  std::vector<KernelProblem> problems;
  uint64_t exchanges = 0;
  for (const KernelCase& c : cases) {
    options.slot_bytes = std::max(options.slot_bytes, slot_bytes(c));
    problems.push_back(make_problem(c));
    exchanges += exchanges_of(c);
    INFO(c.text());
    CHECK(outside_float64_bounds(problems.back().inputs, problems.back().expected) == "");
  }
  KernelWorld world(options);
  CHECK(world.run([&](int rank) -> std::string {
    for (size_t i = 0; i < cases.size(); ++i) {
      std::string error = run_case(world, rank, cases[i], problems[i]);
      if (!error.empty()) return error;
    }
    return "";
  }) == "");
  CHECK(world.not_at_rest(exchanges) == "");
}

void run_in_groups(const std::vector<KernelCase>& cases, size_t group_size) {
  std::map<int, std::vector<KernelCase>> by_ranks;
  for (const KernelCase& c : cases) {
    std::vector<KernelCase>& group = by_ranks[c.ranks];
    group.push_back(c);
    if (group.size() < group_size) continue;
    run_group(group);
    group.clear();
  }
  for (const auto& [ranks, group] : by_ranks)
    if (!group.empty()) run_group(group);
}

void set_tokens(KernelCase& c, int64_t tokens) {
  c.tokens = c.last_reduces ? 1 : tokens;
}

KernelCase small_case(uint64_t path, int ranks) {
  KernelCase c;
  c.id = {OpKind::FusedNorm, kAlgos[path], kProtocols[path], TypeKind::BF16, false};
  c.last_reduces = path == kPaths - 1;
  c.level = kernel_levels().back();
  c.ranks = ranks;
  set_tokens(c, 3);
  c.hidden = 96;
  return c;
}

}  // namespace

TEST_CASE("kernels: every pair of factor values gives the reference's bits") {
  const auto rows = all_pairs(factor_sizes(), 7, [](const FactorRow& row) {
    const KernelCase c = case_of(row);
    return is_possible(c) && is_small_enough(c);
  });
  REQUIRE(rows.size() > 100);
  std::vector<KernelCase> cases;
  for (const FactorRow& row : rows) {
    cases.push_back(case_of(row));
    cases.back().launch = cases.size() % kInputPeriod;
    if (cases.back().chaos != 0) cases.back().chaos = static_cast<uint32_t>(cases.size());
  }
  run_in_groups(cases, 8);
}

TEST_CASE("kernels: each algorithm, type and rank count at hidden 16384", "[slow]") {
  std::vector<KernelCase> cases;
  for (uint64_t path = 0; path < kPaths; ++path) {
    for (const TypeKind type : {TypeKind::F32, TypeKind::F16, TypeKind::BF16}) {
      for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) {
        KernelCase c = small_case(path, ranks);
        c.id.type = type;
        c.id.plain = cases.size() % 2 == 0;
        c.level = kernel_levels()[cases.size() % kernel_levels().size()];
        c.hidden = 16384;
        set_tokens(c, 1 + static_cast<int64_t>(cases.size() % 3));
        c.launch = cases.size();
        cases.push_back(c);
      }
    }
  }
  run_in_groups(cases, 7);
}

TEST_CASE("kernels: many tokens in chunks, tiles and blocks", "[slow]") {
  std::vector<KernelCase> cases;
  for (uint64_t path = 0; path < kPaths - 1; ++path) {
    KernelCase c = small_case(path, 2 + static_cast<int>(path % 3));
    c.tokens = 1000;
    c.hidden = 65;
    c.tile_rows = 8;
    c.blocks = 2;
    c.chunk_rows = path % 2 == 0 ? 0 : 300;
    c.launch = path;
    cases.push_back(c);
  }
  run_in_groups(cases, 3);
}

TEST_CASE("kernels: mixed algorithms and shapes follow each other on one window") {
  for (const int ranks : {2, 4, 7}) {
    std::vector<KernelCase> cases;
    for (uint64_t i = 0; i < 60; ++i) {
      KernelCase c = small_case(mix(i, static_cast<uint64_t>(ranks)) % kPaths, ranks);
      set_tokens(c, 1 + static_cast<int64_t>(mix(i, 1) % 9));
      c.hidden = 1 + static_cast<int64_t>(mix(i, 2) % 300);
      c.tile_rows = 1 + static_cast<int>(mix(i, 3) % 4);
      c.blocks = 1 + static_cast<int>(mix(i, 4) % 3);
      c.launch = i;
      cases.push_back(c);
    }
    run_group(cases);
  }
}

TEST_CASE("kernels: call counters pass 2^31 and 2^32") {
  // Each algorithm in turn makes the exchange whose number is 2^31 or 2^32, over and over: what is
  // wrong with that one alone shows in a race.
  for (const uint64_t wrap : {1ull << 31, 1ull << 32}) {
    for (uint64_t before = 0; before < 3 * kPaths; ++before) {
      std::vector<KernelCase> cases;
      for (uint64_t i = 0; i < before % kPaths + kPaths; ++i) {
        cases.push_back(small_case(i % kPaths, 3));
        cases.back().launch = i;
        cases.back().chaos = static_cast<uint32_t>(before * kPaths + i + 1) * 104729u;
      }
      run_group(cases, wrap - before % kPaths);
    }
  }
  // Mailboxes alone, in one tile: whoever is ahead pushes all of the next exchange while a rank
  // that is behind reads this one, and a generation that comes twice shows.
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::vector<KernelCase> cases;
    for (uint64_t i = 0; i < 6; ++i) {
      KernelCase c = small_case(0, 2 + static_cast<int>(seed % 3));
      set_tokens(c, 8);
      c.tile_rows = 8;
      c.launch = i;
      c.chaos = seed * 104729u + static_cast<uint32_t>(i);
      cases.push_back(c);
    }
    run_group(cases, (1ull << 32) - 3);
  }
}

TEST_CASE("kernels: chaos seeds") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::vector<KernelCase> cases;
    for (uint64_t i = 0; i < 2 * kPaths; ++i) {
      KernelCase c = small_case((i + seed) % kPaths, 2 + static_cast<int>(seed % 4));
      c.tile_rows = 1 + static_cast<int>(seed % 2);
      c.blocks = 1 + static_cast<int>(seed % 3);
      c.launch = i;
      c.chaos = seed * 104729u + 1;
      cases.push_back(c);
    }
    INFO("seed " << seed);
    run_group(cases);
  }
}

TEST_CASE("kernels: negative zero, NaN words and subnormals survive every path alike") {
  for (uint64_t path = 0; path < kPaths; ++path) {
    for (const TypeKind type : {TypeKind::F32, TypeKind::F16, TypeKind::BF16}) {
      std::vector<KernelCase> cases;
      for (const KernelLevel& level : kernel_levels()) {
        KernelCase c = small_case(path, 4);
        c.id.type = type;
        c.level = level;
        set_tokens(c, kNatures * 2);  // every nature of row
        c.hidden = 520;
        c.allreduce_out = c.id.algo == AlgoKind::Oneshot;
        cases.push_back(c);
      }
      run_group(cases);
    }
  }
}

}  // namespace fccl::test
