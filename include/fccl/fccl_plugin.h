/*
 * fccl_plugin.h: the tables by which plugins extend fccl, in C99. A plugin is a shared library that
 * exports one of the symbols below; fccl loads it by the path in the named variable.
 *
 * State of this version: the tables are declared, so that plugins can be written and reviewed; the
 * library loads none of them yet, and a communicator over several hosts answers fcclUnsupported.
 *
 * Rules for every table: it begins with `abi` and `size`; functions return fcclResult_t (fccl.h) and
 * never block for longer than `timeout_ms` where they take one; they may be called from any thread,
 * but not from two at once for one context; a NULL optional member means "not offered".
 */
#ifndef FCCL_PLUGIN_H_
#define FCCL_PLUGIN_H_

#include <fccl/fccl.h>

#define FCCL_PLUGIN_ABI 1

/* Engine: an existing library (NCCL, RCCL, MPI) that moves unfused and inter-host traffic on the
 * caller's stream. Symbol: fcclEnginePlugin. */
typedef struct {
  uint32_t abi;  /* FCCL_PLUGIN_ABI */
  uint32_t size; /* sizeof(fcclEnginePlugin_t) */
  const char* name;
  /* Makes the engine's own communicator; `allgather` connects the ranks. */
  fcclResult_t (*open)(int nranks, int rank, fcclAllgather_t allgather, void* allgather_context,
                       int64_t timeout_ms, void** context);
  fcclResult_t (*close)(void* context);
  fcclResult_t (*all_reduce)(void* context, const void* send, void* receive, size_t count,
                             fcclDataType_t datatype, fcclRedOp_t op, fcclStream_t stream);
  fcclResult_t (*reduce_scatter)(void* context, const void* send, void* receive, size_t receive_count,
                                 fcclDataType_t datatype, fcclRedOp_t op, fcclStream_t stream);
  fcclResult_t (*all_gather)(void* context, const void* send, void* receive, size_t send_count,
                             fcclDataType_t datatype, fcclStream_t stream);
  fcclResult_t (*abort)(void* context); /* optional: ends what is blocked, from any thread */
} fcclEnginePlugin_t;

/* Net: a transport between hosts. Symbol: fcclNetPlugin. */
typedef struct {
  uint32_t abi;
  uint32_t size;
  const char* name;
  fcclResult_t (*devices)(int* count);
  fcclResult_t (*listen)(int device, void* handle, size_t handle_bytes, void** listener);
  fcclResult_t (*connect)(int device, const void* handle, int64_t timeout_ms, void** connection);
  fcclResult_t (*accept)(void* listener, int64_t timeout_ms, void** connection);
  fcclResult_t (*register_memory)(void* connection, void* ptr, size_t bytes, void** region);
  fcclResult_t (*deregister_memory)(void* connection, void* region);
  fcclResult_t (*send)(void* connection, const void* ptr, size_t bytes, void* region, void** request);
  fcclResult_t (*receive)(void* connection, void* ptr, size_t bytes, void* region, void** request);
  fcclResult_t (*test)(void* request, int* done, size_t* bytes);
  fcclResult_t (*close)(void* connection);
} fcclNetPlugin_t;

/* Tuner: changes the costs by which algorithms are chosen. Asked on rank 0 in init; its answer is sent
 * to all ranks. Symbol: fcclTunerPlugin. */
typedef struct {
  uint32_t abi;
  uint32_t size;
  const char* name;
  /* Writes a tuner file's text (see FCCL_TUNER_FILE) for the communicator that `description` (the JSON
   * of fcclDescribe) tells of; *needed gets the full size with the terminating 0. */
  fcclResult_t (*costs)(const char* description, char* text, size_t bytes, size_t* needed);
} fcclTunerPlugin_t;

/* Profiler: hears of calls. Symbol: fcclProfilerPlugin. Called on the calling thread; must be quick. */
typedef struct {
  uint32_t abi;
  uint32_t size;
  const char* name;
  void (*call_begin)(void* context, uint64_t call, const char* operation, int64_t rows, int64_t hidden,
                     int32_t datatype, int32_t algorithm);
  void (*call_end)(void* context, uint64_t call, fcclResult_t result);
  void* context;
} fcclProfilerPlugin_t;

#endif /* FCCL_PLUGIN_H_ */
