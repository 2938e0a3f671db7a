// NCCL (or RCCL) as a peer, opened at run time: its all_reduce, then the norm. The functions used
// have had these signatures since NCCL 2.0.
#include <dlfcn.h>
#include <fmt/format.h>

#include "fccl_perf/contestant.h"

namespace perf {
namespace {

struct NcclId {
  char internal[128];
};
using NcclComm = void*;

struct Nccl {
  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(NcclId*) = nullptr;
  int (*init_rank)(NcclComm*, int, NcclId, int) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, NcclComm, void*) = nullptr;
  int (*destroy)(NcclComm) = nullptr;
  const char* (*error_string)(int) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function*& field) {
  field = reinterpret_cast<Function*>(dlsym(library, name));
  return field != nullptr;
}

const Nccl* nccl(std::string& problem) {
  static Nccl functions;
  static const std::string failure = []() -> std::string {
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = dlopen("librccl.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "no libnccl.so.2 or librccl.so.1 here";
    const bool whole = find(library, "ncclGetVersion", functions.get_version) &&
                       find(library, "ncclGetUniqueId", functions.get_unique_id) &&
                       find(library, "ncclCommInitRank", functions.init_rank) &&
                       find(library, "ncclAllReduce", functions.all_reduce) &&
                       find(library, "ncclCommDestroy", functions.destroy) &&
                       find(library, "ncclGetErrorString", functions.error_string);
    return whole ? "" : "libnccl.so.2 lacks functions that are needed";
  }();
  problem = failure;
  return failure.empty() ? &functions : nullptr;
}

class NcclCall : public Contestant {
 public:
  NcclCall(const Bench& bench, const Nccl& functions)
      : bench_(bench), nccl_(functions), norm_(bench) {}
  ~NcclCall() override {
    if (comm_ != nullptr) nccl_.destroy(comm_);
  }

  Outcome open() {
    NcclId mine{};
    std::vector<NcclId> all(static_cast<std::size_t>(bench_.ranks));
    if (bench_.rank == 0) PERF_TRY(checked(nccl_.get_unique_id(&mine), "ncclGetUniqueId"));
    PERF_TRY(bench_.team->allgather(&mine, all.data(), sizeof(mine)));
    return checked(nccl_.init_rank(&comm_, bench_.ranks, all[0], bench_.rank), "ncclCommInitRank");
  }

  std::string name() const override { return "nccl"; }
  std::string description() const override {
    int version = 0;
    nccl_.get_version(&version);
    const std::string engine = fmt::format("NCCL {} all_reduce", version);
    return is_fused_shape(bench_.options->op) ? engine + ", then " + norm_.description() : engine;
  }
  Outcome prepare(const Case& one) override {
    if (!is_fused_shape(one.op)) return {};
    PERF_TRY(sum_.reserve(bench_.device, nullptr, 0, static_cast<std::size_t>(one.bytes), 0));
    return norm_.prepare(one);
  }
  Outcome call(const Case& one, const Operands& o) override {
    const bool fused = is_fused_shape(one.op);
    void* sum = fused ? sum_.data() : o.norm_out;
    const int redop = fused ? static_cast<int>(fcclSum) : one.redop;
    const int result = nccl_.all_reduce(o.input,
                                        sum,
                                        static_cast<std::size_t>(one.count),
                                        one.datatype,
                                        redop,
                                        comm_,
                                        bench_.device->stream());
    PERF_TRY(checked(result, "ncclAllReduce"));
    return fused ? norm_.run(one, o, sum, one.datatype) : Outcome();
  }

 private:
  Outcome checked(int result, const char* what) const {
    if (result == 0) return {};
    return Outcome::failure(fmt::format("{}: {}", what, nccl_.error_string(result)));
  }
  Bench bench_;
  const Nccl& nccl_;
  Norm norm_;
  Buffer sum_;
  NcclComm comm_ = nullptr;
};

}  // namespace

std::unique_ptr<Contestant> make_nccl_peer(const Bench& bench, std::string& problem) {
  if (bench.device->is_cpu()) {
    problem = "nccl has no CPU ranks";
    return nullptr;
  }
  const Nccl* functions = nccl(problem);
  if (functions == nullptr) return nullptr;
  auto peer = std::make_unique<NcclCall>(bench, *functions);
  const Outcome opened = peer->open();
  problem = opened.text();
  if (!opened.ok()) return nullptr;
  return peer;
}

}  // namespace perf
