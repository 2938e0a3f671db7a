// One fused launch at kernel level, whole: which kernel, which shape, which options, how the
// caller's buffers lie. Inputs, the expected outputs of every rank, and the check that nothing else
// was touched.
#pragma once
#include "harness/buffer.h"
#include "harness/kernel_levels.h"
#include "harness/kernel_world.h"
#include "harness/reference.h"

namespace fccl::test {

// Which input buffer an output shares.
enum class Share { None, Input, Residual };
enum class VectorType { Absent, Tensor, Float32 };

struct KernelCase {
  KernelId id;
  KernelLevel level;
  int ranks = 2;
  int64_t tokens = 1;
  int64_t hidden = 64;
  uint64_t launch = 0;  // picks the inputs
  int tile_rows = 1;
  int blocks = 1;  // ranks may differ: rank r runs 1 + (blocks - 1 + r) % blocks of them
  int64_t chunk_rows = 0;  // rows of one launch (of each owner, where rows are owned); 0: all
  bool residual = true;
  bool residual_out = true;
  bool allreduce_out = false;
  bool sharded = false;
  bool last_reduces = false;  // one row of CPU ranks, owned by the last to arrive
  bool weight_plus_one = false;
  bool as_unfused = false;
  VectorType weight = VectorType::Tensor;
  VectorType bias = VectorType::Absent;
  Share residual_out_in = Share::None;
  Share norm_out_in = Share::None;
  Share allreduce_out_in = Share::None;
  Placement placement;
  float eps = 1e-6f;
  bool checked = false;
  uint32_t chaos = 0;

  std::string text() const;
};

// Is there such a launch at all? The rules of the plan and of the header's aliasing table.
bool is_possible(const KernelCase& c);

struct KernelProblem {
  FusedInputs inputs;
  FusedOutputs expected;
};
KernelProblem make_problem(const KernelCase& c);

// Bytes that one sender pushes in a launch at most: what the world's slots must hold.
uint64_t slot_bytes(const KernelCase& c);
uint64_t exchanges_of(const KernelCase& c);

// The buffers of one rank. Outputs that share an input buffer have none of their own.
struct RankBuffers {
  Buffer input, residual, weight, bias, residual_out, norm_out, allreduce_out;

  Buffer& place(Share share, Buffer& own) {
    return share == Share::Input ? input : share == Share::Residual ? residual : own;
  }
};
RankBuffers make_buffers(const KernelCase& c, int rank, const KernelProblem& problem);
// What is wrong with them after the launch, or "".
std::string check_buffers(const KernelCase& c, int rank, const KernelProblem& problem,
                          RankBuffers& b);
// The aliasing table of the header.
bool is_legal_sharing(const KernelCase& c);

// Runs the case as `rank` of `world`. Returns what is wrong, or "".
std::string run_case(KernelWorld& world, int rank, const KernelCase& c,
                     const KernelProblem& problem);

}  // namespace fccl::test
