#include "comm/communicator.h"

#include <cstring>

#include "bootstrap/worker_thread.h"
#include "comm/call_word.h"
#include "comm/init.h"
#include "memory/workspace.h"
#include "select/algorithms.h"

namespace fccl {

Communicator::Communicator(Settings settings, int rank, int ranks)
    : settings_(std::move(settings)),
      rank_(rank),
      ranks_(ranks),
      timeout_ms_(settings_.call_timeout_ms),
      words_(std::make_shared<HostWords>()) {}

Communicator::~Communicator() {
  shut_down();
}

Control* Communicator::control() const {
  return reinterpret_cast<Control*>(workspace_->at(rank_));
}

// ---------------------------------------------------------------- init

Status Communicator::init(const Join& join) {
  const Limit limit{Deadline::after_ms(settings_.init_timeout_ms), health_.abort_word()};
  const Status status = Init(*this, limit).run(join);
  if (!status.ok()) {
    health_.fail(status);
    return health_.status();  // an abort or a death may have come first
  }
  ready_.store(true, std::memory_order_release);
  return {};
}

Status Communicator::init_in_background(Join join) {
  auto thread =
      start_thread("fccl-init", [this, join = std::move(join)] { static_cast<void>(init(join)); });
  if (!thread.ok()) return thread.status();
  init_thread_ = std::move(*thread);
  return {};
}

// ---------------------------------------------------------------- the end

Status Communicator::finalize() {
  FCCL_TRY(usable());
  const Limit limit{Deadline::after_ms(settings_.destroy_timeout_ms), health_.abort_word()};
  Status status = context_->drain(limit);
  if (status.ok()) status = group_->barrier(limit, "finalize");
  if (!status.ok()) return fail(status);
  finalized_ = true;
  return {};
}

void Communicator::shut_down() {
  if (!in_this_process()) {
    // A forked child owns nothing of this: leak it.
    static_cast<void>(group_ == nullptr ? nullptr : new std::shared_ptr<Group>(group_));
    return;
  }
  if (init_thread_.joinable()) {
    if (!initialized()) abort();
    init_thread_.join();
  }
  const Limit limit{Deadline::after_ms(settings_.destroy_timeout_ms), nullptr};
  if (context_ != nullptr && initialized() && !health_.failed())
    static_cast<void>(context_->drain(limit));
  if (group_ != nullptr) {
    static_cast<void>(group_->leave(limit));
    group_->set_event_function(nullptr);
  }
  if (context_ != nullptr) context_->retire({words_, workspace_});
  group_.reset();
}

void Communicator::abort() {
  const Status status = error(Code::Aborted, "rank %d was aborted by fcclCommAbort", rank_);
  if (!health_.fail(status)) return;
  tell_kernels(status_word(Failure::Aborted, rank_));
  const std::lock_guard<std::mutex> lock(tell_mutex_);
  if (group_ != nullptr) group_->broadcast_failure(status);
}

// ---------------------------------------------------------------- what others report

void Communicator::tell_kernels(uint32_t word) {
  const std::lock_guard<std::mutex> lock(tell_mutex_);
  __atomic_store_n(&words_->abort, word, __ATOMIC_SEQ_CST);
  if (context_ != nullptr && workspace_ != nullptr) context_->wake(control());
}

void Communicator::on_peer(int peer, PeerEvent event, const std::string& text) {
  if (event == PeerEvent::Left) {
    const uint32_t mask = left_.fetch_or(1u << peer) | (1u << peer);
    if (!health_.failed()) tell_kernels(left_word(mask));
    return;
  }
  const Code told = event == PeerEvent::Failed ? code_in_text(text) : Code::RemoteError;
  health_.fail(Status(told, peer, text));
  tell_kernels(status_word(event == PeerEvent::Died ? Failure::Died : Failure::Peer, peer));
}

Status Communicator::fail(const Status& status) {
  if (health_.fail(status)) group_->broadcast_failure(with_code_in_text(status));
  return health_.status();
}

void Communicator::poll_failure() {
  if (health_.failed() || !initialized()) return;
  if (__atomic_load_n(&words_->record.complete, __ATOMIC_ACQUIRE) != 0)
    static_cast<void>(fail(explain_record()));
}

// ---------------------------------------------------------------- calls

Status Communicator::usable() {
  if (!in_this_process())
    return error(Code::InvalidUsage,
                 "the communicator belongs to the parent process; after fork make a new one");
  if (!initialized()) {
    if (health_.failed()) return health_.status();
    return error(Code::InvalidUsage, "init is still in progress; poll fcclCommGetAsyncError first");
  }
  poll_failure();
  if (health_.failed()) return health_.status();
  if (finalized_)
    return error(Code::InvalidUsage,
                 "the communicator is finalized; only fcclCommDestroy is legal");
  return {};
}

// Asked where something is to be exchanged only: a call without rows needs nobody.
Status Communicator::nobody_left() {
  const uint32_t left = left_.load(std::memory_order_acquire);
  if (left != 0) {
    const int peer = __builtin_ctz(left);
    return fail(error_of_rank(peer,
                              Code::RemoteError,
                              "%s has destroyed its communicator",
                              group_->describe(peer).c_str()));
  }
  return {};
}

const Plan& Communicator::plan_for(const Request& request) {
  const auto known = plans_.find(request);
  if (known != plans_.end()) return known->second;
  constexpr size_t kMostPlans = 4096;
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_.emplace(request, make_plan(request, situation_)).first->second;
}

Status Communicator::set_timeout(int64_t ms) {
  timeout_ms_.store(ms, std::memory_order_relaxed);
  return context_->set_limit(control(), static_cast<uint64_t>(ms) * 1000000u);
}

Status Communicator::launch(Launch& launch, const Plan& plan, const CallWord& call, void* stream) {
  FCCL_TRY(nobody_left());
  const WorkspaceLayout& layout = situation_.layout;
  const Region& region = plan.protocol == ProtocolKind::Lamport ? layout.lamport
                         : plan.protocol == ProtocolKind::LL    ? layout.ll
                                                                : layout.staging;
  const bool two_hops = plan.algo != AlgoKind::Oneshot;
  ExchangeArgs& ex = launch.args.ex;
  for (int i = 0; i < ranks_; ++i) ex.window[i] = workspace_->at((rank_ + i) % ranks_);
  ex.record = &words_->record;
  ex.host_abort = &words_->abort;
  ex.rank = rank_;
  ex.ranks = ranks_;
  place_slots(ex, region, two_hops);
  ex.tile_rows = plan.tile_rows;
  ex.hash = call.shape;
  ex.options = call.options;
  ex.checked = settings_.check ? 1 : 0;
  launch.id.algo = plan.algo;
  launch.id.protocol = plan.protocol;
  launch.max_blocks = plan.max_blocks;
  const Status status = context_->launch(launch, stream);
  if (!status.ok()) return status;
  counters_.launches.fetch_add(1, std::memory_order_relaxed);
  counters_.by_algorithm[algorithm_number(plan.algo, plan.protocol)].fetch_add(
      1, std::memory_order_relaxed);
  return after_launch();
}

Status Communicator::after_launch() {
  const uint32_t word = context_->peek_status(control());
  if (word == 0) return {};
  if (__atomic_load_n(&words_->record.complete, __ATOMIC_ACQUIRE) != 0) {
    const Failure own = static_cast<Failure>(words_->record.failure);
    if (own == Failure::Timeout || own == Failure::Mismatch || own == Failure::Overlap ||
        own == Failure::Left)
      return fail(explain_record());
  }
  // The peer that failed, or the system about the one that died, tells why a moment later.
  constexpr int64_t kTextMs = 500;
  health_.wait_for_failure(kTextMs);
  return fail(explain_word(word));
}

Status Communicator::explain_word(uint32_t word) const {
  const int peer = rank_of(word);
  switch (failure_of(word)) {
    case Failure::Died:
      return error_of_rank(peer, Code::RemoteError, "rank %d died", peer);
    case Failure::Timeout:
      return error_of_rank(
          peer, Code::RemoteError, "rank %d gave up waiting (its deadline expired)", peer);
    case Failure::Mismatch:
      return error_of_rank(
          peer, Code::Mismatch, "rank %d found that ranks disagree about a call", peer);
    case Failure::Aborted:
      return error_of_rank(peer, Code::RemoteError, "rank %d was aborted", peer);
    default:
      return error_of_rank(peer, Code::RemoteError, "rank %d failed in a call", peer);
  }
}

Status Communicator::explain_record() const {
  const FailureRecord& r = words_->record;
  const auto call = static_cast<unsigned long long>(r.epoch - settings_.first_epoch + 1);
  const std::string peer = r.peer == rank_ ? "this rank" : group_->describe(r.peer);
  switch (static_cast<Failure>(r.failure)) {
    case Failure::Timeout:
      return error_of_rank(r.peer,
                           Code::Timeout,
                           "rank %d waited %lld ms in exchange %llu (hop %u, row %u) for %s, %s",
                           rank_,
                           static_cast<long long>(timeout_ms_.load(std::memory_order_relaxed)),
                           call,
                           r.hop,
                           r.row,
                           peer.c_str(),
                           r.seen == r.epoch ? "which has entered it but not sent everything"
                                             : "which has not entered it");
    case Failure::Mismatch:
      return error_of_rank(
          r.peer,
          Code::Mismatch,
          "exchange %llu: rank %d calls %s on %u rows, rank %d calls %s on %u rows",
          call,
          rank_,
          describe_call({r.expected_hash, r.expected_options}).c_str(),
          r.expected_tokens,
          r.peer,
          describe_call({r.seen_hash, r.seen_options}).c_str(),
          r.seen_tokens);
    case Failure::Left:
      return error_of_rank(
          r.peer, Code::RemoteError, "%s left before exchange %llu", peer.c_str(), call);
    case Failure::Overlap:
      return error(Code::InvalidUsage,
                   "two launches of one communicator ran at the same time in exchange %llu; order "
                   "them by a stream "
                   "or an event",
                   call);
    default:
      return explain_word(status_word(static_cast<Failure>(r.failure), r.peer));
  }
}

}  // namespace fccl
