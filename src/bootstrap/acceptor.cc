#include "bootstrap/acceptor.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"

namespace fccl {
namespace {

constexpr int kAcceptsPerStep = 64;
constexpr size_t kStrangerReadBytes = 512;
constexpr int64_t kPauseMs = 20;

}  // namespace

void Acceptor::add_polled(std::vector<pollfd>& polled) {
  const short listen_events = pause_.expired() ? POLLIN : 0;
  for (const Listener& listener : listeners_)
    polled.push_back({listener.socket.get(), listen_events, 0});
  for (const Stranger& stranger : strangers_)
    polled.push_back({stranger.stream.fd(), stranger.stream.poll_events(), 0});
}

void Acceptor::step(const std::vector<pollfd>& polled, size_t first, std::vector<Accepted>& out) {
  // Strangers before listeners: their entries match the list only until it grows.
  size_t entry = first + listeners_.size();
  for (auto it = strangers_.begin(); it != strangers_.end();) {
    const short events = polled[entry++].revents;
    it = serve(*it, events, out) ? strangers_.erase(it) : std::next(it);
  }
  for (size_t i = 0; i < listeners_.size(); i++)
    if (polled[first + i].revents != 0) accept_all(listeners_[i]);
}

void Acceptor::accept_all(const Listener& listener) {
  for (int i = 0; i < kAcceptsPerStep; i++) {
    GuardedFd socket = accept_one(listener);
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // The connection stays in the queue and would wake us at once again.
        drop_one();
        pause_ = Deadline::after_ms(kPauseMs);
      }
      return;
    }
    if (strangers_.size() >= kMaxStrangers) drop_one();
    Result<SecureChannel> channel =
        SecureChannel::create(Side::Server, secret_, mine_, kFirstFrameLimit);
    if (!channel.ok()) return;
    strangers_.push_back({Stream(std::move(socket), listener.is_unix, std::move(*channel)),
                          Deadline::after_ms(kHandshakeMs)});
  }
}

void Acceptor::drop_one() {
  auto victim = std::find_if(strangers_.begin(), strangers_.end(), [](Stranger& stranger) {
    return !stranger.stream.channel().established();
  });
  if (victim == strangers_.end()) victim = strangers_.begin();
  if (victim != strangers_.end()) strangers_.erase(victim);
}

bool Acceptor::serve(Stranger& stranger, short events, std::vector<Accepted>& out) {
  if (events != 0) {
    Status status = stranger.stream.read(kStrangerReadBytes);
    if (status.ok()) status = stranger.stream.flush();
    if (!status.ok()) {
      FCCL_LOG(Info, kLogBootstrap, "a connection was refused: %s", status.text().c_str());
      return true;
    }
    std::vector<uint8_t> message;
    if (stranger.stream.channel().confirmed() && stranger.stream.next(message)) {
      set_peer_options(stranger.stream.fd(), stranger.stream.is_unix());
      const Hello hello = stranger.stream.channel().peer();
      out.push_back({std::move(stranger.stream), hello, std::move(message)});
      return true;
    }
    if (stranger.stream.ended()) return true;
  }
  return stranger.deadline.expired();
}

int Acceptor::sleep_ms(int at_most) const {
  int64_t sleep = at_most;
  for (const Stranger& stranger : strangers_)
    sleep = std::min(sleep, std::max<int64_t>(0, stranger.deadline.remaining_ms()));
  if (!pause_.expired()) sleep = std::min(sleep, std::max<int64_t>(1, pause_.remaining_ms()));
  return static_cast<int>(sleep);
}

}  // namespace fccl
