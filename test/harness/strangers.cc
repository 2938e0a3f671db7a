// See strangers.h.
#include "harness/strangers.h"

#include <poll.h>
#include <sys/socket.h>

#include "bootstrap/rendezvous_host.h"
#include "bootstrap/secure_channel.h"
#include "harness/catch.h"

namespace fccl::test {

constexpr int kKinds = 5;

std::vector<Endpoint> doors_of(const uint8_t* id) {
  Result<UniqueId> decoded = decode_unique_id(id);
  REQUIRE(decoded.ok());
  Result<Config> config = read_config();
  REQUIRE(config.ok());
  Result<std::vector<Endpoint>> doors = rendezvous_endpoints(*decoded, *config);
  REQUIRE(doors.ok());
  return *doors;
}

GuardedFd connect_to(const Endpoint& door) {
  GuardedFd fd;
  if (start_connect(door, fd) != 0) return {};
  pollfd polled{fd.get(), POLLOUT, 0};
  (void)poll(&polled, 1, 1000);
  return fd;
}

void send_to(const GuardedFd& fd, const void* data, size_t bytes) {
  if (fd.valid()) (void)send(fd.get(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<uint8_t> client_hello(const Secret& secret) {
  Hello hello;
  hello.ranks = 2;
  hello.rank = 1;
  Result<SecureChannel> channel = SecureChannel::create(Side::Client, secret, hello, 1000);
  REQUIRE(channel.ok());
  return channel->output();
}

void behave(const GuardedFd& fd, int kind, const std::vector<uint8_t>& replay) {
  static const std::vector<uint8_t> much(100000, 'f');
  switch (kind % kKinds) {
    case 1:
      send_to(fd, "f", 1);
      break;
    case 2:
      send_to(fd, "GET / HTTP/1.1\r\n\r\n", 18);
      break;
    case 3:
      send_to(fd, much.data(), much.size());
      break;
    case 4:
      send_to(fd, replay.data(), replay.size());
      break;
    default:
      break;
  }
}

}  // namespace fccl::test
