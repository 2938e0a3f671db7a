// What one round of the soak does: a pure function of (seed, round, kind of ranks), so that every
// rank, thread or process, makes the same plan by itself and a round can be played again alone.
#pragma once
#include <string>
#include <vector>

#include "harness/collective_case.h"
#include "harness/kernel_case.h"
#include "harness/ranks.h"

namespace fccl::test {

enum class RankKind { Threads, Processes };

// What goes wrong in a round, at one rank (the victim).
enum class Fault {
  None,
  Abort,  // it aborts one communicator, a little after the call has begun
  Leave,  // it destroys one communicator while the others go on calling
  Stall,  // it comes too late for the others' deadline
  KillInInit,  // its process is killed while ranks join
  KillInCall  // its process is killed a little after the call has begun
};
const char* fault_name(Fault fault);

struct SoakCall {
  bool is_plain = false;  // a plain collective, else the fused call
  KernelCase fused;
  CollectiveCase collective;
  uint64_t launch = 0;  // picks the inputs of the collective
};

// A communicator of all ranks, the calls that are made on it, and perhaps a split half-way.
struct CommunicatorPlan {
  std::vector<SoakCall> calls;
  std::vector<int> colors;  // of each rank; empty: no split
  std::vector<std::vector<SoakCall>> calls_of_color;
  bool is_finalized = false;  // before it is destroyed
};

struct RoundPlan {
  uint64_t seed = 0;
  uint64_t round = 0;
  RankKind kind = RankKind::Threads;
  int ranks = 1;
  Variables environment;
  std::vector<CommunicatorPlan> communicators;
  bool is_concurrent = false;  // each communicator has a thread per rank; else calls interleave
  Fault fault = Fault::None;
  int victim = 0;
  int fault_communicator = 0;  // kills hit all
  int fault_call = 0;
  int64_t fault_delay_us = 0;

  // Microseconds that `rank` sleeps before a call; mostly none.
  int64_t delay_us(int rank, int communicator, int call) const;
  std::string text() const;
};

RoundPlan make_plan(uint64_t seed, uint64_t round, RankKind kind);

}  // namespace fccl::test
