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
#define FCCL_TARGET FCCL_CPU_LEVEL
// Readers of flag-ordered staging fetch it from the sender's window.
#define FCCL_PULL_STAGING 1
#define FCCL_ROW_POINTERS 1
#define FCCL_POLL_WITHOUT_BRANCHES 0
#if defined(__SANITIZE_THREAD__)
#define FCCL_TSAN 1
#else
#define FCCL_TSAN 0
#endif
