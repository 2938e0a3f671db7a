// What the execution context of block_gpu.h is made of on HIP. A wave has 64 lanes; a group of the
// tree of squares is half a wave, and no word here reaches over that half.
#pragma once
#include "device/dialect/memory_hip.h"

namespace fccl::FCCL_TARGET {

FCCL_DEVICE int thread_index() {
  return static_cast<int>(__builtin_amdgcn_workitem_id_x());
}
FCCL_DEVICE int thread_count() {
  return static_cast<int>(__builtin_amdgcn_workgroup_size_x());
}
FCCL_DEVICE int block_index() {
  return static_cast<int>(__builtin_amdgcn_workgroup_id_x());
}
// The first of the hidden arguments (code object 5 and later).
FCCL_DEVICE int block_count() {
  return *(const FCCL_CONSTANT int*)__builtin_amdgcn_implicitarg_ptr();
}

// What lane ^ o of the group holds, where lanes that differ in the bits below o only hold the same:
// the levels of a tree below o are summed. So a mirror of 8 and of 16 lanes reaches a partner as
// good as the one meant.
FCCL_DEVICE float sum_of_partner(float x, int o) {
  constexpr int kSwap1 = 0xB1;  // quad_perm:[1,0,3,2]
  constexpr int kSwap2 = 0x4E;  // quad_perm:[2,3,0,1]
  constexpr int kHalfMirror = 0x141;  // lane 7 - i of 8
  constexpr int kMirror = 0x140;  // lane 15 - i of 16
  constexpr int kXor16 = 0x401F;
  const int bits = __builtin_bit_cast(int, x);
  int got = 0;
  switch (o) {
    case 1:
      got = __builtin_amdgcn_update_dpp(0, bits, kSwap1, 0xF, 0xF, true);
      break;
    case 2:
      got = __builtin_amdgcn_update_dpp(0, bits, kSwap2, 0xF, 0xF, true);
      break;
    case 4:
      got = __builtin_amdgcn_update_dpp(0, bits, kHalfMirror, 0xF, 0xF, true);
      break;
    case 8:
      got = __builtin_amdgcn_update_dpp(0, bits, kMirror, 0xF, 0xF, true);
      break;
    default:
      got = __builtin_amdgcn_ds_swizzle(bits, kXor16);
      break;
  }
  return __builtin_bit_cast(float, got);
}

// Barriers, and those that carry a failure. A lane that failed sets one of two words, in turn, in
// front of each barrier; all look at it behind. A lane that is ahead sets the other word, and
// cannot come to this one again before all have looked. Words are never cleared, for a lane that
// failed stays so. They are zeroed at the start; Exchange::begin meets before anybody asks any().
class Barrier {
 public:
  FCCL_DEVICE Barrier() {
    if (thread_index() == 0) failed()[0] = failed()[1] = 0;
  }
  FCCL_DEVICE void meet() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  // The stores of the whole block have been performed.
  FCCL_DEVICE void meet_after_stores() {
    stores_done();
    meet();
  }
  FCCL_DEVICE bool any(bool mine) {
    uint32_t& word = failed()[turn_];
    turn_ ^= 1;
    if (mine) word = 1;
    meet();
    return uniform(word) != 0;
  }

 private:
  FCCL_DEVICE static uint32_t* failed() {
    FCCL_SHARED uint32_t words[2];
    return words;
  }

  int turn_ = 0;
};

// 64 cycles: what a poll takes is many times as long.
FCCL_DEVICE void pause_between_polls() {
  __builtin_amdgcn_s_sleep(1);
}

// Tells the compiler that no load is under way when the next row begins (s_waitcnt vmcnt(0)). Of a
// lane beyond the row's end it would not know, and would wait where the next row's loads are
// issued, in the first row too: for every push.
FCCL_DEVICE void loads_of_row_end() {
  __builtin_amdgcn_s_waitcnt(0xF70);
}

// A byte: the compiler may merge the store of a word with one to shared memory, by a choice of
// addresses, and the block would live in scratch.
using ReportWord = uint8_t;

}  // namespace fccl::FCCL_TARGET

#include "device/dialect/block_gpu.h"
