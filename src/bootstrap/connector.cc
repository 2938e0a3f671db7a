#include "bootstrap/connector.h"

#include <net/if.h>
#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bootstrap/acceptor.h"

namespace fccl {
namespace {

constexpr int64_t kConnectMs = 2000;
constexpr int64_t kHelloMs = 10000;
constexpr int64_t kFirstPauseMs = 10;
constexpr int64_t kLastPauseMs = 250;
constexpr size_t kReadBytes = 4096;

// The kernel says that nothing listens there, or that the place cannot be reached from here.
bool means_nobody(int code) {
  return code == ECONNREFUSED || code == ENOENT || code == ENETUNREACH || code == EHOSTUNREACH ||
         code == EADDRNOTAVAIL || code == EINVAL || code == ENODEV || code == EACCES ||
         code == EPERM || code == EAFNOSUPPORT || code == ENAMETOOLONG;
}

}  // namespace

std::vector<Endpoint> tcp_endpoints(const std::vector<Address>& addresses) {
  std::vector<Endpoint> endpoints;
  for (const Address& address : addresses) {
    endpoints.push_back({"", address});
    if (address.family != AF_INET6 || !address.is_link_local()) continue;
    struct if_nameindex* const names = if_nameindex();
    for (const struct if_nameindex* name = names; name != nullptr && name->if_index != 0; name++) {
      if (name->if_index == address.scope || std::strcmp(name->if_name, "lo") == 0) continue;
      Address scoped = address;
      scoped.scope = name->if_index;
      endpoints.push_back({"", scoped});
    }
    if (names != nullptr) if_freenameindex(names);
  }
  return endpoints;
}

Connector::Connector(const Secret& secret, const Hello& mine, std::vector<Endpoint> endpoints,
                     std::vector<uint8_t> first_message)
    : secret_(secret),
      mine_(mine),
      endpoints_(std::move(endpoints)),
      first_message_(std::move(first_message)) {}

Connector::~Connector() {
  sodium_memzero(first_message_.data(), first_message_.size());
}

void Connector::add_polled(std::vector<pollfd>& polled) {
  if (phase_ == Phase::Pause && timer_.expired()) start_next();
  pollfd entry{-1, 0, 0};
  if (phase_ == Phase::Connecting) entry = {connecting_.get(), POLLOUT, 0};
  if (phase_ == Phase::Handshake || phase_ == Phase::Introduced)
    entry = {stream_->fd(), stream_->poll_events(), 0};
  polled.push_back(entry);
}

int Connector::sleep_ms(int at_most) const {
  if (phase_ == Phase::Introduced || phase_ == Phase::Welcomed) return at_most;
  return static_cast<int>(std::clamp<int64_t>(timer_.remaining_ms(), 0, at_most));
}

void Connector::start_next() {
  if (endpoints_.empty()) {
    fail("it has no address that can be reached from here", false);
    return;
  }
  const Endpoint& endpoint = endpoints_[next_endpoint_];
  const int code = start_connect(endpoint, connecting_);
  if (code != 0) {
    char text[128];
    fail("connect to " + endpoint.text() + ": " + strerror_r(code, text, sizeof text),
         !means_nobody(code));
    return;
  }
  phase_ = Phase::Connecting;
  timer_ = Deadline::after_ms(kConnectMs);
}

// Goes on to the next endpoint at once, and pauses after the last.
void Connector::fail(const std::string& why, bool somebody_listens) {
  // A refusal tells less than what somebody who listened did before.
  if (somebody_listens || !somebody_ever_) last_failure_ = why;
  somebody_ever_ = somebody_ever_ || somebody_listens;
  stream_.reset();
  connecting_.reset();
  somebody_in_round_ = somebody_in_round_ || somebody_listens;
  phase_ = Phase::Pause;
  timer_ = Deadline::after_ms(0);
  if (++next_endpoint_ < endpoints_.size()) return;
  next_endpoint_ = 0;
  empty_rounds_ = somebody_in_round_ ? 0 : empty_rounds_ + 1;
  somebody_in_round_ = false;
  pause_ms_ = std::clamp(pause_ms_ * 2, kFirstPauseMs, kLastPauseMs);
  timer_ = Deadline::after_ms(pause_ms_);
}

void Connector::begin_handshake() {
  const bool is_unix = endpoints_[next_endpoint_].is_unix();
  Result<SecureChannel> channel =
      SecureChannel::create(Side::Client, secret_, mine_, kFirstFrameLimit);
  if (!channel.ok()) {
    fail(channel.status().text(), true);
    return;
  }
  stream_.emplace(std::move(connecting_), is_unix, std::move(*channel));
  set_peer_options(stream_->fd(), is_unix);
  phase_ = Phase::Handshake;
  timer_ = Deadline::after_ms(kHelloMs);
  const Status status = stream_->flush();
  if (!status.ok()) fail(status.text(), true);
}

void Connector::advance_handshake(short events) {
  const std::string where = endpoints_[next_endpoint_].text();
  if (events != 0) {
    Status status = stream_->read(kReadBytes);
    if (status.ok() && phase_ == Phase::Handshake && stream_->channel().established()) {
      status = stream_->send(first_message_);
      phase_ = Phase::Introduced;
    }
    if (status.ok()) status = stream_->flush();
    if (!status.ok()) {
      fail(where + ": " + status.text(), true);
      return;
    }
    if (stream_->next(welcome_)) {
      phase_ = Phase::Welcomed;
      return;
    }
    if (stream_->ended()) {
      fail(where + " closed the connection during the handshake; another secret, or no fccl there",
           true);
      return;
    }
  }
  if (phase_ == Phase::Handshake && timer_.expired())
    fail(where + " does not answer the handshake", true);
}

void Connector::step(const pollfd& polled) {
  if (phase_ == Phase::Connecting) {
    if (polled.revents != 0) {
      const int code = connect_error(connecting_.get());
      if (code == 0) {
        begin_handshake();
      } else {
        char text[128];
        fail("connect to " + endpoints_[next_endpoint_].text() + ": " +
                 strerror_r(code, text, sizeof text),
             !means_nobody(code));
      }
    } else if (timer_.expired()) {
      fail("connect to " + endpoints_[next_endpoint_].text() + ": no answer", true);
    }
  } else if (phase_ == Phase::Handshake || phase_ == Phase::Introduced) {
    advance_handshake(polled.revents);
  }
}

}  // namespace fccl
