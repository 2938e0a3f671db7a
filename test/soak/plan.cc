// See plan.h. Draws are numbered by what they decide (mix), so that a new decision moves no other.
#include "plan.h"

#include <cstdio>

#include "harness/comm_case.h"
#include "harness/generator.h"
#include "harness/kernel_levels.h"

namespace fccl::test {
namespace {

struct Algorithm {
  const char* name;  // null: the automatic choice
  AlgoKind algo;
  ProtocolKind protocol;
};
const Algorithm kAlgorithms[] = {
    {nullptr, AlgoKind::Oneshot, ProtocolKind::Lamport},
    {nullptr, AlgoKind::TwoshotRows, ProtocolKind::Flags},
    {nullptr, AlgoKind::TwoshotCols, ProtocolKind::Flags},
    {"oneshot_lamport", AlgoKind::Oneshot, ProtocolKind::Lamport},
    {"oneshot_flags", AlgoKind::Oneshot, ProtocolKind::Flags},
    {"oneshot_ll", AlgoKind::Oneshot, ProtocolKind::LL},
    {"twoshot_rows_lamport", AlgoKind::TwoshotRows, ProtocolKind::Lamport},
    {"twoshot_rows", AlgoKind::TwoshotRows, ProtocolKind::Flags},
    {"twoshot_cols_lamport", AlgoKind::TwoshotCols, ProtocolKind::Lamport},
    {"twoshot_cols", AlgoKind::TwoshotCols, ProtocolKind::Flags}};
constexpr uint64_t kAlgorithmCount = 10;
constexpr int64_t kSmallWorkspaceHidden =
    512;  // a row of any type fits into 16 KiB, all packs padded

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int64_t kMostElements = 4096;  // of all ranks' inputs of a call
constexpr uint64_t kMostCalls = 8;
#else
constexpr int64_t kMostElements = 65536;
constexpr uint64_t kMostCalls = 16;
#endif

// Draws of one round.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t round) : key_(mix(seed, round, 0x50AC)) {}
  Draws of(uint64_t part) const { return Draws(mix(key_, part)); }
  uint64_t below(uint64_t what, uint64_t limit) const { return mix(key_, what, 1) % limit; }
  template <class T, size_t N>
  T one_of(uint64_t what, const T (&values)[N]) const {
    return values[below(what, N)];
  }
  uint64_t key() const { return key_; }

