#include "memory/windows.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "base/fault.h"

namespace fccl {
namespace {

// Allocations that other threads of this process may map, by a number that is sent in place of a
// pointer, so that a wrong one is an error and not a crash.
class LocalRegistry {
 public:
  uint64_t publish(const std::shared_ptr<Allocation>& memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    known_[++last_] = memory;
    return last_;
  }
  void withdraw(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    known_.erase(number);
  }
  std::shared_ptr<Allocation> find(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = known_.find(number);
    return it == known_.end() ? nullptr : it->second.lock();
  }

 private:
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::map<uint64_t, std::weak_ptr<Allocation>> known_;
};
LocalRegistry& local_registry() {
  static auto* const registry = new LocalRegistry;
  return *registry;
}

struct Published {
  uint64_t bytes = 0;
  uint64_t local = 0;
  uint8_t handle[64] = {};
};

}  // namespace

class WindowMaker {
 public:
  explicit WindowMaker(const WindowArgs& args) : args_(args), window_(std::make_shared<Window>()) {}
  ~WindowMaker() {
    if (published_.local != 0) local_registry().withdraw(published_.local);
  }

  Result<std::shared_ptr<Window>> make(const Limit& limit) {
    FCCL_TRY(args_.group->vote(allocate(), limit, "window.alloc"));
    FCCL_TRY(exchange(limit));
    FCCL_TRY(args_.group->vote(map_all(), limit, "window.map"));
    return window_;
  }

 private:
  int rank() const { return args_.group->rank(); }

  Status allocate() {
    FCCL_TRY(fault_status("memory.alloc", rank()));
    if (args_.own != nullptr) {
      window_->own_ = args_.own;
      return {};
    }
    FCCL_TRY_ASSIGN(own, args_.context->allocate(args_.bytes, args_.memory_kind));
    window_->own_ = own;
    if (args_.clear) FCCL_TRY(args_.clear(own->ptr));
    return {};
  }

  // Tells all ranks how to reach the own memory.
  Status exchange(const Limit& limit) {
    const int fd_or_none = -1;
    Status mine = publish();
    FCCL_TRY(args_.group->allgather(
        mine, &published_, sizeof published_, blobs_, limit, "window.export"));
    auto fds = args_.group->exchange_fds(
        exported_.fd.valid() ? exported_.fd.get() : fd_or_none, limit, "window.fds");
    if (!fds.ok()) return fds.status();
    fds_ = std::move(*fds);
    exported_.fd.reset();
    return {};
  }

  Status publish() {
    FCCL_TRY(fault_status("memory.export", rank()));
    published_.bytes = window_->own_->bytes;
    published_.local = local_registry().publish(window_->own_);
    bool others = false;
    for (int q = 0; q < args_.facts->ranks; ++q)
      others = others || !args_.facts->pair(rank(), q).same_process;
    if (!others) return {};
    FCCL_TRY_ASSIGN(exported, args_.context->export_memory(*window_->own_, args_.memory_kind));
    exported_ = std::move(exported);
    std::memcpy(published_.handle, exported_.handle, sizeof published_.handle);
    return {};
  }

  Status map_all() {
    FCCL_TRY(fault_status("memory.map", rank()));
    window_->at_.resize(static_cast<size_t>(args_.facts->ranks));
    for (int q = 0; q < args_.facts->ranks; ++q) {
      if (q == rank()) {
        window_->at_[static_cast<size_t>(q)] = window_->own_->ptr;
        continue;
      }
      FCCL_TRY(map_one(q));
    }
    return {};
  }

  Status map_one(int q) {
    Published theirs;
    const auto& blob = blobs_[static_cast<size_t>(q)];
    if (blob.size() != sizeof theirs)
      return error_of_rank(q, Code::RemoteError, "rank %d sent a malformed window", q);
    std::memcpy(&theirs, blob.data(), sizeof theirs);
    if (theirs.bytes != window_->own_->bytes)
      return error_of_rank(q,
                           Code::Mismatch,
                           "window of rank %d has %llu bytes, that of rank %d %llu",
                           q,
                           static_cast<unsigned long long>(theirs.bytes),
                           rank(),
                           static_cast<unsigned long long>(window_->own_->bytes));
    Result<std::unique_ptr<Mapping>> mapping = map_memory(q, theirs);
    if (!mapping.ok())
      return Status(mapping.status().code(),
                    q,
                    "window of " + args_.group->describe(q) + ": " + mapping.status().text());
    window_->at_[static_cast<size_t>(q)] = (*mapping)->ptr;
    window_->mapped_bytes_ += theirs.bytes;
    window_->mappings_.push_back(std::move(*mapping));
    return {};
  }

  Result<std::unique_ptr<Mapping>> map_memory(int q, const Published& theirs) {
    if (args_.facts->pair(rank(), q).same_process) {
      const auto memory = local_registry().find(theirs.local);
      if (memory == nullptr || memory->bytes != theirs.bytes)
        return error(Code::RemoteError, "is not in this process");
      return args_.context->map_local(memory);
    }
    Export from;
    from.fd = std::move(fds_[static_cast<size_t>(q)]);
    std::memcpy(from.handle, theirs.handle, sizeof from.handle);
    return args_.context->import_memory(from, theirs.bytes, args_.memory_kind);
  }

  const WindowArgs& args_;
  std::shared_ptr<Window> window_;
  Published published_;
  Export exported_;
  std::vector<std::vector<uint8_t>> blobs_;
  std::vector<UniqueFd> fds_;
};

Result<std::shared_ptr<Window>> make_window(const WindowArgs& args, const Limit& limit) {
  return WindowMaker(args).make(limit);
}

std::vector<uint32_t> memory_kinds_to_try(const CommFacts& facts, BackendKind backend) {
  std::vector<uint32_t> kinds;
  auto offer = [&](uint32_t kind) {
    if (facts.memory_kinds & kind) kinds.push_back(kind);
  };
  if (!facts.same_host) return kinds;
  if (backend == BackendKind::Cpu) {
    offer(facts.same_process ? kMemoryPointer : kMemoryMemfd);
  } else {
    offer(kMemoryDeviceFd);
    offer(kMemoryDeviceIpc);
  }
  return kinds;
}

}  // namespace fccl
