/*
 * fccl: fused collective communication library. The whole public interface, in C99.
 *
 * The main call, fcclAllReduceResidualRMSNorm(), sums a [tokens, hidden] tensor over the ranks of a
 * communicator, adds the residual and normalises each row (RMSNorm), in one stream-ordered launch:
 *
 *     sum          = input[0] + input[1] + ... + input[ranks-1]
 *     residual_out = sum + residual
 *     norm_out     = residual_out / sqrt(mean(residual_out^2) + eps) * weight
 *
 * NUMERICS. The sum runs in rank order in fp32, the residual (then the bias) is added in fp32, one
 * rounding (to nearest, ties to even) gives residual_out; the norm reads the ROUNDED residual_out;
 * squares are summed in fp32 by a fixed binary tree over the element index; 1/sqrt is rounded once;
 * one rounding gives norm_out. So the bits are the same for every algorithm, rank, backend and launch
 * shape, zero signs included, and a row does not depend on the other rows. Every NaN that is stored is
 * the canonical one (0x7FFFFFFF, 0x7FFF). Subnormal numbers live. Squares are summed in fp32: a row
 * whose mean square leaves the fp32 range gives 0, Inf or NaN as that arithmetic does.
 * Source of RMSNorm: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", 2019.
 *
 * BUFFERS. Row-major [tokens, hidden], element type `datatype`, contiguous unless a stride says
 * otherwise. No buffer needs registration. Any alignment to the element size is legal; 16 bytes for
 * base and row stride is fast. They belong to the device of the communicator (host memory for the CPU
 * backend). Which may be equal (the same pointer and stride; a partial overlap is never legal):
 *
 *                    input   residual  weight  bias   residual_out  norm_out  allreduce_out
 *     residual_out   yes     yes       no      no     -             no        no
 *     norm_out       yes     yes       no      no     no            -         no
 *     allreduce_out  yes     yes       no      no     no            no        -
 *     recvbuff = sendbuff is legal in the plain collectives where the sizes allow it (as in NCCL).
 *
 * STREAMS. fcclStream_t is the vendor's stream (cudaStream_t, hipStream_t). NULL is the legacy default
 * stream; on CPU ranks only NULL is legal and the call is complete when it returns. When a call is
 * complete on its stream this rank may overwrite all of its inputs. GPU calls never block the host for
 * a peer and may be captured into graphs. Do not call between ncclGroupStart and ncclGroupEnd.
 * A kernel that follows a call as CUDA's programmatic dependent launch may be set up before the call
 * is complete: as CUDA asks of it, it waits for its grid dependency (griddepcontrol.wait) before it
 * touches what the call reads or writes.
 *
 * THREADS. Any thread may call. Calls on one communicator are serialised by its lock; fcclCommAbort,
 * fcclCommGetAsyncError, fcclGetLastError and fcclCommErrorWord take no lock. All ranks must issue the
 * calls of one communicator in the same order: that is the caller's duty, and so is the order over two
 * communicators that share ranks.
 *
 * ERRORS. Every function returns a code and never prints, exits or throws. fcclGetLastError() has one
 * line that says what to do. InvalidArgument and Unsupported change nothing and leave the communicator
 * usable; they depend only on arguments that are equal on all ranks, so all ranks get them alike.
 * A failure that involves peers (RemoteError, Timeout, Mismatch, Aborted) is sticky: destroy the
 * communicator and make a new one.
 */
#ifndef FCCL_H_
#define FCCL_H_

#include <stddef.h>
#include <stdint.h>

#define FCCL_MAJOR 0
#define FCCL_MINOR 1
#define FCCL_PATCH 0
#define FCCL_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define FCCL_VERSION_CODE FCCL_VERSION(FCCL_MAJOR, FCCL_MINOR, FCCL_PATCH)

#if defined(_WIN32)
#define FCCL_API
#else
#define FCCL_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fcclComm* fcclComm_t;
typedef struct fcclWindow* fcclWindow_t;
typedef void* fcclStream_t;

#define FCCL_UNIQUE_ID_BYTES 128
/* A secret: whoever has it can join. One id serves one init. Pass it over a channel you trust, never
 * as a program argument or in the environment. */
