// What a kernel does when the exchange cannot end: it leaves in time, says whom it waited for and
// tells its peers; and nothing that comes later pushes, waits or clears the verdict.
#include <chrono>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "harness/catch.h"
#include "harness/kernel_case.h"

namespace fccl::test {
namespace {

struct Path {
  AlgoKind algo;
  ProtocolKind protocol;
  bool last_reduces = false;
};
const Path kPaths[] = {{AlgoKind::Oneshot, ProtocolKind::Lamport},
                       {AlgoKind::Oneshot, ProtocolKind::Flags},
                       {AlgoKind::Oneshot, ProtocolKind::LL},
                       {AlgoKind::TwoshotRows, ProtocolKind::Lamport},
                       {AlgoKind::TwoshotRows, ProtocolKind::Flags},
                       {AlgoKind::TwoshotCols, ProtocolKind::Lamport},
                       {AlgoKind::TwoshotCols, ProtocolKind::Flags},
                       {AlgoKind::TwoshotRows, ProtocolKind::Flags, true}};

KernelCase case_on(const Path& path, int ranks, int64_t tokens) {
  KernelCase c;
  c.id = {OpKind::FusedNorm, path.algo, path.protocol, TypeKind::BF16, false};
  c.level = kernel_levels().back();
  c.ranks = ranks;
  c.last_reduces = path.last_reduces;
  c.tokens = c.last_reduces ? 1 : tokens;
  c.hidden = 128;
  return c;
}

KernelWorld::Options limited(int ranks, int64_t limit_ms) {
  KernelWorld::Options options;
  options.ranks = ranks;
  options.limit_ms = limit_ms;
  return options;
}

// Runs the case on these ranks only, whatever becomes of it.
void run_ranks(KernelWorld& world, const KernelCase& c, const std::vector<int>& present) {
  const KernelProblem problem = make_problem(c);
  std::vector<std::thread> threads;
  for (const int rank : present)
    threads.emplace_back([&, rank] { run_case(world, rank, c, problem); });
  for (std::thread& thread : threads) thread.join();
}

int64_t elapsed_ms(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               start)
      .count();
}

}  // namespace

TEST_CASE("kernel failures: an absent peer is named when the deadline expires") {
  for (const Path& path : kPaths) {
    for (const int absent : {0, 2}) {
      KernelWorld world(limited(3, 100));
      const KernelCase c = case_on(path, 3, 6);
      std::vector<int> present;
      for (int rank = 0; rank < 3; ++rank)
        if (rank != absent) present.push_back(rank);
      INFO(c.text() << ", absent " << absent);
      CHECK(elapsed_ms([&] { run_ranks(world, c, present); }) < 5000);
      bool named = false;
      for (const int rank : present) {
        CHECK(is_poisoned(world.control(rank).line));
        CHECK(world.control(rank).status != 0);
        const FailureRecord& record = world.record(rank);
        if (record.complete == 0) continue;  // heard of it from the other one
        CHECK(record.failure == static_cast<uint32_t>(Failure::Timeout));
        CHECK(record.epoch == 1);
        named = named || (record.peer == absent && record.seen == 0);
      }
      CHECK(named);
      CHECK(failure_of(world.control(absent).status) == Failure::Timeout);
      // The late rank learns it at its first wait, and does not hang. The last of a roll call has
      // nothing to wait for.
      CHECK(elapsed_ms([&] { run_ranks(world, c, {absent}); }) < 5000);
      if (!path.last_reduces) CHECK(is_poisoned(world.control(absent).line));
    }
  }
}

TEST_CASE("kernel failures: after a failure a launch leaves at once and writes nothing") {
  KernelWorld world(limited(2, 50));
  const KernelCase c = case_on(kPaths[0], 2, 2);
  run_ranks(world, c, {0});
  REQUIRE(is_poisoned(world.control(0).line));
  const std::vector<char> before(world.window(1), world.window(1) + world.layout().bytes);
  const uint32_t status = world.control(0).status;
  world.control(0).limit_ns = 3600ull * 1000000000;
  run_ranks(world, c, {0});
  CHECK(world.control(0).status == status);
  CHECK(std::memcmp(before.data(), world.window(1), before.size()) == 0);
}

