// Many calls through the C ABI: random shapes, types and algorithms, eager calls and replays of
// graphs in random order, random delays of each rank; every output of every call is compared bit
// for bit.
//
// In a round each call has outputs of its own, so that none hides another's; they are copied to the
// host behind the calls, compared there and spoilt for the next round.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "gpu/abi_checks.h"
#include "gpu/abi_world.h"
#include "harness/generator.h"

namespace fccl::test {
namespace {

constexpr int64_t kMostElements = 150000;
constexpr int64_t kPatienceMs = 30000;
constexpr int kEager = 30;
constexpr int kGraphs = 6;
constexpr int kCallsOfGraph = 5;
constexpr int kJobs = kEager + kGraphs * kCallsOfGraph;
constexpr int kDelayUs = 50;

void spin_us(uint64_t us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// The outputs of one job on one rank, with a place on the host to compare them.
class Outputs {
 public:
  explicit Outputs(const RankJob& job) : job_(job) {
    for (const auto& [place, want] : both())
      CUDA_OK(cudaMallocHost(reinterpret_cast<void**>(place), bytes(*want) + 1));
  }
  ~Outputs() {
    CUDA_OK(cudaFreeHost(residual_));
    CUDA_OK(cudaFreeHost(norm_));
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  // Behind the call on `stream`.
  void fetch_and_spoil(cudaStream_t stream) const {
    const FusedOutputs& want = job_.job().want;
    fetch(residual_, job_.residual_out(), bytes(want.residual_out), stream);
    fetch(norm_, job_.norm_out(), bytes(want.norm_out), stream);
  }
  std::string difference() const {
    const FusedOutputs& want = job_.job().want;
    if (std::memcmp(residual_, want.residual_out.row(0), bytes(want.residual_out)) != 0)
      return job_.job().shape.text() + ": residual_out differs";
    if (std::memcmp(norm_, want.norm_out.row(0), bytes(want.norm_out)) != 0)
      return job_.job().shape.text() + ": norm_out differs";
    return "";
  }

 private:
  static size_t bytes(const Matrix& m) { return m.row_bytes() * static_cast<size_t>(m.rows()); }
  std::vector<std::pair<char**, const Matrix*>> both() {
    return {{&residual_, &job_.job().want.residual_out}, {&norm_, &job_.job().want.norm_out}};
  }
  static void fetch(char* to, void* from, size_t bytes, cudaStream_t stream) {
    CUDA_OK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaMemsetAsync(from, 0xC5, bytes, stream));
  }

  const RankJob& job_;
  char* residual_ = nullptr;
  char* norm_ = nullptr;
};

class Soak {
 public:
  Soak(AbiRank& rank, const FusedJobs& jobs) : rank_(rank), mine_(on_rank(jobs, rank.rank)) {
    for (const RankJob& job : mine_) outputs_.emplace_back(std::make_unique<Outputs>(job));
  }
  ~Soak() {
    for (const cudaGraphExec_t graph : graphs_) CUDA_OK(cudaGraphExecDestroy(graph));
  }

  std::string capture() {
    for (int g = 0; g < kGraphs; ++g) {
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t run = nullptr;
      CUDA_OK(cudaStreamBeginCapture(rank_.stream, cudaStreamCaptureModeThreadLocal));
      std::string wrong;
      for (int i = 0; i < kCallsOfGraph && wrong.empty(); ++i)
        wrong = job(kEager + g * kCallsOfGraph + i).issue(rank_, rank_.stream);
      const cudaError_t ended = cudaStreamEndCapture(rank_.stream, &graph);
      if (!wrong.empty()) return wrong;
      CUDA_OK(ended);
      CUDA_OK(cudaGraphInstantiate(&run, graph, 0));
      CUDA_OK(cudaGraphDestroy(graph));
      graphs_.push_back(run);
    }
    return "";
  }

  // The eager calls and the graphs once each, in an order that all ranks share.
  std::string round(uint64_t seed) {
    std::vector<int> order(kEager + kGraphs);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[mix(seed, i) % (i + 1)]);
    for (const int step : order) {
      const uint64_t own =
          mix(mix(seed, static_cast<uint64_t>(step)), 1000 + static_cast<uint64_t>(rank_.rank));
      if (own % 3 == 0) spin_us((own >> 8) % (kDelayUs + 1));
      if (step < kEager) {
        ABI_EXPECT_OK(job(step).issue(rank_, rank_.stream));
      } else {
        CUDA_OK(cudaGraphLaunch(graphs_[static_cast<size_t>(step - kEager)], rank_.stream));
      }
    }
    for (const auto& out : outputs_) out->fetch_and_spoil(rank_.stream);
    ABI_EXPECT_OK(rank_.wait(rank_.stream, kPatienceMs));
    for (const auto& out : outputs_) ABI_EXPECT_OK(out->difference());
    return "";
  }

 private:
  const RankJob& job(int i) const { return mine_[static_cast<size_t>(i)]; }

  AbiRank& rank_;
  std::vector<RankJob> mine_;
  std::vector<std::unique_ptr<Outputs>> outputs_;
  std::vector<cudaGraphExec_t> graphs_;
};

}  // namespace

std::string abi_soak(int64_t calls, uint64_t seed) {
  const char* const rules[] = {"",
                               "oneshot_lamport",
                               "oneshot_ll",
                               "oneshot_flags",
                               "twoshot_rows_lamport",
                               "twoshot_rows",
                               "twoshot_cols_lamport",
                               "twoshot_cols"};
  const int64_t rounds = calls / kJobs / static_cast<int64_t>(std::size(rules)) + 1;
  int64_t made = 0;
  for (const char* rule : rules) {
    const uint64_t own_seed = mix(seed, std::strlen(rule));
    const FusedJobs jobs = random_jobs(kJobs, own_seed, 2, kMostElements);
    const Variables variables = *rule == 0 ? Variables{} : Variables{{"FCCL_ALGO", rule}};
    const std::string wrong =
        abi_threads(abi_options(2, variables), [&](AbiRank& rank) -> std::string {
          Soak soak(rank, jobs);
          rank.meet();
          ABI_EXPECT_OK(soak.capture());
          for (int64_t i = 0; i < rounds; ++i) {
            const std::string found = soak.round(mix(own_seed, static_cast<uint64_t>(i)));
            if (!found.empty()) return "round " + std::to_string(i) + ": " + found;
          }
          rank.meet();
          return "";
        });
    if (!wrong.empty())
      return std::string(*rule == 0 ? "default" : rule) + ", seed " + std::to_string(seed) + ": " +
             wrong;
    made += rounds * kJobs;
    std::printf("  %s: %lld calls on each rank, all exact\n",
                *rule == 0 ? "default" : rule,
                static_cast<long long>(rounds * kJobs));
  }
  std::printf("  %lld calls in all\n", static_cast<long long>(made));
  return "";
}

}  // namespace fccl::test
