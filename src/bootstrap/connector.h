// Connector: connects to one peer that listens at any of several endpoints, proves the secret,
// sends a first message and waits for the welcome. Driven by its owner's poll loop; it never waits.
//
// Endpoints are tried in their order, each with a bound, over and over with a growing pause: a peer
// may drop us under a flood of strangers, and then the next try succeeds. When nobody listens at
// any of them in several rounds on end, `nobody_listens` says so and the owner decides.
#pragma once
#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/socket.h"
#include "bootstrap/stream.h"

namespace fccl {

// The TCP endpoints of a peer; a link-local IPv6 address is tried on each local interface, because
// the peer's scope id means nothing here.
std::vector<Endpoint> tcp_endpoints(const std::vector<Address>& addresses);

class Connector {
 public:
  Connector(const Secret& secret, const Hello& mine, std::vector<Endpoint> endpoints,
            std::vector<uint8_t> first_message);
  Connector(Connector&&) = default;
  Connector& operator=(Connector&&) = default;
  ~Connector();

  // Always one entry.
  void add_polled(std::vector<pollfd>& polled);
  void step(const pollfd& polled);
  int sleep_ms(int at_most) const;

  bool connected() const { return phase_ == Phase::Welcomed; }
  // Legal once connected(). Further messages may already wait in the stream.
  Stream take() { return std::move(*stream_); }
  const std::vector<uint8_t>& welcome() const { return welcome_; }
  bool nobody_listens(int rounds) const { return empty_rounds_ >= rounds; }
  // The most telling failure so far, for the error of the owner.
  const std::string& last_failure() const { return last_failure_; }

 private:
  enum class Phase { Pause, Connecting, Handshake, Introduced, Welcomed };
  void start_next();
  void fail(const std::string& why, bool somebody_listens);
  void begin_handshake();
  void advance_handshake(short events);

  Secret secret_;
  Hello mine_;
  std::vector<Endpoint> endpoints_;
  std::vector<uint8_t> first_message_;
  Phase phase_ = Phase::Pause;
  size_t next_endpoint_ = 0;
  bool somebody_in_round_ = false;
  bool somebody_ever_ = false;
  int empty_rounds_ = 0;
  int64_t pause_ms_ = 0;
  Deadline timer_;
  GuardedFd connecting_;
  std::optional<Stream> stream_;
  std::vector<uint8_t> welcome_;
  std::string last_failure_;
};

}  // namespace fccl