TEST_CASE("kernel failures: one rank's expiry frees the others, whatever their own deadline") {
  for (const Path& path : kPaths) {
    KernelWorld world(limited(4, 600000));
    world.control(0).limit_ns = 100000000;
    const KernelCase c = case_on(path, 4, 8);
    INFO(c.text());
    CHECK(elapsed_ms([&] { run_ranks(world, c, {0, 1, 2}); }) < 5000);
    for (int rank = 0; rank < 4; ++rank) {
      CHECK(failure_of(world.control(rank).status) == Failure::Timeout);
      CHECK(rank_of(world.control(rank).status) == 0);
    }
    CHECK(world.record(1).complete == 0);
  }
}

TEST_CASE("kernel failures: the abort word ends a wait") {
  for (const Path& path : kPaths) {
    KernelWorld world(limited(2, 600000));
    const KernelCase c = case_on(path, 2, 2);
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      world.abort_waits(0);
    });
    INFO(c.text());
    CHECK(elapsed_ms([&] { run_ranks(world, c, {0}); }) < 1000);
    aborter.join();
    CHECK(world.record(0).failure == static_cast<uint32_t>(Failure::Aborted));
    CHECK(failure_of(world.control(1).status) == Failure::Aborted);
  }
}

TEST_CASE("kernel failures: ranks that disagree about a call name each other") {
  for (const bool checked : {false, true}) {
    for (const Path& path : kPaths) {
      KernelWorld world(limited(2, 20000));
      KernelCase c = case_on(path, 2, 4);
      c.checked = checked;
      KernelCase more = c;
      more.last_reduces = false;  // as the plan of more rows would have it
      more.tokens = 9;
      const auto tokens = static_cast<uint32_t>(c.tokens);
      const KernelProblem problem = make_problem(c), larger = make_problem(more);
      INFO(c.text());
      std::thread other([&] { run_case(world, 1, more, larger); });
      run_case(world, 0, c, problem);
      other.join();
      int named = 0;
      for (int rank = 0; rank < 2; ++rank) {
        const FailureRecord& record = world.record(rank);
        if (record.complete == 0) continue;
        ++named;
        CHECK(record.failure == static_cast<uint32_t>(Failure::Mismatch));
        CHECK(record.peer == 1 - rank);
        CHECK(record.seen_tokens == (rank == 0 ? 9u : tokens));
        CHECK(record.expected_tokens == (rank == 0 ? tokens : 9u));
      }
      CHECK(named >= 1);
      if (checked) CHECK(is_poisoned(world.control(0).line));
      CHECK(is_poisoned(world.control(1).line));
    }
  }
}

TEST_CASE("kernel failures: in checked mode no rows are an exchange too") {
  KernelWorld world(limited(3, 20000));
  KernelCase c = case_on(kPaths[0], 3, 1);
  const KernelProblem problem = make_problem(c);
  const auto launch_empty = [&](int rank) {
    KernelArgs a{};
    a.ex = world.exchange(rank, c.id);
    a.ex.checked = 1;
    a.hidden = a.last_hidden = 128;
    a.packs = 16;
    run_kernel(c.level.find(c.id, 3), a, 1, 0);
    return std::string();
  };
  CHECK(world.run(launch_empty) == "");
  CHECK(world.not_at_rest(1) == "");
  // One rank has no rows, the others do.
  c.checked = true;
  world.run(
      [&](int rank) { return rank == 1 ? launch_empty(rank) : run_case(world, rank, c, problem); });
  for (int rank = 0; rank < 3; ++rank)
    CHECK(failure_of(world.control(rank).status) == Failure::Mismatch);
}

#if defined(__x86_64__)
TEST_CASE("kernels: the caller's rounding mode and flushing change nothing and are kept") {
  KernelWorld world(limited(2, 20000));
  KernelCase c = case_on(kPaths[0], 2, 12);  // every nature of row, subnormals among them
  const KernelProblem problem = make_problem(c);
  const unsigned odd = 0x1F80u | 0x8040u | 0x6000u;  // flush, denormals are zero, round to zero
  CHECK(world.run([&](int rank) -> std::string {
    if (rank == 1) return run_case(world, rank, c, problem);
    _mm_setcsr(odd);
    std::string error = run_case(world, rank, c, problem);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(0x1F80);
    return (after & ~0x3Fu) == (odd & ~0x3Fu) ? error : error + " MXCSR was not restored";
  }) == "");
}
#endif

}  // namespace fccl::test
