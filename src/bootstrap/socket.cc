#include "bootstrap/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/unique_fd.h"
#include "bootstrap/secret.h"

namespace fccl {
namespace {

constexpr int kBacklog = 1024;

Status fill_unix_address(const std::string& name, sockaddr_un& out, socklen_t& length) {
  std::memset(&out, 0, sizeof out);
  out.sun_family = AF_UNIX;
  const bool is_path = name[0] == '/';
  if (name.size() + 1 > sizeof out.sun_path)
    return error(
        Code::InvalidArgument,
        "FCCL_SOCKET_DIR is too long: \"%s\" has %zu bytes, a unix socket path at most %zu",
        name.c_str(),
        name.size(),
        sizeof out.sun_path - 1);
  // An abstract name begins with a zero byte and has no end mark.
  std::memcpy(out.sun_path + (is_path ? 0 : 1), name.data(), name.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  return {};
}

Status check_folder(const std::string& folder) {
  if (folder[0] != '/')
    return error(
        Code::InvalidArgument, "FCCL_SOCKET_DIR=%s: expected an absolute path", folder.c_str());
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0)
    return error(Code::InvalidArgument,
                 "FCCL_SOCKET_DIR=%s cannot be opened as a folder: %s",
                 folder.c_str(),
                 std::strerror(errno));
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return error(Code::InvalidArgument,
                 "FCCL_SOCKET_DIR=%s must belong to this user and have mode 0700; it has mode %04o",
                 folder.c_str(),
                 static_cast<unsigned>(info.st_mode & 07777));
  return {};
}

}  // namespace

Listener::~Listener() {
  if (!path.empty()) ::unlink(path.c_str());
}

Result<std::string> unix_socket_name(const std::string& socket_dir, const void* token,
                                     size_t token_bytes) {
  const std::string name = "fccl-" + hex(token, token_bytes);
  if (socket_dir.empty()) return name;
  FCCL_TRY(check_folder(socket_dir));
  return socket_dir + "/" + name;
}

Result<Listener> listen_unix(const std::string& name) {
  sockaddr_un address;
  socklen_t length = 0;
  FCCL_TRY(fill_unix_address(name, address, length));
  Listener listener;
  listener.is_unix = true;
  listener.socket = GuardedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket.valid()) return errno_error("unix socket");
  if (::bind(listener.socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0)
    return errno_error("bind of a unix socket%s%s",
                       name[0] == '/' ? " at " : "",
                       name[0] == '/' ? name.c_str() : "");
  if (name[0] == '/') listener.path = name;
  if (::listen(listener.socket.get(), kBacklog) != 0) return errno_error("listen on a unix socket");
  return listener;
}

Result<Listener> listen_tcp(Address& address) {
  Listener listener;
  listener.socket =
      GuardedFd(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket.valid()) return errno_error("TCP socket");
  const int fd = listener.socket.get();
  const int on = 1;
  // Lets a fixed port be opened again while connections of the last init are in TIME_WAIT.
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family == AF_INET6) (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  sockaddr_storage storage;
  socklen_t length = address.to_sockaddr(storage);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&storage), length) != 0)
    return errno_error("bind to %s", address.text().c_str());
  if (::listen(fd, kBacklog) != 0) return errno_error("listen on %s", address.text().c_str());
  length = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0)
    return errno_error("getsockname");
  address.port = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage)).port;
  return listener;
}

int start_connect(const Endpoint& endpoint, GuardedFd& out) {
  const int family = endpoint.is_unix() ? AF_UNIX : endpoint.address.family;
  GuardedFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  int code = 0;
  if (endpoint.is_unix()) {
    sockaddr_un address;
    socklen_t length = 0;
    if (!fill_unix_address(endpoint.unix_name, address, length).ok()) return ENAMETOOLONG;
    code = ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length);
  } else {
    sockaddr_storage storage;
    const socklen_t length = endpoint.address.to_sockaddr(storage);
    code = ::connect(fd.get(), reinterpret_cast<sockaddr*>(&storage), length);
  }
  if (code != 0 && errno != EINPROGRESS && errno != EINTR) return errno;
  out = std::move(fd);
  return 0;
}

int connect_error(int socket) {
  int code = 0;
  socklen_t length = sizeof code;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &length) != 0) return errno;
  return code;
}

GuardedFd accept_one(const Listener& listener) {
  return GuardedFd(
      ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

// A peer whose host lost power sends nothing at all: keepalive turns that into a hang-up in about
// 25 s.
void set_peer_options(int socket, bool is_unix) {
  if (is_unix) return;
  const auto set = [socket](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 25000);
}

bool poll_within(std::vector<pollfd>& polled, const Limit& limit, int slice_ms) {
  for (pollfd& entry : polled) entry.revents = 0;
  const int code =
      ::poll(polled.data(), static_cast<nfds_t>(polled.size()), limit.deadline.slice_ms(slice_ms));
  return code >= 0 || errno == EINTR;
}

}  // namespace fccl
