// Failures on GPU ranks: a peer that never calls, calls that differ, a host that aborts. Each must
// end within its bound, name the peer, and close the communicator on all ranks.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "gpu/checks.h"
#include "gpu/gpu_case.h"

namespace fccl::test {
namespace {

using Clock = std::chrono::steady_clock;

KernelCase small_case(AlgoKind algo, ProtocolKind protocol, int ranks) {
  KernelCase c;
  c.id = {OpKind::FusedNorm, algo, protocol, TypeKind::BF16, true};
  c.level = kernel_levels().back();
  c.ranks = ranks;
  c.tokens = 8;
  c.hidden = 4096;
  c.blocks = 4;
  return c;
}

// The world that a case runs in.
GpuOptions options_for(const KernelCase& c, int devices, int64_t limit_ms) {
  GpuOptions options;
  options.ranks = c.ranks;
  options.devices = devices;
  options.limit_ms = limit_ms;
  options.slot_bytes = slot_bytes(c);
  return options;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int report(bool ok, const std::string& what, const std::string& found) {
  std::printf("%s: %s: %s\n", ok ? "ok" : "WRONG", what.c_str(), found.c_str());
  std::fflush(stdout);
  return ok ? 0 : 1;
}

std::string found(GpuWorld& world, double seconds) {
  std::string text = std::to_string(seconds) + " s";
  for (int r = 0; r < world.ranks(); ++r) {
    const Control own = world.control(r);
    char line[160];
    std::snprintf(line,
                  sizeof line,
                  "; rank %d status %08x%s, %s",
                  r,
                  own.status,
                  is_poisoned(own.line) ? " poisoned" : "",
                  describe_failure(world.record(r)).c_str());
    text += line;
  }
  return text;
}

// The last rank never calls: the others say so after the deadline.
int absent_peer(AlgoKind algo, ProtocolKind protocol, int ranks, int devices) {
  const KernelCase c = small_case(algo, protocol, ranks);
  GpuWorld world(options_for(c, devices, 500));
  GpuCase call(world, c, 1);
  const auto start = Clock::now();
  for (int r = 0; r + 1 < ranks; ++r) call.launch(r);
  bool ok = world.wait(10);
  const double first = seconds_since(start);
  bool named = false;
  for (int r = 0; r + 1 < ranks; ++r) {
    const FailureRecord& record = world.record(r);
    named |= record.complete == 1 &&
             failure_of(status_word(static_cast<Failure>(record.failure), 0)) == Failure::Timeout &&
             record.peer == ranks - 1;
    ok = ok && world.control(r).status != 0 && is_poisoned(world.control(r).line);
  }
  ok = ok && named && first > 0.4 && first < 3 && world.control(ranks - 1).status != 0;
  const auto later = Clock::now();
  for (int r = 0; r < ranks; ++r) call.launch(r);  // the late peer and all others leave at once
  ok = world.wait(10) && ok;
  const double second = seconds_since(later);
  return report(ok && second < 0.3,
                "absent peer, " + c.text(),
                found(world, first) + ", then " + std::to_string(second) + " s");
}

// Ranks disagree about the call: named at once.
int mismatch(bool checked, int devices) {
  KernelCase c = small_case(AlgoKind::Oneshot, ProtocolKind::Lamport, 2);
  c.checked = checked;
  KernelCase longer = c;
  longer.tokens = 16;
  GpuWorld world(options_for(longer, devices, 3000));
  GpuCase a(world, c, 1), b(world, longer, 1);
  const auto start = Clock::now();
  a.launch(0);
  b.launch(1);
  const bool ended = world.wait(10);
  const double took = seconds_since(start);
  bool named = false;
  for (int r = 0; r < 2; ++r)
    named |= world.record(r).complete == 1 &&
             static_cast<Failure>(world.record(r).failure) == Failure::Mismatch &&
             world.record(r).peer == 1 - r;
  return report(
      ended && named && took < 1, checked ? "mismatch, checked" : "mismatch", found(world, took));
}

// A communicator that its owner has closed (the line poisoned, no failure told): launches leave at
// entry, and neither tell nor claim anything.
int closed(AlgoKind algo, ProtocolKind protocol, int ranks, int devices) {
  const KernelCase c = small_case(algo, protocol, ranks);
  GpuWorld world(options_for(c, devices, 500));
  GpuCase call(world, c, 1);
  for (int r = 0; r < ranks; ++r) world.poison(r);
  const auto start = Clock::now();
  for (int r = 0; r < ranks; ++r) call.launch(r);
  bool ok = world.wait(10);
  const double took = seconds_since(start);
  for (int r = 0; r < ranks; ++r)
    ok = ok && world.control(r).status == 0 && world.record(r).claimed == 0;
  return report(ok && took < 0.3, "closed, " + c.text(), found(world, took));
}

// The host's word ends a wait within 100 ms.
int aborted(int ranks, int devices) {
  const KernelCase c = small_case(AlgoKind::Oneshot, ProtocolKind::Lamport, ranks);
  GpuWorld world(options_for(c, devices, 5000));
  GpuCase call(world, c, 1);
  call.launch(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto start = Clock::now();
  __atomic_store_n(&world.host_abort(0), status_word(Failure::Aborted, 0), __ATOMIC_RELEASE);
  const bool ended = world.wait(10);
  const double took = seconds_since(start);
  return report(ended && took < 0.1, "abort", found(world, took));
}

}  // namespace

int check_failures(int devices) {
  int bad = 0;
  for (const ProtocolKind protocol : {ProtocolKind::Lamport, ProtocolKind::Flags, ProtocolKind::LL})
    bad += absent_peer(AlgoKind::Oneshot, protocol, 2, devices);
  bad += absent_peer(AlgoKind::TwoshotRows, ProtocolKind::Lamport, 4, devices);
  bad += absent_peer(AlgoKind::TwoshotCols, ProtocolKind::Lamport, 4, devices);
  bad += absent_peer(AlgoKind::TwoshotCols, ProtocolKind::Flags, 3, devices);
  bad += mismatch(false, devices);
  bad += mismatch(true, devices);
  bad += aborted(2, devices);
  for (const ProtocolKind protocol : {ProtocolKind::Lamport, ProtocolKind::Flags, ProtocolKind::LL})
    bad += closed(AlgoKind::Oneshot, protocol, 2, devices);
  bad += closed(AlgoKind::Oneshot, ProtocolKind::Lamport, 4, devices);
  bad += closed(AlgoKind::TwoshotRows, ProtocolKind::Lamport, 4, devices);
  bad += closed(AlgoKind::TwoshotCols, ProtocolKind::Lamport, 4, devices);
  return bad;
}

}  // namespace fccl::test
