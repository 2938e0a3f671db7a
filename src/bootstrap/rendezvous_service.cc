#include "bootstrap/rendezvous_service.h"

#include <sodium.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/log.h"
#include "bootstrap/worker_thread.h"
#include "device/layout/limits.h"

namespace fccl {
namespace {

constexpr int kLongestSleepMs = 1000;
constexpr size_t kReadBytes = 16 * 1024;
// Latecomers after a failure are told for so long what went wrong.
constexpr int64_t kLingerMs = 1000;

// The verdict of an expired deadline must reach the ranks before their own deadline expires.
int64_t with_margin(int64_t remaining_ms) {
  return remaining_ms - std::min<int64_t>(remaining_ms / 10, 100);
}

std::string version_of(const Hello& hello) {
  return version_text(hello.library_version, hello.wire_version);
}

std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); i++)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string who(const RankCard& card) {
  return "pid " + std::to_string(card.process_id) + " on host " + card.host;
}

}  // namespace

Result<std::shared_ptr<RendezvousService>> RendezvousService::start(const Secret& secret,
                                                                    std::vector<Listener> listeners,
                                                                    int64_t idle_ms, bool fixed) {
  FCCL_TRY(start_cryptography());
  FCCL_TRY_ASSIGN(acceptor, Acceptor::create(secret, Hello{}, std::move(listeners)));
  std::shared_ptr<RendezvousService> service(
      new RendezvousService(std::move(acceptor), idle_ms, fixed));
  if (!service->wake_.valid()) return errno_error("eventfd");
  // The thread owns the service; whoever else holds it can only ask it to stop.
  FCCL_TRY_ASSIGN(thread, start_thread("fccl-rendezvous", [service] { service->run(); }));
  thread.detach();
  return service;
}

RendezvousService::RendezvousService(Acceptor acceptor, int64_t idle_ms, bool fixed)
    : acceptor_(std::move(acceptor)),
      fixed_(fixed),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      idle_(Deadline::after_ms(idle_ms)) {}

