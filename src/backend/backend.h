// What a backend must offer: memory that peers can map, and kernels. One implementation per vendor;
// above this folder nobody asks which one it is (a difference becomes a capability here). Backend
// modules (libfccl_cuda.so) are built from the same headers with the same compiler and refused
// unless their build id is equal, so that plain C++ interfaces may cross the border. A module links
// nothing of libfccl: what it needs of the host it gets as HostServices.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "device/layout/args.h"
#include "device/layout/workspace.h"
#include "topology/facts.h"

namespace fccl {

enum class BackendKind : int32_t { Cpu = 1, Cuda = 2, Hip = 3 };  // fcclBackend_t

// Memory of one rank. Freed by the destructor; shared because threads of one process map each
// other's.
class Allocation {
 public:
  virtual ~Allocation() = default;
  char* ptr = nullptr;
  uint64_t bytes = 0;  // rounded up to the granule
};

// A peer's allocation as this rank reaches it. Unmapped by the destructor.
class Mapping {
 public:
  virtual ~Mapping() = default;
  char* ptr = nullptr;
};

// How an allocation is named to another process: a descriptor, or bytes.
struct Export {
  UniqueFd fd;
  uint8_t handle[64] = {};
};

// Host memory that kernels of this rank read and write.
struct HostWords {
  FailureRecord record;
  alignas(64) uint32_t abort;  // a status word; nonzero ends every wait of this rank's kernels
  uint32_t chaos_calls;
};

// How one launch is laid out on this rank. A local choice of the backend, never agreed: ranks may
// run different grids, since nothing on the wire depends on it.
struct LaunchShape {
  int blocks = 1;
  int threads = 1;
  int packs_per_thread = 1;
  int cluster = 1;  // blocks that share one row
};

struct Launch {
  KernelId id;
  KernelArgs args;
  int max_blocks = 0;  // of the plan; 0: the backend's bound
  bool weight_stable = false;  // may be read before earlier work of the stream ends
  bool inputs_stable = false;
  bool early_trigger = false;
};

// Facts about launches that the plan needs; the minimum over ranks is agreed in init.
struct LaunchLimits {
  int32_t max_blocks = 1;  // resident blocks of the largest kernel, already halved (another
                           // communicator's kernel must fit beside it)
  int32_t max_threads = 1;  // of one block
  int32_t sm_count = 1;
  int32_t arch = 0;
};

// One rank's use of one device, from init to destroy.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;

  // ---- memory. All of it complete on return.
  virtual uint64_t granule() const = 0;
  virtual Result<std::shared_ptr<Allocation>> allocate(uint64_t bytes, uint32_t memory_kind) = 0;
  virtual Result<Export> export_memory(const Allocation& memory, uint32_t memory_kind) = 0;
  // Checks what it is given (seals, size) before it maps.
  virtual Result<std::unique_ptr<Mapping>> import_memory(Export& from, uint64_t bytes,
                                                         uint32_t memory_kind) = 0;
  // A peer that is a thread of this process, perhaps on another device.
  virtual Result<std::unique_ptr<Mapping>> map_local(const std::shared_ptr<Allocation>& memory) = 0;
  virtual Status fill(void* to, int byte, uint64_t bytes) = 0;
  virtual Status copy_in(void* to, const void* from, uint64_t bytes) = 0;
  virtual Status copy_out(void* to, const void* from, uint64_t bytes) = 0;
  virtual Result<std::shared_ptr<HostWords>> host_words() = 0;

  // ---- kernels
  // Loads every kernel that calls of this communicator may launch, before anything is captured.
  virtual Status prepare(int ranks, int ranks_on_device) = 0;
  virtual LaunchLimits limits() const = 0;
  virtual LaunchShape shape_of(const Launch& launch) const = 0;
  virtual bool has_kernel(const KernelId& id, int ranks) const = 0;
  // Is `stream` legal here? Called before anything is launched.
  virtual Status check_stream(void* stream) = 0;
  // Stream-ordered; a CPU launch is complete on return. `control` orders streams (PROTOCOL of
  // streams).
  virtual Status launch(const Launch& launch, void* stream) = 0;
  // Sets control->limit_ns for later waits, captured graphs included.
  virtual Status set_limit(Control* control, uint64_t ns) = 0;
  // The status word of the control block, if it can be read now without waiting for kernels.
  virtual uint32_t peek_status(const Control* control) = 0;
  // Ends what sleeps in this rank's kernels, from any thread; touches memory only.
  virtual void wake(Control* control) = 0;
  // Waits until this rank's launches are complete.
  virtual Status drain(const Limit& limit) = 0;
  // Keeps memory and mappings alive while captured graphs may use them, then drops them.
  virtual void retire(std::vector<std::shared_ptr<void>> kept) = 0;
};

struct OpenArgs {
  int device = -1;  // ordinal; -1: the current one
  const Config* config = nullptr;
  bool oversubscribed = false;  // more ranks on this host than CPUs
  int max_blocks = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendKind kind() const = 0;
  virtual const char* name() const = 0;
  // Can it run in this process? The error says why not. Makes no device context.
  virtual Status available() = 0;
  virtual Result<int> current_device() = 0;  // -1 where there are none
  // Fills device and memory kinds. Makes no device context.
  virtual Status describe(int device, RankFacts& facts) = 0;
  virtual Result<std::unique_ptr<DeviceContext>> open(const OpenArgs& args) = 0;
  // Launch limits as far as they are known without a context (for queries before init).
  virtual LaunchLimits expected_limits(int device) = 0;
};

// ------------------------------------------------------------------ modules

struct HostServices {
  bool (*log_enabled)(LogLevel level, uint32_t subsystem);
  void (*log_text)(LogLevel level, uint32_t subsystem, const char* text);
};

constexpr uint32_t kModuleAbi = 1;
// The one symbol of a backend module: `fcclBackendModule`.
struct BackendModule {
  uint32_t abi;
  uint32_t size;
  const char* build_id;
  Backend* (*create)(const HostServices* services);  // once per process; never destroyed
};

// The backend of this kind, loading its module at the first use; the error says why there is none.
Result<Backend*> find_backend(BackendKind kind, const Config& config);

}  // namespace fccl
