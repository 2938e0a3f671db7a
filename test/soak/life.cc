// See life.h.
#include "life.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "harness/comm_case.h"

namespace fccl::test {
namespace {

constexpr int64_t kStallDeadlineMs = 100;

bool names_rank(const std::string& text, int rank) {
  return text.find("rank " + std::to_string(rank)) != std::string::npos;
}
bool names_some_rank(const std::string& text) {
  return text.find("rank ") != std::string::npos;
}

// The code of the call, and what is wrong with its outputs if it succeeded.
fcclResult_t call_fused(fcclComm_t comm, int rank, const KernelCase& c, std::string& wrong) {
  const KernelProblem problem = make_problem(c);
  RankBuffers buffers = make_buffers(c, rank, problem);
  const fcclFusedArgs args = args_of(c, buffers);
  const fcclResult_t code = fcclAllReduceResidualRMSNormEx(&args, comm, nullptr);
  if (code == fcclSuccess) wrong = check_buffers(c, rank, problem, buffers);
  if (!wrong.empty()) wrong = c.text() + ": " + wrong;
  return code;
}

}  // namespace

Life::Life(const RoundPlan& plan, int rank, int communicator, const fcclUniqueId& id)
    : plan_(plan), rank_(rank), communicator_(communicator), id_(id) {}

Life::~Life() {
  if (saboteur_.joinable()) saboteur_.join();
}

bool Life::is_hit() const {
  return plan_.fault == Fault::KillInInit || plan_.fault == Fault::KillInCall ||
         (plan_.fault != Fault::None && plan_.fault_communicator == communicator_);
}

// A rank that fails in a later call tells all, those too that are still in an earlier one. But it
// has completed the last exchange before its own, so everybody has begun that one.
int Life::first_call_that_may_fail() const {
  int call = plan_.fault == Fault::Stall ? plan_.fault_call - 1 : plan_.fault_call;
  for (; call > 0; --call) {
    const SoakCall& c = mine().calls[static_cast<size_t>(call)];
    if (c.is_plain ? c.collective.count > 0 : c.fused.tokens > 0) break;
  }
  return call < 0 ? 0 : call;
}

// Does the round's fault explain this answer? `call` is -1 in init and large behind the calls.
std::string Life::judge(fcclComm_t comm, fcclResult_t code, const char* what, int call) {
  if (code == fcclSuccess) return "";
  is_over_ = true;
  const std::string text = fcclGetLastError(comm);
  // A part has rank numbers of its own.
  const bool is_named = comm == comm_ ? names_rank(text, plan_.victim) : names_some_rank(text);
  const bool own_abort = plan_.fault == Fault::Abort && is_victim();
  bool explained = is_hit() && !text.empty();
  switch (plan_.fault) {
    case Fault::None:
      break;
    case Fault::Abort: {
      // A split or a finalize is a vote: all get the one error of the rank that failed, and the
      // rank that aborts may hear first of a peer that left because of it.
      const bool voted = call >= 0 && std::strcmp(what, "call") != 0;
      const bool aborted = code == fcclAborted && (own_abort || (voted && is_named));
      const bool remote =
          code == fcclRemoteError && (own_abort ? voted && names_some_rank(text) : is_named);
      // In its first call it may abort before the last vote of init has reached all.
      const bool joining = call < 0 && remote && plan_.fault_call == 0 && !own_abort;
      explained = explained && (call >= 0 ? aborted || remote : joining);
      break;
    }
    case Fault::Leave:
      explained =
          explained && call >= first_call_that_may_fail() && code == fcclRemoteError && is_named;
      break;
    case Fault::Stall:
      explained = explained && call >= first_call_that_may_fail() &&
                  (code == fcclTimeout || code == fcclRemoteError);
      break;
    case Fault::KillInInit:
    case Fault::KillInCall:
      // Communicators that live at once: one may be in init yet when a call of another is hit, and
      // who dies before its hello is missing at the deadline.
      explained =
          explained && is_named &&
          (code == fcclRemoteError || (code == fcclTimeout && call < 0 &&
                                       (plan_.fault == Fault::KillInInit || plan_.is_concurrent)));
      break;
  }
  if (explained) return "";
  return " communicator " + std::to_string(communicator_) + ", " + what + " " +
         std::to_string(call) + ": " + fcclGetErrorString(code) + ": " + text + "\n";
}

std::string Life::begin() {
  RanksOptions options = ranks_of(plan_.ranks);
  if (plan_.fault == Fault::KillInInit) options.config.init_timeout_ms = bound_ms(3000);
  const fcclResult_t code =
      fcclCommInitRankConfig(&comm_, plan_.ranks, &id_, rank_, &options.config);
  return judge(comm_, code, "init", -1);
}

void Life::start_fault(int call) {
  if (!is_hit() || call != plan_.fault_call || communicator_ != plan_.fault_communicator) return;
  if (plan_.fault == Fault::Stall) {
    (void)fcclCommSetTimeout(comm_, kStallDeadlineMs);
    if (is_victim()) usleep(3 * kStallDeadlineMs * 1000);
  }
  if (!is_victim()) return;
  const auto delay = static_cast<useconds_t>(plan_.fault_delay_us);
  if (plan_.fault == Fault::Abort) {
    saboteur_ = std::thread([comm = comm_, delay] {
      usleep(delay);
      (void)fcclCommAbort(comm);
    });
  } else if (plan_.fault == Fault::KillInCall) {
    saboteur_ = std::thread([delay] {
      usleep(delay);
      (void)kill(getpid(), SIGKILL);
    });
  }
}

std::string Life::make_call(fcclComm_t comm, int rank, int ranks, const SoakCall& call,
                            int number) {
  std::string wrong;
  fcclResult_t code = fcclSuccess;
  if (call.is_plain) {
    const CollectiveAnswer answer =
        call_collective(call.collective, call.launch, comm, rank, ranks);
    code = answer.code;
    if (code == fcclSuccess) wrong = answer.error;
  } else {
    code = call_fused(comm, rank, call.fused, wrong);
  }
  if (!wrong.empty())
    return "communicator " + std::to_string(communicator_) + ", call " + std::to_string(number) +
           ": " + wrong + "\n";
  if (code == fcclSuccess) return "";
  std::string error = judge(comm, code, "call", number);
  return error.empty() ? "" : (call.is_plain ? call.collective.text() : call.fused.text()) + error;
}

std::string Life::step(int call) {
  if (is_over_) return "";
  if (const int64_t delay = plan_.delay_us(rank_, communicator_, call))
    usleep(static_cast<useconds_t>(delay));
  start_fault(call);
  std::string error =
      make_call(comm_, rank_, plan_.ranks, mine().calls[static_cast<size_t>(call)], call);
  if (plan_.fault == Fault::Leave && is_victim() && call == plan_.fault_call) {
    is_over_ = true;
    error += destroy(comm_);
    comm_ = nullptr;
  }
  if (!is_over_ && call == calls() / 2 && !mine().colors.empty()) error += split();
  return error;
}

// Splits, makes the part's calls and destroys it. A fault may hit any of it.
std::string Life::split() {
  const std::vector<int>& colors = mine().colors;
  const int color = colors[static_cast<size_t>(rank_)];
  constexpr int kLate = 1 << 20;  // behind every call that a fault names
  const int number = plan_.fault == Fault::Leave ? calls() / 2 + 1 : kLate;
  fcclComm_t part = nullptr;
  const fcclResult_t code = fcclCommSplit(comm_, color, rank_, &part, nullptr);
  std::string error = judge(comm_, code, "split", number);
  if (is_over_ || color < 0) return error;
  int rank = 0, ranks = 0;
  for (size_t other = 0; other < colors.size(); ++other) {
    if (colors[other] != color) continue;
    if (static_cast<int>(other) < rank_) ++rank;
    ++ranks;
  }
  int told_rank = -1, told_ranks = -1;
  (void)fcclCommUserRank(part, &told_rank);
  (void)fcclCommCount(part, &told_ranks);
  if (told_rank != rank || told_ranks != ranks)
    return error + "split: rank " + std::to_string(told_rank) + " of " +
           std::to_string(told_ranks) + "\n";
  const auto& calls = mine().calls_of_color[static_cast<size_t>(color)];
  for (size_t i = 0; i < calls.size() && !is_over_ && error.empty(); ++i)
    error += make_call(part, rank, ranks, calls[i], number);
  return error + destroy(part);
}

std::string Life::destroy(fcclComm_t comm) {
  if (comm == nullptr) return "";
  const int64_t start = now_ms();
  const fcclResult_t code = fcclCommDestroy(comm);
  const int64_t took = now_ms() - start;
  if (code != fcclSuccess) return error_text(code, "destroy") + "\n";
  return took < bound_ms(11000) ? "" : "destroy took " + std::to_string(took) + " ms\n";
}

std::string Life::end() {
  std::string error;
  if (comm_ != nullptr && !is_over_ && mine().is_finalized)
    error = judge(comm_, fcclCommFinalize(comm_), "finalize", 1 << 20);
  if (saboteur_.joinable()) saboteur_.join();
  if (comm_ != nullptr) error += destroy(comm_);
  comm_ = nullptr;
  return error;
}

std::string run_rank(const RoundPlan& plan, int rank, const std::vector<fcclUniqueId>& ids) {
  const size_t count = plan.communicators.size();
  std::vector<std::unique_ptr<Life>> lives;
  for (size_t c = 0; c < count; ++c)
    lives.push_back(std::make_unique<Life>(plan, rank, static_cast<int>(c), ids[c]));
  std::vector<std::string> errors(count);
  if (plan.is_concurrent) {
    std::vector<std::thread> threads;
    for (size_t c = 0; c < count; ++c) {
      threads.emplace_back([&life = *lives[c], &error = errors[c]] {
        error = life.begin();
        for (int call = 0; call < life.calls() && error.empty(); ++call) error = life.step(call);
        error += life.end();
      });
    }
    for (std::thread& thread : threads) thread.join();
  } else {
    int calls = 0;
    for (size_t c = 0; c < count; ++c) {
      errors[c] = lives[c]->begin();
      if (lives[c]->calls() > calls) calls = lives[c]->calls();
    }
    for (int call = 0; call < calls; ++call)
      for (size_t c = 0; c < count; ++c)
        if (errors[c].empty() && call < lives[c]->calls()) errors[c] = lives[c]->step(call);
    for (size_t c = 0; c < count; ++c) errors[c] += lives[c]->end();
  }
  std::string all;
  for (const std::string& error : errors) all += error;
  return all;
}

}  // namespace fccl::test