void RendezvousService::request_stop() {
  stop_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void RendezvousService::run() {
  try {
    loop();
  } catch (const std::bad_alloc&) {
    FCCL_LOG(Warn, kLogBootstrap, "%s", "the rendezvous ended: out of memory");
  }
  acceptor_.reset();
  clients_.clear();
  ended_.store(true, std::memory_order_release);
}

void RendezvousService::loop() {
  std::vector<pollfd> polled;
  std::vector<Accepted> accepted;
  while (phase_ != Phase::Done && !stop_.load(std::memory_order_acquire)) {
    polled.clear();
    polled.push_back({wake_.get(), POLLIN, 0});
    polled.push_back({acceptor_->fd(), POLLIN, 0});
    for (const Client& client : clients_)
      polled.push_back({client.stream.fd(), client.stream.poll_events(), 0});
    if (!poll_within(polled, Limit{Deadline::after_ms(sleep_ms()), nullptr}, kLongestSleepMs)) {
      fail(errno_error("poll in the rendezvous"));
      return;
    }
    size_t entry = 2;
    for (Client& client : clients_) serve(client, polled[entry++].revents);
    acceptor_->step(accepted);
    for (Accepted& one : accepted) take(std::move(one));
    accepted.clear();
    std::erase_if(clients_, [](const Client& client) { return client.stream.ended(); });
    check_deadlines();
  }
}

int RendezvousService::sleep_ms() const {
  int64_t sleep = acceptor_->sleep_ms(kLongestSleepMs);
  const auto consider = [&](const Deadline& deadline) {
    sleep = std::clamp<int64_t>(deadline.remaining_ms(), 0, sleep);
  };
  if (clients_.empty() || phase_ == Phase::Failed) consider(idle_);
  if (phase_ != Phase::Failed)
    for (const Client& client : clients_) consider(client.deadline);
  return static_cast<int>(sleep);
}

void RendezvousService::take(Accepted accepted) {
  Client client{std::move(accepted.stream), accepted.hello, {}, {}};
  if (ranks_ == 0) ranks_ = client.hello.ranks;
  Status status = phase_ == Phase::Failed ? verdict_ : Status{};
  // Another version may encode its card differently: the hello is all that can be trusted.
  const bool same_version = client.hello.wire_version == kWireVersion;
  if (same_version) {
    Result<RendezvousHello> card = decode_rendezvous_hello(accepted.first);
    if (card.ok())
      client.card = *card;
    else if (status.ok())
      status = card.status();
  }
  client.deadline = Deadline::after_ms(same_version ? with_margin(client.card.remaining_ms) : 0);
  if (status.ok()) status = check(client);
  RendezvousMessage welcome;
  (void)client.stream.send(encode(welcome));
  clients_.push_back(std::move(client));
  if (!status.ok())
    fail(status);
  else if (clients_.size() == static_cast<size_t>(ranks_))
    send_table();
}

Status RendezvousService::check(const Client& newcomer) const {
  const Hello& hello = newcomer.hello;
  for (const Client& other : clients_) FCCL_TRY(check_against(newcomer, other));
  if (hello.wire_version != kWireVersion) {
    return error_of_rank(hello.rank,
                         Code::VersionMismatch,
                         "rank %d has fccl %s, the rendezvous has wire version %d",
                         hello.rank,
                         version_of(hello).c_str(),
                         kWireVersion);
  }
  if (hello.ranks < 1 || hello.ranks > kMaxRanks)
    return error(Code::InvalidArgument,
                 "rank %d asks for %d ranks; 1 to %d are possible",
                 hello.rank,
                 hello.ranks,
                 kMaxRanks);
  if (hello.rank < 0 || hello.rank >= hello.ranks)
    return error(Code::InvalidArgument,
                 "rank %d (%s) is out of range: there are %d ranks, 0 to %d",
                 hello.rank,
                 who(newcomer.card.card).c_str(),
                 hello.ranks,
                 hello.ranks - 1);
  if (!newcomer.card.local.ok())
    return Status(newcomer.card.local.code(),
                  hello.rank,
                  "rank " + std::to_string(hello.rank) + ": " + newcomer.card.local.text());
  return {};
}

Status RendezvousService::check_against(const Client& newcomer, const Client& other) const {
  // The lower rank first, so that the words do not depend on who came first.
  const bool swap = other.hello.rank < newcomer.hello.rank;
  const Client& low = swap ? other : newcomer;
  const Client& high = swap ? newcomer : other;
  if (low.hello.wire_version != high.hello.wire_version ||
      low.hello.library_version != high.hello.library_version)
    return error(Code::VersionMismatch,
                 "rank %d has fccl %s, rank %d has fccl %s",
                 low.hello.rank,
                 version_of(low.hello).c_str(),
                 high.hello.rank,
                 version_of(high.hello).c_str());
  if (low.hello.ranks != high.hello.ranks)
    return error(Code::InvalidArgument,
                 "the ranks disagree about their number: rank %d says %d, rank %d says %d",
                 low.hello.rank,
                 low.hello.ranks,
                 high.hello.rank,
                 high.hello.ranks);
  if (low.hello.rank == high.hello.rank)
    return error(Code::InvalidUsage,
                 "rank %d came twice: %s and %s",
                 low.hello.rank,
                 who(other.card.card).c_str(),
                 who(newcomer.card.card).c_str());
  return {};
}

void RendezvousService::serve(Client& client, short events) {
  if (events == 0) return;
  Status status = client.stream.read(kReadBytes);
  if (status.ok()) status = client.stream.flush();
  if (!status.ok()) client.stream.close();
  std::vector<uint8_t> bytes;
  while (client.stream.next(bytes)) take_message(client, bytes);
  if (client.stream.ended()) hang_up(client);
}

void RendezvousService::take_message(Client& client, const std::vector<uint8_t>& bytes) {
  Result<RendezvousMessage> message = decode_rendezvous_message(bytes);
  Status status = message.ok() ? message->status : message.status();
  if (message.ok() && message->kind != RendezvousKind::Report)
    status = error(Code::RemoteError, "an unexpected message in the rendezvous");
  if (!status.ok()) {
    // A rank that saw a peer die reports the peer; its own name would mislead.
    const bool blames = status.rank() >= 0;
    fail(blames ? status
                : Status(status.code(),
                         client.hello.rank,
                         "rank " + std::to_string(client.hello.rank) + ": " + status.text()));
    return;
  }
  client.reported = true;
  if (phase_ != Phase::Meshing) return;
  for (const Client& other : clients_)
    if (!other.reported) return;
  finish();
}

void RendezvousService::hang_up(Client& client) {
  if (client.answered || phase_ == Phase::Failed || phase_ == Phase::Done) return;
  fail(error_of_rank(client.hello.rank,
                     Code::RemoteError,
                     "rank %d (%s) closed its connection during the rendezvous",
                     client.hello.rank,
                     who(client.card.card).c_str()));
}

std::vector<int> RendezvousService::missing_ranks() const {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks_; rank++) {
    const bool here = std::any_of(clients_.begin(), clients_.end(), [&](const Client& client) {
      return client.hello.rank == rank && (phase_ == Phase::Collecting || client.reported);
    });
    if (!here) missing.push_back(rank);
  }
  return missing;
}

