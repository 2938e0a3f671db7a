// Limits and marks that host and kernels share.
#pragma once

// For functions that both the host and kernels call: device compilers want them marked.
#if defined(__CUDACC__)
#define FCCL_HOST_DEVICE __host__ __device__
#elif defined(__HIP__)
#define FCCL_HOST_DEVICE __attribute__((host, device))
#else
#define FCCL_HOST_DEVICE
#endif

namespace fccl {

constexpr int kMaxRanks = 16;  // ranks of one communicator

}  // namespace fccl