typedef struct {
  char internal[FCCL_UNIQUE_ID_BYTES];
} fcclUniqueId;

/* Result codes. 0 to 8 have NCCL's numbers. */
typedef enum {
  fcclSuccess = 0,
  fcclUnhandledDeviceError = 1, /* a device or driver call failed */
  fcclSystemError = 2,          /* a system call failed */
  fcclInternalError = 3,        /* a bug of fccl */
  fcclInvalidArgument = 4,      /* an argument has an illegal value; nothing was changed */
  fcclInvalidUsage = 5,         /* the call is not legal here (destroyed, forked, used id, ...) */
  fcclRemoteError = 6,          /* another rank failed or died; the text names it */
  fcclInProgress = 7,           /* non-blocking init is not done yet */
  fcclTimeout = 8,              /* a deadline expired; the text says for whom it waited */
  fcclUnsupported = 100,        /* known, but not built or not possible here; on all ranks alike */
  fcclMismatch = 101,           /* ranks disagree about a call or a setting; the text has both values */
  fcclAborted = 102,            /* the communicator was aborted */
  fcclOutOfResources = 103,     /* memory, descriptors, ... */
  fcclVersionMismatch = 104,    /* versions of the library or of a driver do not fit together */
  fcclBusy = 105                /* in use by another thread */
} fcclResult_t;

/* Element types, NCCL's numbers. Tensors: Float32, Float16, Bfloat16. The rest names outputs that are
 * known and answered with fcclUnsupported so far. In struct fields 0 is "default", so an int8 output
 * is named fcclInt8Output. */
typedef enum {
  fcclInt8 = 0,
  fcclUint8 = 1,
  fcclInt32 = 2,
  fcclUint32 = 3,
  fcclInt64 = 4,
  fcclUint64 = 5,
  fcclFloat16 = 6,
  fcclFloat32 = 7,
  fcclFloat64 = 8,
  fcclBfloat16 = 9,
  fcclFloat8e4m3 = 10,
  fcclFloat8e5m2 = 11,
  fcclInt8Output = 100,
  fcclFloat4e2m1 = 101
} fcclDataType_t;

/* Reductions, NCCL's numbers. Avg divides the fp32 sum by the number of ranks before the rounding. */
typedef enum { fcclSum = 0, fcclProd = 1, fcclMax = 2, fcclMin = 3, fcclAvg = 4 } fcclRedOp_t;

typedef enum {
  fcclBackendAuto = 0,
  fcclBackendCpu = 1,
  fcclBackendCuda = 2,
  fcclBackendHip = 3
} fcclBackend_t;

/* What a plan may use. 0 in a query means that nothing is to be launched (zero tokens, one rank). */
typedef enum {
  fcclAlgoNone = 0,
  fcclAlgoLocal = 1,           /* one rank: no exchange */
  fcclAlgoOneshotLamport = 2,  /* push to all, the data is its own flag */
  fcclAlgoOneshotLL = 3,       /* push to all, flag in each line */
  fcclAlgoOneshotFlags = 4,    /* push to all, signal pads */
  fcclAlgoTwoshotRows = 5,     /* signal pads, each rank owns rows */
  fcclAlgoTwoshotCols = 6,     /* signal pads, each rank owns columns */
  fcclAlgoTwoshotRowsLamport = 7,
  fcclAlgoTwoshotColsLamport = 8
} fcclAlgo_t;

/* ------------------------------------------------------------------ growing structs
 * They begin with size, magic and version; use the initialiser macros. 0 means "default" in every
 * field, switches are 0 default, 1 on, -1 off. A size below version 1 or a wrong magic is
 * fcclInvalidArgument; a longer struct of a newer header is accepted while its unknown tail is zero. */
#define FCCL_CONFIG_MAGIC 0xFCC10001u
#define FCCL_FUSED_ARGS_MAGIC 0xFCC10002u
#define FCCL_PLAN_INFO_MAGIC 0xFCC10003u
#define FCCL_MEMORY_INFO_MAGIC 0xFCC10004u
#define FCCL_VARIABLE_INFO_MAGIC 0xFCC10005u
#define FCCL_COMM_STATS_MAGIC 0xFCC10006u

