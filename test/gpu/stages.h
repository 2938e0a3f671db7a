// The one-shot Lamport kernel for two ranks, bf16, one pack per thread, with stages left out or
// done twice: what bounds a shape shows in the differences. The results of such launches are
// meaningless.
#pragma once
#include "device/entry/cuda_entry.h"

namespace fccl::test {

enum class Stage {
  Whole,  // the product's kernel
  WireTwice,  // every pack is pushed to a second place too
  NoWait,  // the mailbox is read once, whatever is there
  NoPush,  // nothing is sent; the mailbox is read once and re-armed
  Local,  // no mailbox: launch, line, input, sum, norm and stores are left
  NoHeader,  // nor is the header stored at the peer
  NoAdvance,  // nor does the line advance
  Norm,  // nor is it read: the norm of the own row
  Empty,  // the launch alone
};
constexpr int kStages = 9;
const char* stage_name(Stage stage);
CudaKernel stage_kernel(Stage stage);  // not of Whole

// The whole kernel with a clock: when a warp had sent its part of the row, began to wait, had
// received, summed, knew the scale, was done; in cycles of its SM.
enum class Mark { Pushed, Waiting, Received, Summed, Scaled, Done };
constexpr int kMarks = 6;
struct WarpMarks {
  uint32_t clock[kMarks];
  uint32_t unused[2];
};
// Of the last kTimedCalls calls, in allreduce_out: WarpMarks
// [kTimedCalls][kTimedBlocks][kTimedWarps].
constexpr int kTimedCalls = 256;
constexpr int kTimedBlocks = 128;
constexpr int kTimedWarps = 32;
CudaKernel timed_kernel();

}  // namespace fccl::test
