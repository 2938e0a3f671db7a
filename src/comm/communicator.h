// Communicator: one rank of one communicator, from init to destroy. Its parts have types of their
// own; this class ties their lifetimes together and serialises calls.
//
// Order of life: made (in progress) -> init phases (init.cc) -> ready -> finalized -> gone. A
// failure is sticky (health.h). The reader thread of the group reports deaths, aborts and
// good-byes; they reach a blocked call through HostWords::abort, which its kernels poll, and a ring
// of its doorbell.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "backend/backend.h"
#include "bootstrap/fork_guard.h"
#include "bootstrap/group.h"
#include "comm/health.h"
#include "comm/settings.h"
#include "comm/user_windows.h"
#include "memory/windows.h"
#include "select/plan.h"

namespace fccl {

struct CallWord;  // call_word.h

// Which paths ran.
struct Counters {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> by_algorithm[16] = {};
  std::atomic<uint64_t> slow_rows{0};
};

class Communicator {
 public:
  Communicator(Settings settings, int rank, int ranks);
  ~Communicator();

  using Join = std::function<Result<std::shared_ptr<Group>>(const Settings&, const Limit&)>;
  // All phases of init, on the calling thread or on one of its own.
  Status init(const Join& join);
  Status init_in_background(Join join);
  bool initialized() const { return ready_.load(std::memory_order_acquire); }

  // Collective: waits for all ranks.
  Status finalize();
  // Local: says good-bye and stops. Never waits for peers.
  void shut_down();
  void abort();

  // ---- what calls need. Hold the lock.
  std::unique_lock<std::mutex> lock() { return std::unique_lock<std::mutex>(mutex_); }
  Status usable();
  // One launch of a plan: fills the exchange part of the arguments. Waits for it on the CPU.
  Status launch(Launch& launch, const Plan& plan, const CallWord& call, void* stream);
  const Plan& plan_for(const Request& request);
  Status set_timeout(int64_t ms);

  // ---- facts, fixed after init
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  const Settings& settings() const { return settings_; }
  const Situation& situation() const { return situation_; }
  Backend* backend() const { return backend_; }
  DeviceContext& context() { return *context_; }
  Group& group() { return *group_; }
  const std::shared_ptr<Group>& shared_group() const { return group_; }
  const std::shared_ptr<Window>& workspace() const { return workspace_; }
  int device() const { return device_; }
  uint32_t memory_kind() const { return memory_kind_; }

  Health& health() { return health_; }
  Counters& counters() { return counters_; }
  UserMemory& user_memory() { return user_memory_; }
  bool in_this_process() const { return process_.is_here(); }
  // Looks at what kernels have reported in host memory; takes no lock.
  void poll_failure();

 private:
  friend class Init;
  Control* control() const;
  void on_peer(int peer, PeerEvent event, const std::string& text);
  void tell_kernels(uint32_t word);
  Status nobody_left();
  Status after_launch();
  Status explain_record() const;
  Status explain_word(uint32_t word) const;
  Status fail(const Status& status);

  const Settings settings_;
  const int rank_;
  const int ranks_;
  const ProcessMark process_;
  Health health_;
  Counters counters_;
  std::mutex mutex_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> finalized_{false};
  std::thread init_thread_;

  Backend* backend_ = nullptr;
  int device_ = -1;
  uint32_t memory_kind_ = 0;
  std::atomic<int64_t> timeout_ms_;
  std::shared_ptr<HostWords> words_;
  std::atomic<uint32_t> left_{0};  // ranks that said good-bye
  std::mutex tell_mutex_;  // context_ and workspace_ against the reader thread
  std::unique_ptr<DeviceContext> context_;
  std::shared_ptr<Window> workspace_;
  UserMemory user_memory_;
  Situation situation_;
  std::unordered_map<Request, Plan, RequestHash> plans_;
  std::shared_ptr<Group> group_;  // last: its reader thread stops first
};

}  // namespace fccl