/* How to make a communicator. Precedence: environment, then this struct, then the default. What must
 * be equal on all ranks (marked =) is compared in init, and a difference is named. */
typedef struct {
  size_t size;
  uint32_t magic;
  uint32_t version;
  int32_t backend;            /* = fcclBackend_t; auto: the best that all ranks have */
  int32_t device;             /* FCCL_DEVICE(ordinal); 0: the device current in the calling thread */
  int32_t blocking;           /* -1: init returns fcclInProgress at once, poll fcclCommGetAsyncError */
  int32_t shared_device;      /* = 1: several ranks may share one GPU; default refused */
  int32_t check;              /* = 1: compare op, shape, types and call number of every call */
  int32_t deterministic;      /* = default on; -1 permits hardware-ordered sums (multicast) */
  int32_t max_blocks;         /* = upper bound of blocks a kernel takes */
  int32_t datatype;           /* = with max_tokens and hidden: the tensor that must run unchunked */
  int64_t max_tokens;         /* = */
  int64_t hidden;             /* = */
  int64_t init_timeout_ms;    /* 0: 120 000 */
  int64_t call_timeout_ms;    /* 0: 600 000 */
  int64_t destroy_timeout_ms; /* 0: 10 000 */
  const char* name;           /* for logs and error texts; at most 63 bytes are kept */
} fcclConfig;
#define FCCL_CONFIG_INITIALIZER \
  { sizeof(fcclConfig), FCCL_CONFIG_MAGIC, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL }
#define FCCL_DEVICE(ordinal) ((ordinal) + 1)

/* One output tensor. ptr NULL: not wanted. type 0: the datatype of the call. */
typedef struct {
  int32_t type;         /* fcclDataType_t */
  int32_t scale_type;   /* type of the scales; quantised outputs only */
  int32_t scale_layout; /* 0: one scale, 1: one per row, 2: one per group */
  int32_t group_size;   /* elements of a group */
  int64_t row_stride;   /* elements between rows; 0: hidden */
  void* ptr;
  void* scale;
} fcclOutput;

/* flags of fcclFusedArgs. An unknown bit is fcclInvalidArgument. */
#define FCCL_WEIGHT_STABLE 0x1u  /* weight and bias may be read before earlier work of the stream ends */
#define FCCL_INPUTS_STABLE 0x2u  /* the same for input and residual */
#define FCCL_EARLY_TRIGGER 0x4u  /* dependent launches that follow may be set up before this rank has heard of
                                    its peers, not only after; what they hold must not be what a kernel
                                    needs that a peer waits for */
#define FCCL_QUANT_AFTER_ROUNDING 0x8u /* quantise the rounded norm_out instead of its fp32 value */

#define FCCL_NUMERICS_FUSED 0      /* one rounding, after the residual */
#define FCCL_NUMERICS_AS_UNFUSED 1 /* a further rounding after the sum, as all_reduce then add-norm gives */

#define FCCL_RESIDUAL_REPLICATED 0 /* every rank has all rows */
#define FCCL_RESIDUAL_ROW_SHARDED 1 /* rank r has, and gets, the rows of fcclRowRange(tokens, nranks, r) */

/* The main call with everything. Equal on all ranks: tokens, hidden, types, eps, numerics,
 * residual_layout, weight_offset, flags, which pointers are NULL, and the CONTENT of residual, weight
 * and bias. Pointers, alignment and strides may differ by rank. */
