// Stream: a connected socket with its secure channel and its queue of bytes to send. Nothing here
// waits: send() queues and hands the kernel what it takes, read() takes what is there. Whoever
// polls the socket calls read() on POLLIN and flush() on POLLOUT. Used by the rendezvous, the mesh
// and the group. Invariant: a descriptor goes out with the first byte of its own frame.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "bootstrap/fork_guard.h"
#include "bootstrap/secure_channel.h"

namespace fccl {

class Stream {
 public:
  Stream(GuardedFd socket, bool is_unix, SecureChannel channel);
  Stream(Stream&&) = default;
  Stream& operator=(Stream&&) = default;

  int fd() const { return socket_.get(); }
  bool is_unix() const { return is_unix_; }
  SecureChannel& channel() { return channel_; }

  Status send(const void* data, size_t bytes, UniqueFd attached = {});
  Status send(const std::vector<uint8_t>& message) { return send(message.data(), message.size()); }
  // Also moves what the channel itself wants to send (its hello).
  Status flush();
  // At most `most` bytes (up to 64 KiB). An error means that the peer broke the protocol.
  Status read(size_t most);
  bool next(std::vector<uint8_t>& message) { return channel_.next(message); }

  bool wants_write() const { return queued_bytes_ > 0; }
  size_t queued_bytes() const { return queued_bytes_; }
  // The peer has hung up, or the connection is broken; what it sent before can still be taken.
  bool ended() const { return ended_; }
  short poll_events() const;

  // Descriptors are taken from now on; those that came before the handshake were dropped.
  void accept_fds() { accept_fds_ = is_unix_; }
  std::deque<UniqueFd>& fds() { return fds_; }
  bool fds_lost() const { return fds_lost_; }

  void shut_down_sending();
  void close();

 private:
  struct Queued {
    std::vector<uint8_t> bytes;
    size_t sent = 0;
    UniqueFd attached;
  };
  void queue_output(UniqueFd attached);

  GuardedFd socket_;
  bool is_unix_ = false;
  SecureChannel channel_;
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;
  std::deque<UniqueFd> fds_;
  bool accept_fds_ = false;
  bool fds_lost_ = false;
  bool ended_ = false;
};

}  // namespace fccl
