// Latency of the fused kernel at two ranks: many calls captured into one graph on each of two
// streams, replayed 20 times; a figure is the minimum over replays of the maximum over ranks, in us
// per call.
#pragma once
#include <barrier>
#include <string>
#include <vector>

#include "gpu/gpu_world.h"
#include "gpu/stages.h"

namespace fccl::test {

struct Variant {
  int packs = 1;  // per thread
  int blocks_per_sm = 1;  // 0: the shape that the product takes, packs too
  bool dependent = true;
  bool early = false;
  ProtocolKind protocol = ProtocolKind::Lamport;
  Stage stage = Stage::Whole;
  bool timed = false;  // the kernel with a clock
  bool chosen() const { return blocks_per_sm == 0; }
  std::string name() const {
    static const char* const protocols[] = {"lamport", "flags", "ll"};
    std::string text = chosen() ? "chosen"
                                : std::string(protocols[static_cast<int>(protocol)]) + " k" +
                                      std::to_string(packs) + " b" + std::to_string(blocks_per_sm);
    return text + (dependent ? "" : " no pdl") + (early ? " early" : "");
  }
};

struct Figure {
  double least = 0, median = 0;
};

// The buffers of one rank, big enough for every shape.
struct Buffers {
  char *input = nullptr, *residual = nullptr, *weight = nullptr, *residual_out = nullptr,
       *norm_out = nullptr;
  WarpMarks* marks = nullptr;  // [kTimedCalls][kTimedBlocks][kTimedWarps]
};

class Bench {
 public:
  Bench(int devices, int ranks, uint64_t bytes);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Figure run(TypeKind type, int rows, int hidden, const Variant& v);
  // What the warps of the last kTimedCalls calls of a rank had reached.
  std::vector<WarpMarks> marks(int rank) const;
  bool healthy() const;

 private:
  static constexpr int kReplays = 20;

  Buffers make_buffers(int rank, uint64_t bytes) const;
  void enqueue(int rank, TypeKind type, int rows, int hidden, const Variant& v);
  std::vector<double> run_rank(int rank, TypeKind type, int rows, int hidden, const Variant& v,
                               int calls);

  GpuWorld world_;
  std::barrier<> barrier_;
  std::vector<Buffers> buffers_;
  int sm_count_ = 0;
};

// tokens x hidden: local norm, best peer and floor in bf16, as measured before on two H200.
struct Anchor {
  int rows, hidden;
  double local, peer, floor;
};
const std::vector<Anchor>& anchors();
// For one wave the local norm and the bytes do not overlap: the more honest bound.
double one_wave_bound(const Anchor& at);

}  // namespace fccl::test