typedef struct {
  size_t size;
  uint32_t magic;
  uint32_t version;
  int64_t tokens;          /* rows, >= 0; a rank without rows passes the padded count and any readable buffer */
  int64_t hidden;          /* elements of a row, >= 1 */
  int64_t input_stride;    /* elements between rows; 0: hidden */
  int64_t residual_stride; /* elements between rows; 0: hidden */
  int32_t datatype;        /* of input and residual: fcclFloat32, fcclFloat16, fcclBfloat16 */
  int32_t weight_type;     /* 0: datatype; fcclFloat32 is legal with every datatype */
  int32_t bias_type;       /* 0: datatype; fcclFloat32 */
  int32_t weight_offset;   /* 0: norm * weight; 1: norm * (1 + weight) */
  int32_t numerics;        /* FCCL_NUMERICS_... */
  int32_t residual_layout; /* FCCL_RESIDUAL_... */
  uint32_t flags;          /* FCCL_... bits */
  float eps;               /* >= 0 and finite */
  fcclOutput residual_out; /* [tokens, hidden], or the own rows if row-sharded; optional */
  fcclOutput norm_out;     /* [tokens, hidden] */
  fcclOutput allreduce_out;/* [tokens, hidden]: the sum, rounded; optional */
  fcclOutput quant_out;    /* quantised norm; optional */
  const void* input;       /* [tokens, hidden] */
  const void* residual;    /* [tokens, hidden], or the own rows if row-sharded; NULL: nothing is added */
  const void* weight;      /* [hidden] */
  const void* bias;        /* [hidden]; NULL: none. Added after the residual, before the rounding */
  const int32_t* valid_tokens; /* device memory: rows beyond this count are not computed (padded graphs) */
} fcclFusedArgs;
#define FCCL_OUTPUT_INITIALIZER { 0, 0, 0, 0, 0, NULL, NULL }
#define FCCL_FUSED_ARGS_INITIALIZER                                                             \
  { sizeof(fcclFusedArgs), FCCL_FUSED_ARGS_MAGIC, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0u, 0.0f,     \
    FCCL_OUTPUT_INITIALIZER, FCCL_OUTPUT_INITIALIZER, FCCL_OUTPUT_INITIALIZER,                   \
    FCCL_OUTPUT_INITIALIZER, NULL, NULL, NULL, NULL, NULL }

/* What a call will do, filled by the code that the call itself uses. */
typedef struct {
  size_t size;
  uint32_t magic;
  uint32_t version;
  int32_t supported;      /* 1 or 0; the reason is in `reason` */
  int32_t algorithm;      /* fcclAlgo_t */
  int32_t blocks;         /* blocks of one launch */
  int32_t threads;        /* threads of one block */
  int64_t launches;       /* chunks: one launch each */
  int64_t chunk_tokens;   /* rows of one launch */
  int64_t capacity_bytes; /* bytes of one tensor that run in one launch by this algorithm */
  int64_t wire_bytes;     /* bytes this rank pushes to its peers in the call */
  char algorithm_name[32];
  char reason[256];       /* why this algorithm, or why not */
} fcclPlanInfo;
#define FCCL_PLAN_INFO_INITIALIZER \
  { sizeof(fcclPlanInfo), FCCL_PLAN_INFO_MAGIC, 1, 0, 0, 0, 0, 0, 0, 0, 0, {0}, {0} }

typedef struct {
  size_t size;
  uint32_t magic;
  uint32_t version;
  int64_t workspace_bytes;   /* of the window this rank owns and its peers map */
  int64_t granule_bytes;     /* unit that allocations are rounded to */
  int64_t mapped_bytes;      /* peers' windows mapped here: addresses, no further memory */
  int64_t user_window_bytes; /* registered by fcclCommWindowRegister */
  int64_t capacity_bytes;    /* of one [tokens, hidden] tensor that runs unchunked by every algorithm */
} fcclMemoryInfo;
#define FCCL_MEMORY_INFO_INITIALIZER \
  { sizeof(fcclMemoryInfo), FCCL_MEMORY_INFO_MAGIC, 1, 0, 0, 0, 0, 0 }

/* One environment variable of the library. Strings live as long as the process. */
typedef struct {
  size_t size;
  uint32_t magic;
  uint32_t version;
  int32_t from_environment; /* 1: set by the environment */
  int32_t agreed;           /* 1: must be equal on all ranks */
  char name[48];
  char type[16];
  char value[256];
  char fallback[64];
  char doc[256];
} fcclVariableInfo;
#define FCCL_VARIABLE_INFO_INITIALIZER \
  { sizeof(fcclVariableInfo), FCCL_VARIABLE_INFO_MAGIC, 1, 0, 0, {0}, {0}, {0}, {0}, {0} }

