#include "bootstrap/fd_channel.h"

#include <sys/socket.h>

#include <cstring>

namespace fccl {
namespace {

constexpr size_t kFdsPerRead = 8;

union ControlBuffer {
  cmsghdr header;
  char bytes[CMSG_SPACE(kFdsPerRead * sizeof(int))];
};

}  // namespace

ssize_t send_bytes(int socket, const uint8_t* data, size_t bytes, int fd) {
  if (fd < 0) return ::send(socket, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  iovec part{const_cast<uint8_t*>(data), bytes};
  ControlBuffer control;
  std::memset(&control, 0, sizeof control);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t receive_bytes(int socket, uint8_t* data, size_t bytes, std::deque<UniqueFd>* fds,
                      bool* lost) {
  if (fds == nullptr) return ::recv(socket, data, bytes, MSG_DONTWAIT);
  iovec part{data, bytes};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds->push_back(UniqueFd(fd));
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) *lost = true;
  return got;
}

}  // namespace fccl
