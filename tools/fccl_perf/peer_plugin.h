/* The border between fccl_perf and the small libraries that bring an engine with C++ or launcher
 * needs of its own (gloo, MPI): fccl_perf opens libfccl_perf_<name>.so beside itself and calls
 * these. */
#ifndef FCCL_PERF_PEER_PLUGIN_H_
#define FCCL_PERF_PEER_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#define FCCL_PERF_PEER_ABI 1u

#ifdef __cplusplus
extern "C" {
#endif

struct FcclPerfPeer {
  uint32_t abi;
  const char* engine; /* name and version, for the line that says what was compared */
  /* Joins `ranks` ranks; `folder` is empty, private and the same for all of them. NULL, or what
   * failed. */
  const char* (*open)(int rank, int ranks, const char* folder, void** state);
  /* Sums `data` over the ranks, in place; done on return. */
  const char* (*all_reduce)(void* state, float* data, size_t count);
  void (*close)(void* state);
};

typedef const struct FcclPerfPeer* (*FcclPerfPeerEntry)(void);
#define FCCL_PERF_PEER_ENTRY "fccl_perf_peer"

#ifdef __cplusplus
}
#endif

#endif
