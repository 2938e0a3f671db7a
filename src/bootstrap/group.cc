#include "bootstrap/group.h"

#include "base/fault.h"
#include "bootstrap/group_impl.h"

namespace fccl {
namespace {

// Bytes that may wait to be sent before send() waits too.
constexpr size_t kMaxQueuedBytes = 4 * kMaxBlobBytes;

Status child_error() {
  return error(Code::InvalidUsage, "this communicator belongs to the process before the fork");
}

}  // namespace

Group::Group(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Group::~Group() {
  // In a forked child the thread is not there, locks may be held for ever and the descriptors are
  // closed already (fork_guard.h): the memory is all that is left, and it is given up.
  if (impl_ && !impl_->process.is_here()) (void)impl_.release();
}

int Group::rank() const {
  return impl_->rank;
}
int Group::ranks() const {
  return impl_->ranks();
}
bool Group::owned_by_this_process() const {
  return impl_->process.is_here();
}

bool Group::same_host_socket(int peer) const {
  if (peer == impl_->rank) return true;
  const std::optional<Stream>& stream = impl_->at(peer).stream;
  return stream && stream->is_unix();
}

uint64_t Group::host_token(int peer) const {
  return impl_->at(peer).card.host_token;
}
int64_t Group::process_id(int peer) const {
  return impl_->at(peer).card.process_id;
}
std::string Group::describe(int peer) const {
  return impl_->describe(peer);
}

Status Group::allgather(const void* blob, size_t bytes, std::vector<std::vector<uint8_t>>& all,
                        const Limit& limit, const char* phase) {
  return allgather(Status{}, blob, bytes, all, limit, phase);
}

Status Group::allgather(const Status& mine, const void* blob, size_t bytes,
                        std::vector<std::vector<uint8_t>>& all, const Limit& limit,
                        const char* phase) {
  if (!owned_by_this_process()) return child_error();
  Status status = mine;
  if (status.ok() && bytes > kMaxBlobBytes)
    status = error(Code::InvalidArgument,
                   "a blob of %zu bytes in '%s'; at most %zu are possible",
                   bytes,
                   phase,
                   kMaxBlobBytes);
  if (status.ok() && fault(impl_->config.test_fault, "bootstrap.exchange", rank()))
    status = error(Code::SystemError, "allgather '%s' (fault hook)", phase);
  OwnPart own;
  own.operation = Operation::Allgather;
  own.phase = phase;
  own.status = status;
  own.blob = blob;
  own.bytes = bytes;
  std::vector<ExchangePart> parts;
  FCCL_TRY(impl_->exchange(own, parts, limit));
  FCCL_TRY(impl_->verdict(parts));
  all.clear();
  for (ExchangePart& part : parts) all.push_back(std::move(part.payload));
  return {};
}

Status Group::barrier(const Limit& limit, const char* phase) {
  if (!owned_by_this_process()) return child_error();
  OwnPart own;
  own.operation = Operation::Barrier;
  own.phase = phase;
  std::vector<ExchangePart> parts;
  FCCL_TRY(impl_->exchange(own, parts, limit));
  return impl_->verdict(parts);
}

Status Group::vote(const Status& mine, const Limit& limit, const char* phase) {
  if (!owned_by_this_process()) return child_error();
  OwnPart own;
  own.operation = Operation::Vote;
  own.phase = phase;
  own.status = mine;
  std::vector<ExchangePart> parts;
  const Status status = impl_->exchange(own, parts, limit);
  // The vote itself did not come about; a reason of one's own tells more than a deadline.
  if (status.code() == Code::Timeout && !mine.ok())
    return Status(mine.code(),
                  mine.rank() >= 0 ? mine.rank() : rank(),
                  "rank " + std::to_string(rank()) + ": " + mine.text());
  FCCL_TRY(status);
  return impl_->verdict(parts);
}

Result<std::vector<UniqueFd>> Group::exchange_fds(int mine, const Limit& limit, const char* phase) {
  if (!owned_by_this_process()) return child_error();
  Status status;
  if (fault(impl_->config.test_fault, "bootstrap.fds", rank()))
    status = error(Code::SystemError, "exchange of descriptors '%s' (fault hook)", phase);
  OwnPart own;
  own.operation = Operation::Descriptors;
  own.phase = phase;
  own.status = status;
  own.fd = mine;
  std::vector<ExchangePart> parts;
  const Status exchanged = impl_->exchange(own, parts, limit);
  if (status.ok()) status = exchanged;
  if (status.code() == Code::Busy) return status;
  std::vector<UniqueFd> fds;
  for (size_t peer = 0; peer < parts.size(); peer++) {
    if (parts[peer].has_fd && !parts[peer].fd.valid() && status.ok())
      status = error(Code::OutOfResources, "no descriptor is left for what rank %zu sent", peer);
    fds.push_back(std::move(parts[peer].fd));
  }
  // Also says whether every rank was in this exchange: the vote's own number follows it.
  FCCL_TRY(vote(status, limit, phase));
  return fds;
}

Status Group::send(int peer, uint32_t tag, const void* data, size_t bytes, const Limit& limit) {
  if (!owned_by_this_process()) return child_error();
  if (peer < 0 || peer >= ranks() || peer == rank() || bytes > kMaxBlobBytes)
    return error(Code::InvalidArgument, "a message of %zu bytes to rank %d", bytes, peer);
  Frame frame;
  frame.kind = FrameKind::Message;
  frame.number = tag;
  const uint8_t* first = static_cast<const uint8_t*>(data);
  if (bytes > 0) frame.payload.assign(first, first + bytes);
  const std::vector<uint8_t> encoded = encode(frame);
  std::unique_lock<std::mutex> lock(impl_->mutex);
  if (impl_->leaving) return error(Code::InvalidUsage, "a message after this rank has left");
  while (!impl_->at(peer).gone() && impl_->at(peer).stream->queued_bytes() > kMaxQueuedBytes)
    FCCL_TRY(impl_->wait_change(lock, limit, "a message to " + impl_->describe(peer)));
  if (impl_->at(peer).gone()) return impl_->at(peer).failure;
  impl_->queue_frame(peer, encoded);
  return {};
}

Result<std::vector<uint8_t>> Group::receive(int peer, uint32_t tag, const Limit& limit,
                                            const char* phase) {
  if (!owned_by_this_process()) return child_error();
  if (peer < 0 || peer >= ranks() || peer == rank())
    return error(Code::InvalidArgument, "a message from rank %d", peer);
  std::unique_lock<std::mutex> lock(impl_->mutex);
  GroupPeer& from = impl_->at(peer);
  while (true) {
    for (auto it = from.messages.begin(); it != from.messages.end(); ++it) {
      if (it->number != tag) continue;
      std::vector<uint8_t> payload = std::move(it->payload);
      from.waiting_bytes -= payload.size();
      from.messages.erase(it);
      return payload;
    }
    if (from.gone()) return from.failure;
    FCCL_TRY(impl_->wait_change(
        lock, limit, std::string("'") + phase + "' from " + impl_->describe(peer)));
  }
}

void Group::set_event_function(PeerEventFunction function) {
  if (!owned_by_this_process()) return;
  {
    const std::lock_guard<std::recursive_mutex> delivering(impl_->event_mutex);
    impl_->event_function = std::move(function);
  }
  impl_->deliver_events();
}

void Group::broadcast_failure(const Status& status) {
  if (!owned_by_this_process() || status.ok()) return;
  Frame frame;
  frame.kind = FrameKind::Failure;
  frame.status = status;
  const std::vector<uint8_t> encoded = encode(frame);
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->failure_sent || impl_->leaving) return;
  impl_->failure_sent = true;
  for (int peer = 0; peer < impl_->ranks(); peer++) impl_->queue_frame(peer, encoded);
}

Status Group::health() const {
  if (!owned_by_this_process()) return child_error();
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->first_failure;
}

Status Group::leave(const Limit& limit) {
  if (!owned_by_this_process()) return child_error();
  const std::vector<uint8_t> bye = encode(Frame{});
  std::unique_lock<std::mutex> lock(impl_->mutex);
  if (impl_->leaving) return {};
  impl_->leaving = true;
  for (int peer = 0; peer < impl_->ranks(); peer++) impl_->queue_frame(peer, bye);
  Status status;
  for (int peer = 0; peer < impl_->ranks() && status.ok(); peer++) {
    std::optional<Stream>& stream = impl_->at(peer).stream;
    while (stream && !stream->ended() && stream->wants_write() && status.ok())
      status = impl_->wait_change(lock, limit, "bye to " + impl_->describe(peer));
    if (stream && !stream->ended()) stream->shut_down_sending();
  }
  return status;
}

}  // namespace fccl
