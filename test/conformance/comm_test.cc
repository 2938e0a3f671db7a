// The fused call through the C ABI: all pairs of what a caller may choose, over ranks as threads
// and as processes, every algorithm forced in turn and the automatic choice; bit for bit after
// every call.
#include "harness/catch.h"
#include "harness/comm_case.h"
#include "harness/generator.h"
#include "harness/pairs.h"
#include "harness/rank_process.h"

namespace fccl::test {
namespace {

struct Algorithm {
  const char* name;
  AlgoKind algo;
  ProtocolKind protocol;
};
const Algorithm kAlgorithms[] = {
    {"oneshot_lamport", AlgoKind::Oneshot, ProtocolKind::Lamport},
    {"oneshot_flags", AlgoKind::Oneshot, ProtocolKind::Flags},
    {"oneshot_ll", AlgoKind::Oneshot, ProtocolKind::LL},
    {"twoshot_rows_lamport", AlgoKind::TwoshotRows, ProtocolKind::Lamport},
    {"twoshot_rows", AlgoKind::TwoshotRows, ProtocolKind::Flags},
    {"twoshot_cols_lamport", AlgoKind::TwoshotCols, ProtocolKind::Lamport},
    {"twoshot_cols", AlgoKind::TwoshotCols, ProtocolKind::Flags}};
constexpr int kAlgorithmCount = 7;
const int kHidden[] = {1, 7, 63, 65, 1000, 2880, 4096, 5120, 7168, 8191, 16384};
const int kTokens[] = {0, 1, 3, 17};
const Placement kPlacements[] = {{0, 0}, {0, 64}, {1, 0}, {3, 5}};

enum Factor {
  kAlgo,
  kType,
  kRanks,
  kHid,
  kTok,
  kResidual,
  kSum,
  kSharded,
  kWeight,
  kOffset,
  kUnfused,
  kBias,
  kShareOut,
  kShareNorm,
  kShareSum,
  kPlace,
  kEps,
  kFactors
};

std::vector<int> factor_sizes() {
  std::vector<int> sizes(kFactors, 2);
  sizes[kAlgo] = kAlgorithmCount;
  sizes[kType] = 3;
  sizes[kRanks] = 8;
  sizes[kHid] = 11;
  sizes[kTok] = 4;
  sizes[kResidual] = 4;
  sizes[kBias] = 3;
  sizes[kShareOut] = sizes[kShareNorm] = sizes[kShareSum] = 3;
  sizes[kPlace] = 4;
  return sizes;
}

KernelCase case_of(const FactorRow& row) {
  const auto at = [&row](Factor f) { return row[static_cast<size_t>(f)]; };
  const Algorithm& algorithm = kAlgorithms[at(kAlgo)];
  KernelCase c;
  c.id = {OpKind::FusedNorm,
          algorithm.algo,
          algorithm.protocol,
          static_cast<TypeKind>(at(kType)),
          false};
  c.level = kernel_levels().back();
  c.ranks = 1 + at(kRanks);
  c.tokens = kTokens[at(kTok)];
  c.hidden = kHidden[at(kHid)];
  c.residual = (at(kResidual) & 1) == 0;
  c.residual_out = (at(kResidual) & 2) == 0;
  c.allreduce_out = at(kSum) == 1;
  c.sharded = at(kSharded) == 1;
  c.weight = at(kWeight) == 1 ? VectorType::Float32 : VectorType::Tensor;
  c.weight_plus_one = at(kOffset) == 1;
  c.as_unfused = at(kUnfused) == 1;
  c.bias = static_cast<VectorType>(at(kBias));
  c.residual_out_in = static_cast<Share>(at(kShareOut));
  c.norm_out_in = static_cast<Share>(at(kShareNorm));
  c.allreduce_out_in = static_cast<Share>(at(kShareSum));
  c.placement = kPlacements[at(kPlace)];
  c.eps = at(kEps) == 0 ? 1e-6f : 0.0f;
  return c;
}

bool is_small_enough(const KernelCase& c) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int64_t kMost = 8192 * 2;
#else
  constexpr int64_t kMost = 17 * 8192 * 2;
#endif
  return c.tokens * c.hidden * c.ranks <= kMost;
}

// A sharded call needs its residual.
bool is_callable(const KernelCase& c) {
  return is_possible(c) && (!c.sharded || c.residual) && is_small_enough(c);
}

// All cases for one communicator: this algorithm, this number of ranks. The same in every process.
std::vector<KernelCase> cases_for(int algorithm, int ranks) {
  static const std::vector<FactorRow> rows =
      all_pairs(factor_sizes(), 11, [](const FactorRow& row) { return is_callable(case_of(row)); });
  std::vector<KernelCase> cases;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i][kAlgo] != algorithm || rows[i][kRanks] != ranks - 1) continue;
    cases.push_back(case_of(rows[i]));
    cases.back().launch = i;
  }
  return cases;
}

std::string call_all(fcclComm_t comm, int rank, const std::vector<KernelCase>& cases,
                     const std::vector<KernelProblem>& problems) {
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string error = call_case(comm, rank, cases[i], problems[i]);
    if (!error.empty()) return error;
  }
  return "";
}

