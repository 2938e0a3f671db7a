/* The main job as a program that links nothing of fccl: two ranks as processes, the unique id
 * through a pipe, the fused operation on CPU ranks, checked. Usage: main_job path/to/libfccl.so */
#include <dlfcn.h>
#include <fccl/fccl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kRanks = 2, kTokens = 5, kHidden = 1000, kCount = kTokens * kHidden };

static fcclResult_t (*get_unique_id)(fcclUniqueId*);
static fcclResult_t (*init_rank)(fcclComm_t*, int, const fcclUniqueId*, int, const fcclConfig*);
static fcclResult_t (*fused)(const void*, const void*, const void*, void*, void*, int64_t, int64_t,
                             fcclDataType_t, float, fcclComm_t, fcclStream_t);
static fcclResult_t (*destroy)(fcclComm_t);
static const char* (*last_error)(fcclComm_t);

/* A function pointer from dlsym without a cast that C forbids. */
static void find(void* library, const char* name, void* function) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "no %s: %s\n", name, dlerror());
    exit(1);
  }
  memcpy(function, &symbol, sizeof(symbol));
}

static void load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  find(library, "fcclGetUniqueId", &get_unique_id);
  find(library, "fcclCommInitRankConfig", &init_rank);
  find(library, "fcclAllReduceResidualRMSNorm", &fused);
  find(library, "fcclCommDestroy", &destroy);
  find(library, "fcclGetLastError", &last_error);
}

static void must(fcclResult_t result, fcclComm_t comm, const char* what) {
  if (result == fcclSuccess) return;
  fprintf(stderr, "%s: %s\n", what, last_error(comm));
  exit(1);
}

static float input_of(int rank, int index) {
  return (float)((index * 7 + rank * 13) % 31 - 15);
}
static float residual_of(int index) {
  return (float)(index % 11 - 5);
}

/* The elements of the outputs that are wrong. */
static int count_wrong(const float* residual_out, const float* norm_out, const float* weight,
                       float eps) {
  int wrong = 0;
  for (int row = 0; row < kTokens; ++row) {
    double squares = 0;
    for (int i = 0; i < kHidden; ++i) {
      const int at = row * kHidden + i;
      const double truth = input_of(0, at) + input_of(1, at) + residual_of(at);
      wrong += residual_out[at] != (float)truth;
      squares += truth * truth;
    }
    for (int i = 0; i < kHidden; ++i) {
      const int at = row * kHidden + i;
      const double truth = residual_out[at] / sqrt(squares / kHidden + eps) * weight[i];
      wrong += !(fabs(norm_out[at] - truth) <= 1e-6 * fabs(truth));
    }
  }
  return wrong;
}

static int run_rank(const char* path, int rank, int id_pipe[2]) {
  static float input[kCount], residual[kCount], weight[kHidden], residual_out[kCount],
      norm_out[kCount];
  const float eps = 1e-5f;
  fcclUniqueId id;
  fcclComm_t comm = NULL;
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  config.backend = fcclBackendCpu;
  config.init_timeout_ms = 60000;

  load(path);
  if (rank == 0) {
    must(get_unique_id(&id), NULL, "fcclGetUniqueId");
    if (write(id_pipe[1], &id, sizeof(id)) != (ssize_t)sizeof(id)) return 1;
  } else if (read(id_pipe[0], &id, sizeof(id)) != (ssize_t)sizeof(id)) {
    return 1;
  }
  must(init_rank(&comm, kRanks, &id, rank, &config), NULL, "fcclCommInitRankConfig");
  for (int i = 0; i < kCount; ++i) {
    input[i] = input_of(rank, i);
    residual[i] = residual_of(i);
  }
  for (int i = 0; i < kHidden; ++i) weight[i] = 0.5f + (float)(i % 4) / 4;
  must(fused(input,
             residual,
             weight,
             residual_out,
             norm_out,
             kTokens,
             kHidden,
             fcclFloat32,
             eps,
             comm,
             NULL),
       comm,
       "fcclAllReduceResidualRMSNorm");
  must(destroy(comm), NULL, "fcclCommDestroy");

  const int wrong = count_wrong(residual_out, norm_out, weight, eps);
  printf("rank %d: %d of %d elements wrong\n", rank, wrong, 2 * kCount);
  return wrong == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  int id_pipe[2];
  int failed = 0;
  if (argc != 2 || pipe(id_pipe) != 0) return 2;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork(); /* before the first call of fccl */
    if (child < 0) return 1;
    if (child == 0) exit(run_rank(argv[1], rank, id_pipe));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    failed |= wait(&status) < 0 || status != 0;
  }
  return failed;
}
