// Names of the CPU target. Entry files are compiled once per instruction-set level
// (FCCL_CPU_LEVEL); everything with a body lives in a namespace of that level, so that the linker
// cannot hand code of one level to another.
#pragma once
#define FCCL_DEVICE __attribute__((always_inline)) inline
#define FCCL_SLOW [[gnu::noinline]] inline
#define FCCL_UNROLL
#ifndef FCCL_CPU_LEVEL
#define FCCL_CPU_LEVEL scalar
#endif
#define FCCL_CPU_NAME_(level, suffix) level##suffix
#define FCCL_CPU_NAME(level, suffix) FCCL_CPU_NAME_(level, suffix)
// Wide packs: as many bytes as a register of the level holds, for kernels that move and add only. A
// slot looks the same in packs of either width. They have a namespace beside the level's own.
#define FCCL_WIDE_TARGET FCCL_CPU_NAME(FCCL_CPU_LEVEL, _wide)
#if defined(__AVX512F__)
#define FCCL_WIDE_PACK_BYTES 64
#elif defined(__AVX2__)
#define FCCL_WIDE_PACK_BYTES 32
#else
#define FCCL_WIDE_PACK_BYTES 16  // none
#endif
#ifdef FCCL_CPU_WIDE
#define FCCL_TARGET FCCL_WIDE_TARGET
#define FCCL_PACK_BYTES FCCL_WIDE_PACK_BYTES
#else
#define FCCL_TARGET FCCL_CPU_LEVEL
#define FCCL_PACK_BYTES 16
#endif
// Readers fetch headers, pads and staging from the sender's window.
#define FCCL_READERS_PULL 1
#define FCCL_SHORT_STRIDES 0
#define FCCL_ROW_POINTERS 1
#define FCCL_POLL_WITHOUT_BRANCHES 0
#if defined(__SANITIZE_THREAD__)
#define FCCL_TSAN 1
#else
#define FCCL_TSAN 0
#endif