 private:
  explicit Draws(uint64_t key) : key_(key) {}
  uint64_t key_;
};

KernelCase draw_fused(const Draws& d, const Algorithm& algorithm, int ranks, bool is_small) {
  const int64_t hidden[] = {1, 7, 64, 65, 200, 512, 1000, 2880, 4096};
  const int64_t tokens[] = {0, 1, 1, 2, 3, 5, 8, 17, 40};
  const Placement placements[] = {{0, 0}, {0, 64}, {1, 0}, {3, 5}};
  KernelCase c;
  c.id = {OpKind::FusedNorm,
          algorithm.algo,
          algorithm.protocol,
          static_cast<TypeKind>(d.below(1, 3)),
          false};
  c.level = kernel_levels().back();
  c.ranks = ranks;
  c.hidden = d.one_of(2, hidden);
  c.tokens = d.one_of(3, tokens);
  if (is_small && c.hidden > kSmallWorkspaceHidden) c.hidden = kSmallWorkspaceHidden;
  const int64_t most = kMostElements / (c.hidden * ranks);
  if (c.tokens > most) c.tokens = most > 0 ? most : 1;
  c.launch = d.key() % kInputPeriod;
  c.residual = d.below(4, 4) != 0;
  c.residual_out = d.below(5, 4) != 0;
  c.weight_plus_one = d.below(6, 4) == 0;
  c.as_unfused = d.below(7, 4) == 0;
  c.weight = d.below(8, 3) == 0 ? VectorType::Float32 : VectorType::Tensor;
  c.bias = static_cast<VectorType>(d.below(9, 3));
  c.placement = d.one_of(10, placements);
  c.eps = d.below(11, 4) == 0 ? 0.0f : 1e-6f;
  // What not every algorithm serves, or not every buffer allows, if it goes here.
  KernelCase more = c;
  more.allreduce_out = algorithm.name == nullptr ? false : d.below(12, 3) == 0;
  more.sharded = d.below(13, 3) == 0 && more.residual;
  more.residual_out_in = static_cast<Share>(d.below(14, 3));
  more.norm_out_in = static_cast<Share>(d.below(15, 3));
  more.allreduce_out_in = static_cast<Share>(d.below(16, 3));
  return is_possible(more) ? more : c;
}

std::vector<SoakCall> draw_calls(const Draws& d, const Algorithm& algorithm, int ranks,
                                 bool is_small) {
  std::vector<SoakCall> calls(1 + d.below(1, kMostCalls));
  for (size_t i = 0; i < calls.size(); ++i) {
    const Draws own = d.of(100 + i);
    SoakCall& call = calls[i];
    call.is_plain = own.below(20, 3) == 0;
    call.launch = own.key() % kInputPeriod;
    call.collective = collective_case(own.key(), i, ranks);
    const int64_t most = kMostElements / ranks;
    if (call.collective.count > most) call.collective.count = most;
    call.fused = draw_fused(own, algorithm, ranks, is_small);
  }
  return calls;
}

CommunicatorPlan draw_communicator(const Draws& d, const Algorithm& algorithm, int ranks,
                                   bool is_small) {
  CommunicatorPlan plan;
  plan.calls = draw_calls(d.of(1), algorithm, ranks, is_small);
  plan.is_finalized = d.below(2, 2) == 0;
  if (d.below(3, 3) != 0) return plan;
  const int colors = 1 + static_cast<int>(d.below(4, 3));
  std::vector<int> members(static_cast<size_t>(colors));
  for (int rank = 0; rank < ranks; ++rank) {
    const int color =
        static_cast<int>(d.of(5).below(static_cast<uint64_t>(rank), 4)) % (colors + 1);
    plan.colors.push_back(color == colors ? -1 : color);
    if (color != colors) ++members[static_cast<size_t>(color)];
  }
  for (int color = 0; color < colors; ++color) {
    const int count = members[static_cast<size_t>(color)];
    plan.calls_of_color.push_back(
        count == 0
            ? std::vector<SoakCall>()
            : draw_calls(d.of(6 + static_cast<uint64_t>(color)), algorithm, count, is_small));
  }
  return plan;
}

void draw_environment(const Draws& d, const Algorithm& algorithm, bool is_small, Variables& to) {
  if (algorithm.name != nullptr) to.emplace_back("FCCL_ALGO", algorithm.name);
  if (is_small) to.emplace_back("FCCL_WORKSPACE_BYTES", "16K");
  if (d.below(1, 3) == 0) to.emplace_back("FCCL_CHECK", "1");
  if (d.below(2, 2) == 0)
    to.emplace_back("FCCL_TEST_CHAOS", std::to_string(1 + d.below(3, 1000000)));
  if (d.below(4, 3) == 0) {
    const uint64_t wrap = d.below(5, 2) == 0 ? 1ull << 31 : 1ull << 32;
    to.emplace_back("FCCL_TEST_EPOCH", std::to_string(wrap - d.below(6, 20)));
  }
  if (d.below(7, 3) == 0) to.emplace_back("FCCL_MAX_BLOCKS", std::to_string(1 + d.below(8, 4)));
  if (d.below(9, 3) == 0) to.emplace_back("FCCL_SPIN_US", std::to_string(d.below(10, 50)));
}

void draw_fault(const Draws& d, RoundPlan& plan) {
  if (plan.ranks == 1 || d.below(1, 2) == 0) return;
  const Fault by_threads[] = {Fault::Abort, Fault::Leave, Fault::Stall};
  const Fault by_processes[] = {Fault::Abort,
                                Fault::Leave,
                                Fault::Stall,
                                Fault::KillInInit,
                                Fault::KillInCall,
                                Fault::KillInCall};
  plan.fault = plan.kind == RankKind::Threads ? d.one_of(2, by_threads) : d.one_of(2, by_processes);
  plan.victim = static_cast<int>(d.below(3, static_cast<uint64_t>(plan.ranks)));
  plan.fault_communicator = static_cast<int>(d.below(4, plan.communicators.size()));
  const auto c = static_cast<size_t>(plan.fault_communicator);
  plan.fault_call = static_cast<int>(d.below(5, plan.communicators[c].calls.size()));
  const uint64_t span = plan.fault == Fault::KillInInit ? 150000 : 3000;
  plan.fault_delay_us = static_cast<int64_t>(d.below(6, span));
}

}  // namespace

const char* fault_name(Fault fault) {
  static const char* const names[] = {
      "none", "abort", "leave", "stall", "kill in init", "kill in call"};
  return names[static_cast<int>(fault)];
}

int64_t RoundPlan::delay_us(int rank, int communicator, int call) const {
  const uint64_t word = mix(mix(seed, round, 0xDE1A),
                            static_cast<uint64_t>(rank),
                            static_cast<uint64_t>(communicator),
                            static_cast<uint64_t>(call));
  return word % 6 != 0 ? 0 : static_cast<int64_t>(word / 6 % 2000);
}

std::string RoundPlan::text() const {
  std::string all = "round " + std::to_string(round) + ": " + std::to_string(ranks) +
                    (kind == RankKind::Threads ? " threads, " : " processes, ") +
                    std::to_string(communicators.size()) + " communicators" +
                    (is_concurrent ? " at once" : "") + ", fault " + fault_name(fault);
  if (fault != Fault::None) {
    all += " of rank " + std::to_string(victim) + " on communicator " +
           std::to_string(fault_communicator) + " at call " + std::to_string(fault_call) +
           " after " + std::to_string(fault_delay_us) + " us";
  }
  for (const auto& [name, value] : environment) all += ", " + name + "=" + value;
  return all;
}

RoundPlan make_plan(uint64_t seed, uint64_t round, RankKind kind) {
  const Draws d(seed, round);
  RoundPlan plan;
  plan.seed = seed;
  plan.round = round;
  plan.kind = kind;
  plan.ranks = 1 + static_cast<int>(d.below(8, 1 + d.below(1, 8)));  // few ranks more often
  const Algorithm algorithm = kAlgorithms[d.below(2, kAlgorithmCount)];
  const bool is_small = d.below(3, 3) == 0;
  draw_environment(d.of(4), algorithm, is_small, plan.environment);
  const uint64_t communicators = 1 + d.below(5, 3);
  for (uint64_t c = 0; c < communicators; ++c)
    plan.communicators.push_back(draw_communicator(d.of(10 + c), algorithm, plan.ranks, is_small));
  plan.is_concurrent = d.below(6, 2) == 0;
  draw_fault(d.of(7), plan);
  return plan;
}

}  // namespace fccl::test
