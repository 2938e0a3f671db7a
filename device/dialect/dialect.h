// The dialect: the ten words that kernels are written in, and the one place that asks which
// compiler this is. Each target has a pack (16 bytes and its arithmetic), a memory and a block
// header.
//
//   Pack, Floats<N>       16 bytes of a row; its N elements in fp32
//   load_peer/store_peer  relaxed 16-byte access to memory that peers store into
//   Block                 the execution context: id, count, steps (each_pack), sums, arrivals,
//   waits Slot, Lanes<T>        which pack of a step this is; a value that lives from one step to
//   the next prefetch              a load that a GPU starts now and a CPU does where it is used
//
// Laws: cooperative calls stand outside steps; code outside steps is uniform over lanes; a lane
// waits only for other ranks or blocks; a block takes its rows in increasing order.
#pragma once
#if defined(__CUDACC__)
#include "device/dialect/block_cuda.h"
#elif defined(__HIP__)
#include "device/dialect/block_hip.h"
#else
#include "device/dialect/block_cpu.h"
#endif
