/* A program that is rude to the library: it opens, uses and closes it 100 times, and what it holds
 * does not grow; and it ends without Destroy, by exit() in the middle of everything, which hangs
 * and breaks nothing: it ends with its own status, and a peer in another process hears of it within
 * a second. Usage: comes_and_goes path/to/libfccl.so */
#include <dirent.h>
#include <dlfcn.h>
#include <fccl/fccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kSlow = 10 };
#else
enum { kSlow = 1 };
#endif
enum { kRanks = 2, kTimes = 100 };

static fcclResult_t (*get_unique_id)(fcclUniqueId*);
static fcclResult_t (*init_rank)(fcclComm_t*, int, const fcclUniqueId*, int, const fcclConfig*);
static fcclResult_t (*all_reduce)(const void*, void*, size_t, fcclDataType_t, fcclRedOp_t,
                                  fcclComm_t, fcclStream_t);
static fcclResult_t (*destroy)(fcclComm_t);
static const char* (*last_error)(fcclComm_t);

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  _exit(1);
}

/* A function pointer from dlsym without a cast that C forbids. */
static void find(void* library, const char* name, void* function) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) fail(dlerror());
  memcpy(function, &symbol, sizeof(symbol));
}

static void* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail(dlerror());
  find(library, "fcclGetUniqueId", &get_unique_id);
  find(library, "fcclCommInitRankConfig", &init_rank);
  find(library, "fcclAllReduce", &all_reduce);
  find(library, "fcclCommDestroy", &destroy);
  find(library, "fcclGetLastError", &last_error);
  return library;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int entries(const char* folder) {
  DIR* dir = opendir(folder);
  int count = 0;
  if (dir == NULL) fail(folder);
  while (readdir(dir) != NULL) count++;
  closedir(dir);
  return count;
}

static fcclConfig cpu_config(void) {
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  config.backend = fcclBackendCpu;
  config.init_timeout_ms = 20000;
  config.call_timeout_ms = 20000;
  return config;
}

static fcclUniqueId id;

static fcclComm_t join(int rank) {
  const fcclConfig config = cpu_config();
  fcclComm_t comm = NULL;
  if (init_rank(&comm, kRanks, &id, rank, &config) != fcclSuccess) fail(last_error(NULL));
  return comm;
}

static void sum(fcclComm_t comm) {
  float data[64];
  for (int i = 0; i < 64; i++) data[i] = 1;
  if (all_reduce(data, data, 64, fcclFloat32, fcclSum, comm, NULL) != fcclSuccess)
    fail(last_error(comm));
  if (data[63] != kRanks) fail("a wrong sum");
}

static void* one_rank(void* rank) {
  fcclComm_t comm = join(*(int*)rank);
  sum(comm);
  if (destroy(comm) != fcclSuccess) fail("Destroy failed");
  return NULL;
}

static void open_use_close(const char* path) {
  static int numbers[kRanks] = {0, 1};
  pthread_t threads[kRanks];
  void* library = load(path);
  if (get_unique_id(&id) != fcclSuccess) fail(last_error(NULL));
  for (int rank = 0; rank < kRanks; rank++)
    if (pthread_create(&threads[rank], NULL, one_rank, &numbers[rank]) != 0) fail("no thread");
  for (int rank = 0; rank < kRanks; rank++) pthread_join(threads[rank], NULL);
  dlclose(library);
}

static void comes_again(const char* path) {
  for (int i = 0; i < 5; i++) open_use_close(path);
  usleep(200000); /* the thread of a rendezvous ends a moment after its ranks have met */
  const int files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (int i = 0; i < kTimes; i++) open_use_close(path);
  for (int i = 0; i < 500; i++, usleep(10000))
    if (entries("/proc/self/fd") <= files && entries("/proc/self/task") <= threads) return;
  fail("descriptors or threads are left after dlclose");
}

/* The child is rank 1: it leaves by exit(7) between calls, with its communicator alive. */
static void leaves_without_destroy(const char* path) {
  int ends[2];
  if (pipe(ends) != 0) fail("pipe");
  const pid_t child = fork(); /* before the library has a thread */
  if (child < 0) fail("fork");
  if (child == 0) {
    load(path);
    if (read(ends[0], &id, sizeof(id)) != sizeof(id)) fail("read");
    sum(join(1));
    exit(7);
  }
  load(path);
  if (get_unique_id(&id) != fcclSuccess) fail(last_error(NULL));
  if (write(ends[1], &id, sizeof(id)) != sizeof(id)) fail("write");
  fcclComm_t comm = join(0);
  sum(comm);
  int status = 0;
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) fail("exit without Destroy is no clean exit");
  const double start = seconds();
  float data[64] = {0};
  if (all_reduce(data, data, 64, fcclFloat32, fcclSum, comm, NULL) != fcclRemoteError)
    fail("a call with a rank that is gone");
  if (seconds() - start > 1 + 9 * (getenv("FCCL_TEST_SLOW_FACTOR") != NULL))
    fail("it took too long");
  if (strstr(last_error(comm), "rank 1") == NULL) fail(last_error(comm));
  if (destroy(comm) != fcclSuccess) fail("Destroy failed");
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: comes_and_goes path/to/libfccl.so");
  leaves_without_destroy(argv[1]);
  comes_again(argv[1]);
  puts("ok");
  return 0;
}
