// How the ranks of one run talk beside the communicator that is measured: meet, gather small
// values, leave the unique id and error texts. Ranks that we started share a block of memory
// (SharedTeam); ranks that mpirun and the like started have only the communicator itself
// (CommTeam).
#pragma once

#include <fccl/fccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fccl_perf/device.h"
#include "fccl_perf/outcome.h"

namespace perf {

class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual Outcome barrier() = 0;
  // Gathers `bytes` of each rank into `all`, in rank order.
  virtual Outcome allgather(const void* mine, void* all, std::size_t bytes) = 0;
  // Notes that call number `call` begins and has ended, for the report of a failed run.
  virtual void note_started(int64_t /*call*/) {}
  virtual void note_finished(int64_t /*call*/) {}

  Outcome gather(const std::vector<double>& mine, std::vector<std::vector<double>>& all);
  Outcome sum(int64_t mine, int64_t& total);
  // True on all ranks if rank 0 says so.
  Outcome follow_rank0(bool mine, bool& decision);
};

constexpr int kMostRanks = 16;
constexpr std::size_t kSlotBytes = 32768;
constexpr std::size_t kTextBytes = 512;

// The block that the launcher and its ranks share: an anonymous mapping made before the fork.
struct SharedBlock {
  struct Rank {
    std::atomic<int64_t> started;
    std::atomic<int64_t> finished;
    std::atomic<int> state;  // 0 running, 1 done, 2 failed
    char error[kTextBytes];
    alignas(64) char slot[kSlotBytes];
  };
  int ranks;
  std::atomic<int> arrived;  // barrier: ranks that came
  std::atomic<int> turn;  // barrier: turns done; ranks sleep on it
  std::atomic<int> id_ready;  // 1 ready, 2 failed
  fcclUniqueId id;
  std::atomic<int> wrong;  // rank 0's verdict for the launcher
  Rank rank[kMostRanks];

  static SharedBlock* make(int ranks);
};

std::unique_ptr<Team> make_shared_team(SharedBlock* block, int rank);
std::unique_ptr<Team> make_comm_team(fcclComm_t comm, Device* device, int rank, int ranks);

}  // namespace perf
