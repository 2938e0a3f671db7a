#include "bootstrap/acceptor.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"

namespace fccl {
namespace {

constexpr int kAcceptsPerStep = 64;
constexpr int kEventsPerStep = 64;
constexpr size_t kStrangerReadBytes = 512;
constexpr int64_t kPauseMs = 20;

bool out_of_resources(int code) {
  return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

}  // namespace

Result<Acceptor> Acceptor::create(const Secret& secret, const Hello& mine,
                                  std::vector<Listener> listeners) {
  Acceptor acceptor(secret, mine);
  acceptor.epoll_ = GuardedFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!acceptor.epoll_.valid()) return errno_error("epoll_create");
  acceptor.listeners_ = std::move(listeners);
  FCCL_TRY(acceptor.watch_listeners(EPOLLIN, EPOLL_CTL_ADD));
  return acceptor;
}

Status Acceptor::watch_listeners(uint32_t events, int operation) {
  for (const Listener& listener : listeners_) {
    epoll_event event{};
    event.events = events;  // data.ptr stays null: a listener
    if (::epoll_ctl(epoll_.get(), operation, listener.socket.get(), &event) != 0)
      return errno_error("epoll_ctl");
  }
  return {};
}

// Taken out of epoll by name: a forked child may hold a copy for a moment, and closing ours would
// then leave it registered.
void Acceptor::close_listeners() {
  (void)watch_listeners(0, EPOLL_CTL_DEL);
  listeners_.clear();
}

void Acceptor::step(std::vector<Accepted>& out) {
  if (paused_ && pause_.expired()) {
    paused_ = false;
    (void)watch_listeners(EPOLLIN, EPOLL_CTL_MOD);
  }
  epoll_event events[kEventsPerStep];
  const int count = ::epoll_wait(epoll_.get(), events, kEventsPerStep, 0);
  // Strangers before listeners: a newcomer may push one of them out.
  bool newcomers = false;
  for (int i = 0; i < count; i++) {
    Stranger* const stranger = static_cast<Stranger*>(events[i].data.ptr);
    if (stranger == nullptr)
      newcomers = true;
    else
      serve(*stranger, out);
  }
  while (!strangers_.empty() && strangers_.front().deadline.expired()) drop(strangers_.front());
  if (newcomers)
    for (const Listener& listener : listeners_) accept_all(listener, out);
}

void Acceptor::accept_all(const Listener& listener, std::vector<Accepted>& out) {
  for (int i = 0; i < kAcceptsPerStep; i++) {
    GuardedFd socket = accept_one(listener);
    if (!socket.valid()) {
      if (out_of_resources(errno)) pause();
      return;
    }
    if (strangers_.size() >= kMaxStrangers) drop_one();
    Result<SecureChannel> channel =
        SecureChannel::create(Side::Server, secret_, mine_, kFirstFrameLimit);
    if (!channel.ok()) return;
    strangers_.push_back({Stream(std::move(socket), listener.is_unix, std::move(*channel)),
                          Deadline::after_ms(kHandshakeMs),
                          false,
                          {}});
    strangers_.back().self = std::prev(strangers_.end());
    // What it has to say is often there already; garbage then costs no registration.
    serve(strangers_.back(), out);
  }
}

// The connection stays in the listener's queue and would wake us at once again.
void Acceptor::pause() {
  drop_one();
  pause_ = Deadline::after_ms(kPauseMs);
  paused_ = true;
  (void)watch_listeners(0, EPOLL_CTL_MOD);
}

void Acceptor::drop(Stranger& stranger) {
  if (stranger.watched)
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stranger.stream.fd(), nullptr);
  strangers_.erase(stranger.self);
}

void Acceptor::drop_one() {
  auto victim = std::find_if(strangers_.begin(), strangers_.end(), [](Stranger& stranger) {
    return !stranger.stream.channel().established();
  });
  if (victim == strangers_.end()) victim = strangers_.begin();
  if (victim != strangers_.end()) drop(*victim);
}

// May remove the stranger: it has proved itself, or it is refused.
void Acceptor::serve(Stranger& stranger, std::vector<Accepted>& out) {
  Stream& stream = stranger.stream;
  Status status = stream.read(kStrangerReadBytes);
  // The answer to a hello fits into any socket's buffer; who does not take it is no honest peer.
  if (status.ok()) status = stream.flush();
  if (!status.ok())
    FCCL_LOG(Info, kLogBootstrap, "a connection was refused: %s", status.text().c_str());
  std::vector<uint8_t> message;
  if (status.ok() && stream.channel().confirmed() && stream.next(message)) {
    set_peer_options(stream.fd(), stream.is_unix());
    if (stranger.watched) (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream.fd(), nullptr);
    const Hello hello = stream.channel().peer();
    out.push_back({std::move(stream), hello, std::move(message)});
    strangers_.erase(stranger.self);
    return;
  }
  if (!status.ok() || stream.ended()) return drop(stranger);
  if (stranger.watched) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &stranger;
  stranger.watched = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stream.fd(), &event) == 0;
  if (!stranger.watched) drop(stranger);
}

int Acceptor::sleep_ms(int at_most) const {
  int64_t sleep = at_most;
  if (!strangers_.empty())
    sleep = std::clamp<int64_t>(strangers_.front().deadline.remaining_ms(), 0, sleep);
  if (paused_) sleep = std::clamp<int64_t>(pause_.remaining_ms(), 0, sleep);
  return static_cast<int>(sleep);
}

}  // namespace fccl
