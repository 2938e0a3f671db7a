/* libfccl_perf_mpi.so: MPI_Allreduce. The ranks must be those that mpirun started: fccl_perf
 * becomes mpirun of itself when it is asked for this peer. */
#include <mpi.h>
#include <stdio.h>

#include "fccl_perf/peer_plugin.h"

static char failure[MPI_MAX_ERROR_STRING + 64];
static char engine[MPI_MAX_LIBRARY_VERSION_STRING];

static const char* check(int code, const char* what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code == MPI_SUCCESS) return NULL;
  MPI_Error_string(code, text, &length);
  snprintf(failure, sizeof(failure), "%s: %s", what, text);
  return failure;
}

static const char* open_ranks(int rank, int ranks, const char* folder, void** state) {
  int mine = -1;
  int all = 0;
  int initialised = 0;
  const char* problem = NULL;
  (void)folder;
  MPI_Initialized(&initialised);
  if (!initialised) problem = check(MPI_Init(NULL, NULL), "MPI_Init");
  if (problem != NULL) return problem;
  MPI_Comm_rank(MPI_COMM_WORLD, &mine);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  if (mine != rank || all != ranks) {
    snprintf(failure,
             sizeof(failure),
             "MPI has rank %d of %d, this is rank %d of %d: one process for each rank is needed",
             mine,
             all,
             rank,
             ranks);
    return failure;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  *state = engine;
  return NULL;
}

static const char* all_reduce(void* state, float* data, size_t count) {
  (void)state;
  return check(MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
               "MPI_Allreduce");
}

static void close_ranks(void* state) {
  (void)state;
  MPI_Finalize();
}

static struct FcclPerfPeer peer = {FCCL_PERF_PEER_ABI, engine, open_ranks, all_reduce, close_ranks};

__attribute__((visibility("default"))) const struct FcclPerfPeer* fccl_perf_peer(void) {
  int length = 0;
  char* end = engine;
  MPI_Get_library_version(engine, &length);
  while (*end != '\0' && *end != ',' && *end != '\n') ++end;
  *end = '\0';
  return &peer;
}
