// Sockets: listening and connecting without blocking, over TCP and unix stream sockets. Everything
// is close-on-exec and non-blocking; whoever holds a socket waits with poll_within.
//
// Unix sockets are abstract, or files in the folder FCCL_SOCKET_DIR, which must be ours alone
// (0700). Their names are random or keyed hashes, but a name gives no right: /proc shows it to
// others. Who connects must prove by the handshake (secure_channel.h) that it has the secret.
#pragma once
#include <poll.h>

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/address.h"
#include "bootstrap/fork_guard.h"

namespace fccl {

// Where to connect: a TCP address, or a unix socket if unix_name is not empty (a path if it begins
// with '/', else an abstract name).
struct Endpoint {
  std::string unix_name;
  Address address;
  bool is_unix() const { return !unix_name.empty(); }
  std::string text() const { return is_unix() ? "the unix socket" : address.text(); }
};

struct Listener {
  GuardedFd socket;
  std::string path;  // a file to unlink, or empty
  bool is_unix = false;
  Listener() = default;
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();
};

// "fccl-<token in hex>", within `socket_dir` if that is not empty; the folder is checked first.
Result<std::string> unix_socket_name(const std::string& socket_dir, const void* token,
                                     size_t token_bytes);
Result<Listener> listen_unix(const std::string& name);
// Port 0 lets the kernel choose; `address` is updated.
Result<Listener> listen_tcp(Address& address);

// Begins to connect; answers an errno value. On 0 the socket may still be in progress: poll for
// POLLOUT, then ask connect_error().
int start_connect(const Endpoint& endpoint, GuardedFd& out);
int connect_error(int socket);  // an errno value, 0 if connected

// Accepts one connection; an invalid descriptor with errno set if there is none.
GuardedFd accept_one(const Listener& listener);

// No delay, and keepalive; for connections whose peer has proved itself. Nothing for a unix socket.
void set_peer_options(int socket, bool is_unix);

// poll() for at most `slice_ms` and never past the deadline; Timeout is not an error here. False if
// poll itself fails.
bool poll_within(std::vector<pollfd>& polled, const Limit& limit, int slice_ms);

}  // namespace fccl
