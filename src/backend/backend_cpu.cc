// The CPU backend: kernels run on the calling thread, one block each, at the best instruction-set
// level this CPU has. Always there; the oracle of the others.
#include "backend/backend_cpu.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "backend/memory_cpu.h"
#include "device/dialect/pause.h"
#include "device/entry/cpu_entry.h"
#include "topology/detect.h"

namespace fccl {

#define FCCL_CPU_LEVEL_TABLE(level)                         \
  namespace level {                                         \
  CpuKernel find_cpu_kernel(const KernelId& id, int ranks); \
  }
#ifdef FCCL_HAVE_CPU_scalar
FCCL_CPU_LEVEL_TABLE(scalar)
#endif
#ifdef FCCL_HAVE_CPU_neon
FCCL_CPU_LEVEL_TABLE(neon)
#endif
#ifdef FCCL_HAVE_CPU_v2
FCCL_CPU_LEVEL_TABLE(v2)
#endif
#ifdef FCCL_HAVE_CPU_v3
FCCL_CPU_LEVEL_TABLE(v3)
#endif
#ifdef FCCL_HAVE_CPU_v4
FCCL_CPU_LEVEL_TABLE(v4)
#endif

CpuKernelTable cpu_kernels(CpuLevel level) {
  CpuKernelTable best = nullptr;
#ifdef FCCL_HAVE_CPU_scalar
  best = scalar::find_cpu_kernel;
#endif
#ifdef FCCL_HAVE_CPU_neon
  if (level == CpuLevel::Neon) best = neon::find_cpu_kernel;
#endif
#ifdef FCCL_HAVE_CPU_v2
  if (level >= CpuLevel::V2) best = v2::find_cpu_kernel;
#endif
#ifdef FCCL_HAVE_CPU_v3
  if (level >= CpuLevel::V3) best = v3::find_cpu_kernel;
#endif
#ifdef FCCL_HAVE_CPU_v4
  if (level >= CpuLevel::V4) best = v4::find_cpu_kernel;
#endif
  static_cast<void>(level);
  return best;
}

namespace {

// Polls that fit into `us`: a pause takes 20 to 150 cycles, depending on the CPU.
uint32_t polls_of(int64_t us) {
  constexpr int kSample = 1000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kSample; ++i) pause_polling();
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
      kSample;
  const double polls = static_cast<double>(us) * 1000.0 / (ns < 1.0 ? 1.0 : ns);
  return polls > 4e9 ? UINT32_MAX : static_cast<uint32_t>(polls);
}

class CpuLocalMapping : public Mapping {
 public:
  explicit CpuLocalMapping(std::shared_ptr<Allocation> memory) : memory_(std::move(memory)) {
    ptr = memory_->ptr;
  }

 private:
  std::shared_ptr<Allocation> memory_;  // lives as long as somebody maps it
};

class CpuContext : public DeviceContext {
 public:
  CpuContext(CpuKernelTable kernels, const OpenArgs& args)
      : kernels_(kernels),
        huge_pages_(args.config->huge_pages != 0),
        chaos_(static_cast<uint32_t>(args.config->test_chaos)) {
    // With a CPU for every rank spinning is free and a wake-up is not. Without, spinning takes the
    // CPU from the rank that is waited for: it is given away (0.7 us; a sleep and its wake-up cost
    // several times that), and after about 0.1 ms of that the rank sleeps.
    const bool crowded = args.config->spin_us < 0 && args.oversubscribed;
    spins_ = polls_of(args.config->spin_us >= 0 ? args.config->spin_us : crowded ? 0 : 100);
    yields_ = crowded ? 100 : 0;
  }

