// Acceptor: takes connections on any number of listeners and yields those whose peer has proved
// that it has the secret, with the peer's first message. Driven by its owner's poll loop; it never
// waits.
//
// What strangers can do is bounded: at most kMaxStrangers connections are open without proof, each
// for at most kHandshakeMs; when there are more, the oldest goes, one without a valid hello first.
// A silent, slow, garbled or oversized stranger costs one slot for that time and delays nobody: an
// honest rank proves itself within a few milliseconds, and tries again if it was pushed out. All
// its sockets are behind one epoll descriptor, so that a round costs what there is to do, however
// many strangers sit there.
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
  // A server's secret and hello (its purpose; in a mesh its rank).
  static Result<Acceptor> create(const Secret& secret, const Hello& mine,
                                 std::vector<Listener> listeners);
  Acceptor(Acceptor&&) = default;
  Acceptor& operator=(Acceptor&&) = default;
  ~Acceptor() = default;

  void close_listeners();
  // Readable when there is something for step() to do.
  int fd() const { return epoll_.get(); }
  void step(std::vector<Accepted>& out);
  // How long the owner's poll may sleep before a stranger's time is up.
  int sleep_ms(int at_most) const;

 private:
  struct Stranger {
    Stream stream;
    Deadline deadline;
    bool watched = false;  // registered with epoll
    std::list<Stranger>::iterator self;
  };
  Acceptor(const Secret& secret, const Hello& mine) : secret_(secret), mine_(mine) {}
  Status watch_listeners(uint32_t events, int operation);
  void accept_all(const Listener& listener, std::vector<Accepted>& out);
  void pause();
  void drop(Stranger& stranger);
  void drop_one();
  void serve(Stranger& stranger, std::vector<Accepted>& out);

  Secret secret_;
  Hello mine_;
  GuardedFd epoll_;
  std::vector<Listener> listeners_;
  std::list<Stranger> strangers_;  // oldest first
  Deadline pause_;  // nothing is accepted until then: out of descriptors
  bool paused_ = false;
};

}  // namespace fccl
