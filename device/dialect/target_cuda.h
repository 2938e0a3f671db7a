// Names of the CUDA target. Entry files are compiled once per shape of a row: FCCL_CUDA_PACKS packs
// per thread in registers, or 0 for rows of any length that are streamed. Everything with a body
// lives in a namespace of that shape.
#pragma once
#include <cstdint>

#define FCCL_DEVICE __device__ __forceinline__
#define FCCL_SLOW __device__ __noinline__ inline
#define FCCL_UNROLL _Pragma("unroll")
#define FCCL_SHARED __shared__

#ifndef FCCL_CUDA_PACKS
#error "an entry file says how many packs of a row a thread holds"
#endif
#define FCCL_CUDA_NAME_(packs) cuda_k##packs
#define FCCL_CUDA_NAME(packs) FCCL_CUDA_NAME_(packs)
#define FCCL_TARGET FCCL_CUDA_NAME(FCCL_CUDA_PACKS)
#define FCCL_ROW_PACKS FCCL_CUDA_PACKS
// Senders store into the receivers' windows: a remote load would be a round trip.
#define FCCL_READERS_PULL 0
#define FCCL_SHORT_STRIDES 1
#define FCCL_ROW_POINTERS (FCCL_CUDA_PACKS != 0)
#define FCCL_POLL_WITHOUT_BRANCHES 0
