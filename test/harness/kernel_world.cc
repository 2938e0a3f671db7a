// See kernel_world.h.
#include "harness/kernel_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace fccl::test {
namespace {

// Few cores: a short spin, a few turns given away, then sleep.
constexpr uint32_t kSpins = 200;
constexpr uint32_t kYields = 4;

const char* failure_name(uint32_t failure) {
  static const char* const names[] = {"none", "timeout", "aborted", "peer", "mismatch", "overlap"};
  return failure < 6 ? names[failure] : "unknown";
}

bool all_bytes(const char* from, uint64_t bytes, unsigned char value) {
  return std::all_of(
      from, from + bytes, [value](char byte) { return byte == static_cast<char>(value); });
}

}  // namespace

void KernelWorld::Free::operator()(char* memory) const {
  std::free(memory);
}

const Region& KernelWorld::region_of(const WorkspaceLayout& layout, ProtocolKind protocol) {
  return protocol == ProtocolKind::Lamport ? layout.lamport
         : protocol == ProtocolKind::LL    ? layout.ll
                                           : layout.staging;
}

KernelWorld::KernelWorld(const Options& options)
    : options_(options),
      records_(static_cast<size_t>(options.ranks)),
      aborts_(static_cast<size_t>(options.ranks)) {
  const auto ranks = static_cast<uint64_t>(options.ranks);
  const uint64_t generation = 2 * ranks * options.slot_bytes;  // two hops
  layout_ = make_layout(options.ranks, generation, generation, generation);
  for (int rank = 0; rank < options.ranks; ++rank) {
    windows_.emplace_back(static_cast<char*>(std::aligned_alloc(kWindowAlign, layout_.bytes)));
    std::memset(window(rank), 0, layout_.bytes);
    std::memset(
        window(rank) + layout_.lamport.offset, 0xFF, layout_.lamport.generation * kGenerations);
    // Staging is never armed: whatever lies there must not matter.
    std::memset(window(rank) + layout_.staging.offset,
                0xAB,
                layout_.staging.generation * kStagingGenerations);
    control(rank).line = line_of(options.start_epoch);
    control(rank).limit_ns = static_cast<uint64_t>(options.limit_ms) * 1000000;
  }
}

ExchangeArgs KernelWorld::exchange(int rank, const KernelId& id) {
  ExchangeArgs ex{};
  const Region& region = region_of(layout_, id.protocol);
  const bool two_hops = id.op == OpKind::FusedNorm || id.op == OpKind::AllReduce
                            ? id.algo != AlgoKind::Oneshot
                            : false;
  for (int i = 0; i < ranks(); ++i) ex.window[i] = window((rank + i) % ranks());
  ex.record = &record(rank);
  ex.host_abort = &host_abort(rank);
  ex.rank = rank;
  ex.ranks = ranks();
  place_slots(ex, region, two_hops);
  ex.tile_rows = 1;
  ex.hash = 0x5EED;
  return ex;
}

std::string KernelWorld::run(const std::function<std::string(int)>& body) {
  std::vector<std::string> errors(static_cast<size_t>(ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      std::string& error = errors[static_cast<size_t>(rank)];
      error = body(rank);
      if (error.empty()) return;
      for (int other = 0; other < ranks(); ++other) abort_waits(other);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::string& error = errors[static_cast<size_t>(rank)];
    if (!error.empty()) all += "rank " + std::to_string(rank) + ": " + error + "\n";
  }
  return all;
}

void KernelWorld::abort_waits(int rank) {
  __atomic_store_n(&host_abort(rank), status_word(Failure::Aborted, rank), __ATOMIC_RELEASE);
}

std::string KernelWorld::not_at_rest(uint64_t exchanges) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const Control& own = control(rank);
    const std::string who = "rank " + std::to_string(rank) + ": ";
    if (own.status != 0) return who + "status " + std::to_string(own.status);
    if (own.line != line_of(options_.start_epoch + exchanges))
      return who + "line " + std::to_string(own.line);
    if (own.doorbell.sleepers != 0)
      return who + "sleepers " + std::to_string(own.doorbell.sleepers);
    if (!all_bytes(
            window(rank) + layout_.lamport.offset, layout_.lamport.generation * kGenerations, 0xFF))
      return who + "a Lamport slot was not re-armed";
    if (!all_bytes(window(rank) + layout_.ll.offset, layout_.ll.generation * kGenerations, 0))
      return who + "an LL line was not zeroed";
  }
  return "";
}

void run_kernel(CpuKernel kernel, const KernelArgs& args, int blocks, uint32_t chaos) {
  const size_t bytes = (cpu_scratch_bytes(args.packs) + 63) / 64 * 64;
  std::unique_ptr<char, void (*)(void*)> scratch(
      static_cast<char*>(std::aligned_alloc(64, bytes * static_cast<size_t>(blocks))), std::free);
  const auto run_block = [&](int block) {
    const CpuLaunch launch{.block = block,
                           .blocks = blocks,
                           .scratch = scratch.get() + bytes * static_cast<size_t>(block),
                           .scratch_bytes = bytes,
                           .spins = kSpins,
                           .yields = kYields,
                           .chaos = chaos == 0 ? 0 : chaos + static_cast<uint32_t>(block) * 7919u};
    kernel(args, launch);
  };
  std::vector<std::thread> others;
  for (int block = 1; block < blocks; ++block) others.emplace_back(run_block, block);
  run_block(0);
  for (std::thread& thread : others) thread.join();
}

std::string describe_failure(const FailureRecord& record) {
  char text[200];
  std::snprintf(text,
                sizeof text,
                "%s: peer %d, epoch %llu, seen %llu, hop %u, row %u",
                failure_name(record.failure),
                record.peer,
                static_cast<unsigned long long>(record.epoch),
                static_cast<unsigned long long>(record.seen),
                record.hop,
                record.row);
  return text;
}

}  // namespace fccl::test
