// Streams over real sockets: descriptors of strangers and of liars, long queues, link-local
// addresses.
#include "bootstrap/stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "bootstrap/acceptor.h"
#include "bootstrap/connector.h"
#include "bootstrap/fd_channel.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

struct StreamPair {
  std::vector<Stream> ends;
};

// Two ends that have shaken hands.
StreamPair connected_pair() {
  int sockets[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) == 0);
  const Secret secret = *random_secret();
  StreamPair pair;
  for (int i : {0, 1}) {
    Result<SecureChannel> channel =
        SecureChannel::create(i == 0 ? Side::Client : Side::Server, secret, Hello{}, kMaxBlobBytes);
    REQUIRE(channel.ok());
    pair.ends.emplace_back(GuardedFd(sockets[i]), true, std::move(*channel));
  }
  REQUIRE(pair.ends[0].flush().ok());
  REQUIRE(pair.ends[1].read(65536).ok());
  REQUIRE(pair.ends[1].flush().ok());
  REQUIRE(pair.ends[0].read(65536).ok());
  REQUIRE(pair.ends[0].flush().ok());
  return pair;
}

size_t open_fds() {
  size_t count = 0;
  for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a descriptor travels with its own frame") {
  StreamPair pair = connected_pair();
  pair.ends[1].accept_fds();
  REQUIRE(pair.ends[0].send("plain", 5).ok());
  REQUIRE(pair.ends[0].send("with", 4, UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC))).ok());
  std::vector<uint8_t> message;
  for (int i = 0; i < 3; i++) REQUIRE(pair.ends[1].read(65536).ok());
  CHECK(pair.ends[1].next(message));
  CHECK(pair.ends[1].next(message));
  CHECK(pair.ends[1].fds().size() == 1);
}

TEST_CASE("descriptors that nobody asked for are not taken, and too many end the stream") {
  StreamPair pair = connected_pair();
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const size_t before = open_fds();
  // Before the reader opts in, the kernel drops them.
  REQUIRE(pair.ends[0].send("x", 1, UniqueFd(dup(file.get()))).ok());
  REQUIRE(pair.ends[1].read(65536).ok());
  CHECK(open_fds() == before);
  CHECK(pair.ends[1].fds().empty());
  // Afterwards a peer may be one or two ahead, no more.
  pair.ends[1].accept_fds();
  Status status;
  for (int i = 0; i < 20 && status.ok(); i++) {
    REQUIRE(pair.ends[0].send("x", 1, UniqueFd(dup(file.get()))).ok());
    status = pair.ends[1].read(65536);
  }
  CHECK_FALSE(status.ok());
  CHECK(contains(status.text(), "descriptors"));
  CHECK(open_fds() == before);
}

TEST_CASE("what the kernel does not take at once waits in the queue, in order") {
  StreamPair pair = connected_pair();
  const std::vector<uint8_t> block(300000, 7);
  for (int i = 0; i < 10; i++) REQUIRE(pair.ends[0].send(block).ok());
  CHECK(pair.ends[0].wants_write());
  CHECK((pair.ends[0].poll_events() & POLLOUT) != 0);
  int received = 0;
  std::vector<uint8_t> message;
  for (int i = 0; i < 1000 && received < 10; i++) {
    REQUIRE(pair.ends[0].flush().ok());
    REQUIRE(pair.ends[1].read(65536).ok());
    while (pair.ends[1].next(message)) received += message == block ? 1 : 0;
  }
  CHECK(received == 10);
  CHECK_FALSE(pair.ends[0].wants_write());
}

TEST_CASE("a peer that hangs up ends the stream after its last message, without a signal") {
  StreamPair pair = connected_pair();
  REQUIRE(pair.ends[1].send("last", 4).ok());
  pair.ends[1].close();
  CHECK(pair.ends[0].send("into the void", 13).ok());
  std::vector<uint8_t> message;
  for (int i = 0; i < 3 && !pair.ends[0].ended(); i++) REQUIRE(pair.ends[0].read(65536).ok());
  CHECK(pair.ends[0].ended());
  REQUIRE(pair.ends[0].next(message));
  CHECK(std::string(message.begin(), message.end()) == "last");
}

TEST_CASE("B04 a link-local address is reached although its scope is another host's") {
  Result<std::vector<Interface>> interfaces = list_interfaces();
  REQUIRE(interfaces.ok());
  Address address;
  for (const Interface& interface : *interfaces)
    if (interface.address.family == AF_INET6 && interface.address.is_link_local())
      address = interface.address;
  if (address.family == 0) {
    WARN("skipped: no interface has a link-local IPv6 address");
    return;
  }
  Result<Listener> listener = listen_tcp(address);
  INFO(listener.status().text());
  REQUIRE(listener.ok());
  const Secret secret = *random_secret();
  std::vector<Listener> listeners;
  listeners.push_back(std::move(*listener));
  Result<Acceptor> acceptor = Acceptor::create(secret, Hello{}, std::move(listeners));
  REQUIRE(acceptor.ok());
  address.scope += 1000;
  Connector connector(secret, Hello{}, tcp_endpoints({address}), {'h', 'i'});
  const Deadline patience = Deadline::after_ms(bound_ms(3000));
  std::vector<Accepted> accepted;
  bool welcomed = false;
  while (!connector.connected() && !patience.expired()) {
    std::vector<pollfd> polled;
    connector.add_polled(polled);
    REQUIRE(poll_within(polled, limit_ms(1000), 5));
    connector.step(polled[0]);
    acceptor->step(accepted);
    if (!accepted.empty() && !welcomed) welcomed = accepted[0].stream.send("welcome", 7).ok();
  }
  CHECK(connector.connected());
  REQUIRE(accepted.size() == 1);
  CHECK(accepted[0].first == std::vector<uint8_t>{'h', 'i'});
}