/* Counters of a communicator: which paths ran. */
typedef struct {
  size_t size;
  uint32_t magic;
  uint32_t version;
  uint64_t calls;          /* calls accepted */
  uint64_t launches;       /* launches made (captured ones count once, at capture) */
  uint64_t by_algorithm[16]; /* launches by fcclAlgo_t */
  uint64_t slow_rows;      /* calls that took the unaligned path */
  uint64_t unfused;        /* calls given to an engine */
} fcclCommStats;
#define FCCL_COMM_STATS_INITIALIZER \
  { sizeof(fcclCommStats), FCCL_COMM_STATS_MAGIC, 1, 0, 0, {0}, 0, 0 }

/* ------------------------------------------------------------------ version and errors */

/* The version of the loaded library, FCCL_VERSION(major, minor, patch). Before 1.0 the soname changes
 * with every break of the ABI. Returns InvalidArgument for NULL. */
FCCL_API fcclResult_t fcclGetVersion(int* version);

/* A constant text for a code; never NULL. */
FCCL_API const char* fcclGetErrorString(fcclResult_t result);

/* The text of the last failure: of `comm`, or of this thread for NULL (a failed init leaves no
 * handle). Never NULL; empty if there was none. A copy that is valid until this thread's next call of
 * fccl. A later success does not wipe it. Takes no lock. */
FCCL_API const char* fcclGetLastError(fcclComm_t comm);

/* Log lines go to `callback` (NULL: back to FCCL_DEBUG_FILE or stderr). It may be called by any
 * thread, the library's own included, and must not call fccl. Without FCCL_DEBUG it gets warnings. */
typedef void (*fcclLogCallback_t)(void* context, int32_t level, const char* line);
FCCL_API fcclResult_t fcclSetLogCallback(fcclLogCallback_t callback, void* context);

/* ------------------------------------------------------------------ making and ending communicators */

/* Makes an id and opens its rendezvous, which lives in this process until the init that uses it is
 * done or FCCL_INIT_TIMEOUT_MS has passed. With FCCL_COMM_ID (and FCCL_COMM_SECRET_FILE) the id stands
 * for that address and rank 0 opens it.
 * Returns: InvalidArgument (NULL, bad variable), SystemError (no socket), OutOfResources. */
FCCL_API fcclResult_t fcclGetUniqueId(fcclUniqueId* id);

/* Joins the communicator of `id` as `rank` of `nranks` (1 to 16) with the default config. Blocks until
 * all ranks have joined or the deadline passes. On failure *comm is NULL on every rank, and the text
 * (fcclGetLastError(NULL)) names the rank that was missing, wrong or failed. Binds to the device that
 * is current in the calling thread; the current device is unchanged on return.
 * Returns: InvalidArgument, InvalidUsage (used id, two ranks with one number, shared GPU without
 * shared_device), Timeout, RemoteError, Mismatch, VersionMismatch, Unsupported, OutOfResources,
 * SystemError, UnhandledDeviceError. */
FCCL_API fcclResult_t fcclCommInitRank(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank);

/* The same with a config (NULL: default). With config.blocking = -1 it returns fcclInProgress with a
 * valid handle; fcclCommGetAsyncError tells when and how init ended, fcclCommAbort ends it early. */
FCCL_API fcclResult_t fcclCommInitRankConfig(fcclComm_t* comm, int nranks, const fcclUniqueId* id,
                                             int rank, const fcclConfig* config);

/* Makes `nranks` communicators in this process, one for each entry of `devices` (ordinals; NULL:
 * 0..nranks-1; ignored on the CPU). comms[r] is used by one thread at a time; CPU ranks block in
 * calls, so each needs a thread of its own. Results as fcclCommInitRank. */
FCCL_API fcclResult_t fcclCommInitAll(fcclComm_t* comms, int nranks, const int* devices);
FCCL_API fcclResult_t fcclCommInitAllConfig(fcclComm_t* comms, int nranks, const int* devices,
                                            const fcclConfig* config);

/* The caller's allgather: gathers bytes_per_rank (at most 4096) from each rank into recv, in rank
 * order; returns 0 on success. It is called a fixed number of times (at most 6), on the calling thread,
 * also after a local failure, so that no rank is left waiting. Our deadline cannot bound it. */
