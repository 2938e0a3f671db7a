#include "bootstrap/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "bootstrap/fd_channel.h"

namespace fccl {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
// One exchange hands over one descriptor, and a peer can be one exchange ahead.
constexpr size_t kMaxWaitingFds = 4;

bool would_block(int code) {
  return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

}  // namespace

Stream::Stream(GuardedFd socket, bool is_unix, SecureChannel channel)
    : socket_(std::move(socket)), is_unix_(is_unix), channel_(std::move(channel)) {}

void Stream::queue_output(UniqueFd attached) {
  std::vector<uint8_t>& output = channel_.output();
  if (output.empty()) return;
  queued_bytes_ += output.size();
  queue_.push_back({std::move(output), 0, std::move(attached)});
  output.clear();
}

Status Stream::send(const void* data, size_t bytes, UniqueFd attached) {
  queue_output({});  // what the channel itself has to say goes first
  FCCL_TRY(channel_.send(data, bytes));
  queue_output(std::move(attached));
  return flush();
}

Status Stream::flush() {
  queue_output({});
  while (!queue_.empty() && !ended_) {
    Queued& first = queue_.front();
    const int attached = first.sent == 0 ? first.attached.get() : -1;
    const ssize_t sent = send_bytes(
        socket_.get(), first.bytes.data() + first.sent, first.bytes.size() - first.sent, attached);
    if (sent < 0) {
      if (would_block(errno)) return {};
      // A peer that hung up may have left a last message: reading goes on until its end.
      if (errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT) {
        queue_.clear();
        queued_bytes_ = 0;
        return {};
      }
      return errno_error("send to a peer");
    }
    first.sent += static_cast<size_t>(sent);
    queued_bytes_ -= static_cast<size_t>(sent);
    if (sent > 0) first.attached.reset();
    if (first.sent == first.bytes.size()) queue_.pop_front();
  }
  return {};
}

Status Stream::read(size_t most) {
  if (ended_) return {};
  uint8_t buffer[kReadBytes];
  const ssize_t got = receive_bytes(socket_.get(),
                                    buffer,
                                    std::min(most, sizeof buffer),
                                    accept_fds_ ? &fds_ : nullptr,
                                    &fds_lost_);
  if (got < 0 && would_block(errno)) return {};
  if (got <= 0) {
    ended_ = true;
    return {};
  }
  FCCL_TRY(channel_.receive(buffer, static_cast<size_t>(got)));
  if (fds_.size() > kMaxWaitingFds) {
    fds_.clear();
    return error(Code::RemoteError, "the peer sent more descriptors than it announced");
  }
  return {};
}

short Stream::poll_events() const {
  return static_cast<short>(POLLIN | (queued_bytes_ > 0 ? POLLOUT : 0));
}

void Stream::shut_down_sending() {
  if (socket_.valid()) (void)::shutdown(socket_.get(), SHUT_WR);
}

void Stream::close() {
  socket_.reset();
  queue_.clear();
  queued_bytes_ = 0;
  fds_.clear();
  ended_ = true;
}

}  // namespace fccl
