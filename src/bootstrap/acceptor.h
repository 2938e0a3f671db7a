// Acceptor: takes connections on any number of listeners and yields those whose peer has proved
// that it has the secret, with the peer's first message. Driven by its owner's poll loop; it never
// waits.
//
// What strangers can do is bounded: at most kMaxStrangers connections are open without proof, each
// for at most kHandshakeMs; when there are more, the oldest goes, one without a valid hello first.
// A silent, slow, garbled or oversized stranger costs one slot for that time and delays nobody: an
// honest rank proves itself within a few milliseconds, and tries again if it was pushed out.
#pragma once
#include <poll.h>

#include <list>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/socket.h"
#include "bootstrap/stream.h"

namespace fccl {

constexpr size_t kMaxStrangers = 128;
constexpr int64_t kHandshakeMs = 2000;
constexpr size_t kFirstFrameLimit = 8 * 1024;

struct Accepted {
  Stream stream;
  Hello hello;
  std::vector<uint8_t> first;
};

class Acceptor {
 public:
  Acceptor(const Secret& secret, const Hello& mine) : secret_(secret), mine_(mine) {}

  void add(Listener listener) { listeners_.push_back(std::move(listener)); }
  void close_listeners() { listeners_.clear(); }
  bool listening() const { return !listeners_.empty(); }
  void add_polled(std::vector<pollfd>& polled);
  // `polled` as filled by the last add_polled at `first`, after poll.
  void step(const std::vector<pollfd>& polled, size_t first, std::vector<Accepted>& out);
  // How long poll may sleep before a stranger's time is up.
  int sleep_ms(int at_most) const;

 private:
  struct Stranger {
    Stream stream;
    Deadline deadline;
  };
  void accept_all(const Listener& listener);
  void drop_one();
  // True if the stranger is to be removed from the list.
  bool serve(Stranger& stranger, short events, std::vector<Accepted>& out);

  Secret secret_;
  Hello mine_;
  std::vector<Listener> listeners_;
  std::list<Stranger> strangers_;
  Deadline pause_;  // accept nothing until then: out of descriptors
};

}  // namespace fccl