  uint64_t granule() const override { return kCpuGranule; }
  Result<std::shared_ptr<Allocation>> allocate(uint64_t bytes, uint32_t kind) override {
    return kind == kMemoryMemfd ? allocate_memfd(bytes, huge_pages_)
                                : allocate_plain(bytes, huge_pages_);
  }
  Result<Export> export_memory(const Allocation& memory, uint32_t kind) override {
    if (kind != kMemoryMemfd)
      return error(Code::InternalError, "this kind of memory is not exported");
    return export_memfd(memory);
  }
  Result<std::unique_ptr<Mapping>> import_memory(Export& from, uint64_t bytes, uint32_t) override {
    return import_memfd(from, bytes);
  }
  Result<std::unique_ptr<Mapping>> map_local(const std::shared_ptr<Allocation>& memory) override {
    return std::unique_ptr<Mapping>(std::make_unique<CpuLocalMapping>(memory));
  }
  Status fill(void* to, int byte, uint64_t bytes) override {
    std::memset(to, byte, bytes);
    return {};
  }
  Status copy_in(void* to, const void* from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Status copy_out(void* to, const void* from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Result<std::shared_ptr<HostWords>> host_words() override { return std::make_shared<HostWords>(); }

  Status prepare(int, int) override { return {}; }
  LaunchLimits limits() const override { return LaunchLimits{}; }
  LaunchShape shape_of(const Launch&) const override { return LaunchShape{}; }
  bool has_kernel(const KernelId& id, int ranks) const override {
    return kernels_(id, ranks) != nullptr;
  }
  Status check_stream(void* stream) override {
    if (stream == nullptr) return {};
    return error(Code::InvalidArgument, "a CPU communicator takes no stream; pass NULL");
  }

  Status launch(const Launch& launch, void*) override {
    const CpuKernel kernel = kernels_(launch.id, launch.args.ex.ranks);
    if (kernel == nullptr) return error(Code::InternalError, "no CPU kernel for this plan");
    const size_t needed = cpu_scratch_bytes(launch.args.packs);
    if (needed > scratch_bytes_) {
      scratch_.reset(static_cast<char*>(std::aligned_alloc(64, round_up(needed, 64))));
      if (scratch_ == nullptr) {
        scratch_bytes_ = 0;
        return error(Code::OutOfResources, "no memory for %zu bytes of scratch", needed);
      }
      scratch_bytes_ = needed;
    }
    CpuLaunch on;
    on.scratch = scratch_.get();
    on.scratch_bytes = scratch_bytes_;
    on.spins = spins_;
    on.yields = yields_;
    if (chaos_ != 0)
      on.chaos = chaos_ =
          chaos_ * 747796405u + 2891336453u + static_cast<uint32_t>(launch.args.ex.rank);
    kernel(launch.args, on);
    return {};
  }

  Status set_limit(Control* control, uint64_t ns) override {
    __atomic_store_n(&control->limit_ns, ns, __ATOMIC_RELAXED);
    return {};
  }
  uint32_t peek_status(const Control* control) override {
    return __atomic_load_n(&control->status, __ATOMIC_ACQUIRE);
  }
  void wake(Control* control) override {
    __atomic_fetch_add(&control->doorbell.count, 1u, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &control->doorbell.count, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
  Status drain(const Limit&) override { return {}; }  // a call is complete when it returns
  void retire(std::vector<std::shared_ptr<void>> kept) override { kept.clear(); }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  CpuKernelTable kernels_;
  bool huge_pages_;
  uint32_t chaos_;
  uint32_t spins_ = 0;
  uint32_t yields_ = 0;
  std::unique_ptr<char, Free> scratch_;
  size_t scratch_bytes_ = 0;
};

class CpuBackend : public Backend {
 public:
  BackendKind kind() const override { return BackendKind::Cpu; }
  const char* name() const override { return "cpu"; }
  Status available() override {
    if (cpu_kernels(detect_cpu_level()) != nullptr) return {};
    return error(Code::Unsupported,
                 "this CPU is older than every instruction-set level fccl was built for");
  }
  Result<int> current_device() override { return -1; }
  Status describe(int, RankFacts& facts) override {
    facts.backends |= kBackendCpu;
    facts.memory_kinds |= kMemoryPointer | kMemoryMemfd;
    return {};
  }
  Result<std::unique_ptr<DeviceContext>> open(const OpenArgs& args) override {
    FCCL_TRY_ASSIGN(level, cpu_level_of(*args.config));
    const CpuKernelTable kernels = cpu_kernels(level);
    if (kernels == nullptr)
      return error(Code::Unsupported,
                   "fccl was built without kernels for the CPU level %s",
                   cpu_level_name(level));
    return std::unique_ptr<DeviceContext>(std::make_unique<CpuContext>(kernels, args));
  }
  LaunchLimits expected_limits(int) override { return LaunchLimits{}; }
};

}  // namespace

Backend* cpu_backend() {
  static CpuBackend* const backend = new CpuBackend;  // lives as long as the process
  return backend;
}

}  // namespace fccl