typedef int (*fcclAllgather_t)(void* context, const void* send, void* recv, size_t bytes_per_rank);
FCCL_API fcclResult_t fcclCommInitAllgather(fcclComm_t* comm, int nranks, int rank,
                                            fcclAllgather_t allgather, void* context,
                                            const fcclConfig* config);

/* Splits `comm`, collective over all its ranks: ranks of equal `color` form a new communicator, in the
 * order of `key` then of rank. color < 0: this rank joins none and *newcomm is NULL.
 * `config` NULL: the parent's. Results as fcclCommInitRank. */
FCCL_API fcclResult_t fcclCommSplit(fcclComm_t comm, int color, int key, fcclComm_t* newcomm,
                                    const fcclConfig* config);

/* Waits until the calls issued here are complete and all ranks have finalized, within
 * destroy_timeout_ms. Afterwards only Destroy, Abort and the queries are legal.
 * Returns: InvalidArgument, InvalidUsage, Timeout, RemoteError, Aborted. */
FCCL_API fcclResult_t fcclCommFinalize(fcclComm_t comm);

/* Frees the communicator within destroy_timeout_ms: waits for this rank's own calls, never for peers
 * (call fcclCommFinalize first to meet them) nor for graphs: a graph that captured calls keeps the mappings alive, and its later replays end at once
 * as aborted. The handle is invalid on return whatever the code. NULL is Success. */
FCCL_API fcclResult_t fcclCommDestroy(fcclComm_t comm);

/* Marks the communicator as aborted, from any thread at any time, init included; may be called twice.
 * Returns at once; a blocked call returns within 100 ms with fcclAborted. Peers are told. The handle
 * stays valid until fcclCommDestroy. */
FCCL_API fcclResult_t fcclCommAbort(fcclComm_t comm);

/* *result: Success, InProgress (init), or the sticky failure. Reads host memory only, takes no lock. */
FCCL_API fcclResult_t fcclCommGetAsyncError(fcclComm_t comm, fcclResult_t* result);

/* A word in host memory that is 0 while all is well and a result code after a failure: test it each
 * step without a call. On a GPU this rank's own expiry shows after the next call or GetAsyncError; what
 * peers report shows by itself. Valid until Destroy. After an expiry the outputs of calls in flight are
 * unspecified and the stream goes on. */
FCCL_API fcclResult_t fcclCommErrorWord(fcclComm_t comm, const volatile uint32_t** word);

/* The deadline of each later wait in calls, in ms (> 0); captured graphs obey it too. */
FCCL_API fcclResult_t fcclCommSetTimeout(fcclComm_t comm, int64_t ms);

FCCL_API fcclResult_t fcclCommCount(fcclComm_t comm, int* nranks);
FCCL_API fcclResult_t fcclCommUserRank(fcclComm_t comm, int* rank);
/* The device ordinal; -1 on the CPU. */
FCCL_API fcclResult_t fcclCommDevice(fcclComm_t comm, int* device);
FCCL_API fcclResult_t fcclCommBackend(fcclComm_t comm, int32_t* backend);

/* ------------------------------------------------------------------ questions */

/* Bytes that a communicator of this config takes on each rank; equals fcclCommMemory().workspace_bytes
 * within one granule. Leaves nothing behind. config.backend auto: the backend that init would take
 * alone in this process. */
FCCL_API fcclResult_t fcclWorkspaceBytes(int nranks, const fcclConfig* config, int64_t* bytes);
FCCL_API fcclResult_t fcclCommMemory(fcclComm_t comm, fcclMemoryInfo* info);

/* What fcclAllReduceResidualRMSNormEx would do with `args` (pointers are looked at for NULL only). */
FCCL_API fcclResult_t fcclCommQuery(fcclComm_t comm, const fcclFusedArgs* args, fcclPlanInfo* info);

/* The same before any communicator exists, for `nranks` ranks on this host as far as this process can
 * know it; leaves no descriptor, thread or memory behind. */
