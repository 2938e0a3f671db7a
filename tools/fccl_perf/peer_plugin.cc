// Engines in libraries of their own (gloo, MPI): widen to float, all_reduce, then the norm, or
// narrow again for the plain collective. CPU ranks only.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "fccl_perf/contestant.h"
#include "fccl_perf/local_norm.h"
#include "fccl_perf/peer_plugin.h"

namespace perf {
namespace {

class PluginCall : public Contestant {
 public:
  PluginCall(const Bench& bench, std::string name, const FcclPerfPeer& plugin)
      : bench_(bench), name_(std::move(name)), plugin_(plugin), norm_(bench) {}
  ~PluginCall() override {
    if (state_ != nullptr) plugin_.close(state_);
    std::error_code ignored;
    if (bench_.rank == 0) std::filesystem::remove_all(folder_, ignored);
  }
  // Rank 0 makes the folder in which the engine's ranks meet.
  Outcome open() {
    folder_ = bench_.folder + name_;
    if (bench_.rank == 0) mkdir(folder_.c_str(), 0700);
    PERF_TRY(bench_.team->barrier());
    return checked(plugin_.open(bench_.rank, bench_.ranks, folder_.c_str(), &state_));
  }

  std::string name() const override { return name_; }
  std::string description() const override {
    const std::string engine = fmt::format("{} all_reduce of floats", plugin_.engine);
    return is_fused_shape(bench_.options->op) ? engine + ", then " + norm_.description() : engine;
  }
  Outcome prepare(const Case& one) override {
    sum_.resize(static_cast<std::size_t>(one.count));
    return norm_.prepare(one);
  }
  Outcome call(const Case& one, const Operands& o) override {
    widen(o.input, sum_.data(), one.count, one.datatype);
    PERF_TRY(checked(plugin_.all_reduce(state_, sum_.data(), sum_.size())));
    if (is_fused_shape(one.op)) return norm_.run(one, o, sum_.data(), fcclFloat32);
    narrow(sum_.data(), o.norm_out, one.count, one.datatype);
    return {};
  }

 private:
  Outcome checked(const char* failure) const {
    return failure == nullptr ? Outcome() : Outcome::failure(fmt::format("{}: {}", name_, failure));
  }
  Bench bench_;
  std::string name_;
  std::string folder_;
  const FcclPerfPeer& plugin_;
  Norm norm_;
  void* state_ = nullptr;
  std::vector<float> sum_;
};

// Beside this program, or in ../lib of an installation.
void* open_library(const std::string& name) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string file = fmt::format("libfccl_perf_{}.so", name);
  for (const char* folder : {".", "../lib", "../lib/fccl"}) {
    const std::filesystem::path path = self.parent_path() / folder / file;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    // An MPI opens modules of its own that look for its symbols in the global scope.
    return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Contestant> make_plugin_peer(const Bench& bench, const std::string& name,
                                             std::string& problem) {
  if (!bench.device->is_cpu()) {
    problem = name + " is compared on CPU ranks only";
    return nullptr;
  }
  void* library = open_library(name);
  const auto entry =
      library ? reinterpret_cast<FcclPerfPeerEntry>(dlsym(library, FCCL_PERF_PEER_ENTRY)) : nullptr;
  if (entry == nullptr || entry()->abi != FCCL_PERF_PEER_ABI) {
    problem = fmt::format(
        "libfccl_perf_{}.so is not there: it is built where {} is installed", name, name);
    return nullptr;
  }
  auto peer = std::make_unique<PluginCall>(bench, name, *entry());
  const Outcome opened = peer->open();
  problem = opened.text();
  if (!opened.ok()) return nullptr;
  return peer;
}

}  // namespace perf