std::vector<KernelProblem> problems_of(const std::vector<KernelCase>& cases) {
  std::vector<KernelProblem> problems;
  for (const KernelCase& c : cases) problems.push_back(make_problem(c));
  return problems;
}

const Scenario pairs_scenario("fused pairs", [](ProcessRank& self) -> std::string {
  fcclComm_t comm = nullptr;
  FCCL_EXPECT_OK(self.init(&comm), nullptr);
  const auto cases = cases_for(std::stoi(self.parameter()), self.ranks());
  const std::string error = call_all(comm, self.rank(), cases, problems_of(cases));
  FCCL_EXPECT_OK(fcclCommDestroy(comm), nullptr);
  return error;
});

Variables forced(int algorithm) {
  return {{"FCCL_ALGO", kAlgorithms[algorithm].name}};
}

}  // namespace

TEST_CASE("fused call: pairs of factors on ranks as threads") {
  size_t total = 0;
  for (int algorithm = 0; algorithm < kAlgorithmCount; ++algorithm) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const auto cases = cases_for(algorithm, ranks);
      const auto problems = problems_of(cases);
      total += cases.size();
      for (size_t i = 0; i < cases.size(); ++i) {
        INFO(cases[i].text());
        CHECK(outside_float64_bounds(problems[i].inputs, problems[i].expected) == "");
      }
      CHECK(as_threads(ranks_of(ranks, forced(algorithm)), [&](fcclComm_t comm, int rank) {
              return call_all(comm, rank, cases, problems);
            }) == "");
    }
  }
  CHECK(total > 100);
}

TEST_CASE("fused call: pairs of factors on ranks as processes") {
  for (int algorithm = 0; algorithm < kAlgorithmCount; ++algorithm)
    for (const int ranks : {2, 3, 5, 8})
      CHECK(as_processes("fused pairs",
                         ranks_of(ranks, forced(algorithm)),
                         std::to_string(algorithm)) == "");
}

TEST_CASE("fused call: the automatic choice with sizes in any order") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    std::vector<KernelCase> cases;
    for (int algorithm = 0; algorithm < kAlgorithmCount; ++algorithm)
      for (KernelCase c : cases_for(algorithm, ranks)) cases.push_back(c);
    std::sort(cases.begin(), cases.end(), [](const KernelCase& a, const KernelCase& b) {
      return mix(a.launch) < mix(b.launch);
    });
    const auto problems = problems_of(cases);
    CHECK(as_threads(ranks_of(ranks), [&](fcclComm_t comm, int rank) {
            return call_all(comm, rank, cases, problems);
          }) == "");
  }
}

TEST_CASE("fused call: chaos seeds over the C ABI") {
  for (int seed = 1; seed <= 20; ++seed) {
    const int ranks = 2 + seed % 4;
    const int algorithm = seed % kAlgorithmCount;
    std::vector<KernelCase> cases;
    for (uint64_t i = 0; i < 12; ++i) {
      KernelCase c;
      c.id = {OpKind::FusedNorm,
              kAlgorithms[algorithm].algo,
              kAlgorithms[algorithm].protocol,
              TypeKind::BF16,
              false};
      c.ranks = ranks;
      c.tokens = static_cast<int64_t>(mix(i, static_cast<uint64_t>(seed)) % 8);
      c.hidden = 1 + static_cast<int64_t>(mix(i, 2) % 200);
      c.launch = i;
      cases.push_back(c);
    }
    const auto problems = problems_of(cases);
    INFO("seed " << seed);
    Variables variables = forced(algorithm);
    variables.emplace_back("FCCL_TEST_CHAOS", std::to_string(seed));
    variables.emplace_back("FCCL_CHECK", seed % 2 == 0 ? "1" : "0");
    CHECK(as_threads(ranks_of(ranks, variables), [&](fcclComm_t comm, int rank) {
            return call_all(comm, rank, cases, problems);
          }) == "");
  }
}

TEST_CASE("fused call: 1000 tokens chunked over a small workspace", "[slow]") {
  for (int algorithm = 0; algorithm < kAlgorithmCount; ++algorithm) {
    KernelCase c;
    c.id = {OpKind::FusedNorm,
            kAlgorithms[algorithm].algo,
            kAlgorithms[algorithm].protocol,
            TypeKind::F16,
            false};
    c.ranks = 2 + algorithm % 3;
    c.tokens = 1000;
    c.hidden = 200;
    c.launch = static_cast<uint64_t>(algorithm);
    const std::vector<KernelCase> cases(3, c);
    const auto problems = problems_of(cases);
    Variables variables = forced(algorithm);
    variables.emplace_back("FCCL_WORKSPACE_BYTES", "64K");
    CHECK(as_threads(ranks_of(c.ranks, variables), [&](fcclComm_t comm, int rank) -> std::string {
            std::string error = call_all(comm, rank, cases, problems);
            fcclCommStats stats = FCCL_COMM_STATS_INITIALIZER;
            FCCL_EXPECT_OK(fcclCommGetStats(comm, &stats), comm);
            return error.empty() && stats.launches <= stats.calls ? "it was not chunked" : error;
          }) == "");
  }
}

}  // namespace fccl::test