FCCL_API fcclResult_t fcclQuerySupport(int nranks, const fcclConfig* config, const fcclFusedArgs* args,
                                       fcclPlanInfo* info);

FCCL_API fcclResult_t fcclCommGetStats(fcclComm_t comm, fcclCommStats* stats);

/* Variable number `index` (0, 1, ...) of the table of environment variables; InvalidArgument past the
 * end. */
FCCL_API fcclResult_t fcclVariable(int index, fcclVariableInfo* info);

/* JSON text of what the library knows: the machine for NULL, else machine, ranks, links and agreed
 * settings of `comm`. Writes at most `bytes` with a terminating 0; *needed gets the full size. */
FCCL_API fcclResult_t fcclDescribe(fcclComm_t comm, char* text, size_t bytes, size_t* needed);

/* ------------------------------------------------------------------ memory */

/* Memory of the communicator's backend that peers can map; local call. Free it with fcclMemFree before
 * or after Destroy of windows, not while a peer may use it. bytes > 0. */
FCCL_API fcclResult_t fcclMemAlloc(fcclComm_t comm, void** ptr, size_t bytes);
FCCL_API fcclResult_t fcclMemFree(fcclComm_t comm, void* ptr);

/* Maps `ptr` (from fcclMemAlloc, same bytes on all ranks) into the peers; collective.
 * fcclCommWindowPeer gives the address of a peer's window here. */
FCCL_API fcclResult_t fcclCommWindowRegister(fcclComm_t comm, void* ptr, size_t bytes,
                                             fcclWindow_t* window);
FCCL_API fcclResult_t fcclCommWindowPeer(fcclComm_t comm, fcclWindow_t window, int peer, void** ptr);
FCCL_API fcclResult_t fcclCommWindowDeregister(fcclComm_t comm, fcclWindow_t window);

/* ------------------------------------------------------------------ the operations */

/* The rows of `rank` when `tokens` rows are shared out: floor(tokens / nranks) each, the remainder one
 * each to the lowest ranks. */
FCCL_API fcclResult_t fcclRowRange(int64_t tokens, int nranks, int rank, int64_t* first,
                                   int64_t* count);

/* The fused operation (see NUMERICS and BUFFERS above).
 *   input, residual, residual_out, norm_out: [tokens, hidden] of `datatype`, aligned to the element
 *   weight: [hidden] of `datatype`;  eps: >= 0
 *   residual NULL: nothing is added; residual_out NULL: not stored; the rest must not be NULL
 * tokens = 0 is a full call that launches nothing.
 * Returns: InvalidArgument, InvalidUsage, Unsupported, OutOfResources (a row larger than the
 * workspace; the text says which setting to raise), and on the CPU also the failures of the exchange:
 * Timeout, RemoteError, Mismatch, Aborted. On a GPU those show in fcclCommGetAsyncError. */
FCCL_API fcclResult_t fcclAllReduceResidualRMSNorm(const void* input, const void* residual,
                                                   const void* weight, void* residual_out,
                                                   void* norm_out, int64_t tokens, int64_t hidden,
                                                   fcclDataType_t datatype, float eps,
                                                   fcclComm_t comm, fcclStream_t stream);

FCCL_API fcclResult_t fcclAllReduceResidualRMSNormEx(const fcclFusedArgs* args, fcclComm_t comm,
                                                     fcclStream_t stream);

/* The plain collectives, over the same workspace; arguments and sizes as in NCCL (counts in elements).
 * Types Float32, Float16, Bfloat16; sums in fp32 in rank order, one rounding. Results as above. */
FCCL_API fcclResult_t fcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                    fcclDataType_t datatype, fcclRedOp_t op, fcclComm_t comm,
                                    fcclStream_t stream);
FCCL_API fcclResult_t fcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                        fcclDataType_t datatype, fcclRedOp_t op, fcclComm_t comm,
                                        fcclStream_t stream);
FCCL_API fcclResult_t fcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                    fcclDataType_t datatype, fcclComm_t comm, fcclStream_t stream);
FCCL_API fcclResult_t fcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                    fcclDataType_t datatype, int root, fcclComm_t comm,
                                    fcclStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* FCCL_H_ */
