#include "fccl_perf/team.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace perf {
namespace {

void futex(std::atomic<int>& word, int operation, int value) {
  syscall(SYS_futex, reinterpret_cast<int*>(&word), operation, value, nullptr, nullptr, 0);
}

class SharedTeam : public Team {
 public:
  SharedTeam(SharedBlock* block, int rank) : block_(block), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return block_->ranks; }

  // Spins briefly, so that ranks with a CPU each leave together, then sleeps. A rank that failed
  // never comes: the launcher ends the run then.
  Outcome barrier() override {
    constexpr int kSpins = 2000;
    const int turn = block_->turn.load(std::memory_order_acquire);
    if (block_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == block_->ranks) {
      block_->arrived.store(0, std::memory_order_relaxed);
      block_->turn.store(turn + 1, std::memory_order_release);
      futex(block_->turn, FUTEX_WAKE, kMostRanks);
      return {};
    }
    for (int spin = 0; spin < kSpins; ++spin) {
      if (block_->turn.load(std::memory_order_acquire) != turn) return {};
    }
    while (block_->turn.load(std::memory_order_acquire) == turn)
      futex(block_->turn, FUTEX_WAIT, turn);
    return {};
  }

  Outcome allgather(const void* mine, void* all, std::size_t bytes) override {
    for (std::size_t done = 0; done < bytes; done += kSlotBytes) {
      const std::size_t part = std::min(kSlotBytes, bytes - done);
      std::memcpy(block_->rank[rank_].slot, static_cast<const char*>(mine) + done, part);
      PERF_TRY(barrier());
      for (int rank = 0; rank < block_->ranks; ++rank) {
        std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes + done,
                    block_->rank[rank].slot,
                    part);
      }
      PERF_TRY(barrier());
    }
    return {};
  }

  void note_started(int64_t call) override {
    block_->rank[rank_].started.store(call, std::memory_order_relaxed);
  }
  void note_finished(int64_t call) override {
    block_->rank[rank_].finished.store(call, std::memory_order_relaxed);
  }

 private:
  SharedBlock* block_;
  int rank_;
};

// Carries bytes as floats 0 to 255 through fcclAllGather: pure copies of such numbers are exact.
class CommTeam : public Team {
 public:
  CommTeam(fcclComm_t comm, Device* device, int rank, int ranks)
      : comm_(comm), device_(device), rank_(rank), ranks_(ranks) {}
  ~CommTeam() override {
    if (send_ != nullptr) device_->release(send_);
    if (receive_ != nullptr) device_->release(receive_);
  }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  Outcome barrier() override {
    const char mine = 0;
    char all[kMostRanks];
    return allgather(&mine, all, 1);
  }

  Outcome allgather(const void* mine, void* all, std::size_t bytes) override {
    constexpr std::size_t kPart = 4096;
    if (send_ == nullptr) {
      PERF_TRY(device_->allocate(&send_, kPart * sizeof(float)));
      PERF_TRY(
          device_->allocate(&receive_, kPart * sizeof(float) * static_cast<std::size_t>(ranks_)));
    }
    for (std::size_t done = 0; done < bytes; done += kPart) {
      const std::size_t part = std::min(kPart, bytes - done);
      std::vector<float> out(part);
      std::vector<float> in(part * static_cast<std::size_t>(ranks_));
      for (std::size_t i = 0; i < part; ++i)
        out[i] = static_cast<const unsigned char*>(mine)[done + i];
      PERF_TRY(device_->upload(send_, out.data(), part * sizeof(float)));
      const fcclResult_t result =
          fcclAllGather(send_, receive_, part, fcclFloat32, comm_, device_->stream());
      if (result != fcclSuccess)
        return Outcome::failure(fmt::format("fcclAllGather: {}", fcclGetLastError(comm_)));
      PERF_TRY(device_->download(in.data(), receive_, in.size() * sizeof(float)));
      for (std::size_t i = 0; i < in.size(); ++i) {
        static_cast<unsigned char*>(all)[i / part * bytes + done + i % part] =
            static_cast<unsigned char>(in[i]);
      }
    }
    return {};
  }

 private:
  fcclComm_t comm_;
  Device* device_;
  int rank_;
  int ranks_;
  void* send_ = nullptr;
  void* receive_ = nullptr;
};

}  // namespace

Outcome Team::gather(const std::vector<double>& mine, std::vector<std::vector<double>>& all) {
  std::vector<double> flat(mine.size() * static_cast<std::size_t>(ranks()));
  PERF_TRY(allgather(mine.data(), flat.data(), mine.size() * sizeof(double)));
  all.clear();
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto begin =
        flat.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * mine.size());
    all.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(mine.size()));
  }
  return {};
}

Outcome Team::sum(int64_t mine, int64_t& total) {
  std::vector<int64_t> all(static_cast<std::size_t>(ranks()));
  PERF_TRY(allgather(&mine, all.data(), sizeof(mine)));
  total = 0;
  for (const int64_t value : all) total += value;
  return {};
}

Outcome Team::follow_rank0(bool mine, bool& decision) {
  const char word = mine ? 1 : 0;
  char all[kMostRanks] = {};
  PERF_TRY(allgather(&word, all, 1));
  decision = all[0] != 0;
  return {};
}

SharedBlock* SharedBlock::make(int ranks) {
  void* memory =
      mmap(nullptr, sizeof(SharedBlock), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* block = new (memory) SharedBlock();
  block->ranks = ranks;
  return block;
}

std::unique_ptr<Team> make_shared_team(SharedBlock* block, int rank) {
  return std::make_unique<SharedTeam>(block, rank);
}

std::unique_ptr<Team> make_comm_team(fcclComm_t comm, Device* device, int rank, int ranks) {
  return std::make_unique<CommTeam>(comm, device, rank, ranks);
}

}  // namespace perf