void RendezvousService::check_deadlines() {
  if (phase_ == Phase::Done) return;
  if (phase_ == Phase::Failed || clients_.empty()) {
    const size_t expected = static_cast<size_t>(std::clamp(ranks_, 1, kMaxRanks));
    const bool all_told =
        phase_ == Phase::Failed && clients_.empty() && (fixed_ || answered_ >= expected);
    if (idle_.expired() || all_told) phase_ = Phase::Done;
    return;
  }
  for (const Client& client : clients_) {
    if (!client.deadline.expired()) continue;
    const std::vector<int> missing = missing_ranks();
    const bool collecting = phase_ == Phase::Collecting;
    fail(error_of_rank(missing.empty() ? -1 : missing[0],
                       Code::Timeout,
                       "%s did not %s within %u ms (%zu of %d ranks %s)",
                       rank_list(missing).c_str(),
                       collecting ? "come" : "connect to all peers",
                       client.card.limit_ms,
                       static_cast<size_t>(ranks_) - missing.size(),
                       ranks_,
                       collecting ? "came" : "did"));
    return;
  }
}

void RendezvousService::send_table() {
  acceptor_->close_listeners();
  RendezvousMessage table;
  table.kind = RendezvousKind::Table;
  const Status status = random_bytes(table.secret.bytes.data(), kSecretBytes);
  if (!status.ok()) return fail(status);
  clients_.sort([](const Client& a, const Client& b) { return a.hello.rank < b.hello.rank; });
  for (const Client& client : clients_) table.cards.push_back(client.card.card);
  std::vector<uint8_t> bytes = encode(table);
  for (Client& client : clients_) (void)client.stream.send(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  phase_ = Phase::Meshing;
  FCCL_LOG(Info, kLogBootstrap, "all %d ranks have come", ranks_);
}

void RendezvousService::finish() {
  for (Client& client : clients_) answer(client);
  phase_ = Phase::Done;
}

void RendezvousService::fail(const Status& status) {
  if (phase_ != Phase::Failed) {
    FCCL_LOG(Info, kLogBootstrap, "the rendezvous failed: %s", status.text().c_str());
    verdict_ = status;
    phase_ = Phase::Failed;
    int64_t linger = kLingerMs;
    if (fixed_)
      acceptor_->close_listeners();
    else  // latecomers are expected until the deadline of those who are here
      for (const Client& client : clients_)
        linger = std::max(linger, client.deadline.remaining_ms());
    idle_ = Deadline::after_ms(linger);
  }
  for (Client& client : clients_)
    if (!client.answered) answer(client);
}

void RendezvousService::answer(Client& client) {
  RendezvousMessage done;
  done.kind = RendezvousKind::Done;
  done.status = verdict_;
  (void)client.stream.send(encode(done));
  client.answered = true;
  answered_++;
}

}  // namespace fccl
