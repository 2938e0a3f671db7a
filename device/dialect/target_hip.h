// Names of the HIP target (AMD GPUs with waves of 64: gfx942, gfx950). Entry files are compiled
// once per shape of a row: FCCL_HIP_PACKS packs per thread in registers, or 0 for rows of any
// length that are streamed. Compiler builtins only: no header and no device library of ROCm is
// needed, and including them does no harm.
#pragma once
#include <cstdint>

#define FCCL_DEVICE __attribute__((device, always_inline)) inline
// Inlined: a real call would give every kernel a stack.
#define FCCL_SLOW FCCL_DEVICE
#define FCCL_UNROLL _Pragma("unroll")
#define FCCL_SHARED __attribute__((shared))
#define FCCL_GLOBAL __attribute__((address_space(1)))
#define FCCL_CONSTANT __attribute__((address_space(4)))

#ifndef FCCL_HIP_PACKS
#error "an entry file says how many packs of a row a thread holds"
#endif
#define FCCL_HIP_NAME_(packs) hip_k##packs
#define FCCL_HIP_NAME(packs) FCCL_HIP_NAME_(packs)
#define FCCL_TARGET FCCL_HIP_NAME(FCCL_HIP_PACKS)
#define FCCL_ROW_PACKS FCCL_HIP_PACKS
// Senders store into the receivers' windows: a remote load would be a round trip.
#define FCCL_READERS_PULL 0
#define FCCL_SHORT_STRIDES 1
#define FCCL_ROW_POINTERS 0
// What has been loaded is waited for in front of a branch: the loads of a poll stand together.
#define FCCL_POLL_WITHOUT_BRANCHES 1
