// Exchanges: every rank sends its part to every other and waits for theirs. A part carries the
// number of the exchange, its operation and phase, so that ranks that are not at the same point
// notice; and the sender's status, so that a rank that failed locally takes part all the same.
//
// Numbers only grow. A part with a lower number than the one waited for belongs to an exchange that
// this rank has given up (its deadline expired) and is dropped. 2^32 exchanges are more than any
// group makes.
#include <fcntl.h>
#include <sodium.h>

#include "bootstrap/group_impl.h"

namespace fccl {
namespace {

constexpr int kSliceMs = 50;

const char* operation_name(Operation operation) {
  switch (operation) {
    case Operation::Allgather:
      return "allgather";
    case Operation::Barrier:
      return "barrier";
    case Operation::Vote:
      return "vote";
    case Operation::Descriptors:
      return "exchange of descriptors";
  }
  return "exchange";
}

// Marks a group as busy for one exchange.
class BusyMark {
 public:
  explicit BusyMark(std::atomic<bool>& flag) : flag_(flag), taken_(!flag.exchange(true)) {}
  ~BusyMark() {
    if (taken_) flag_.store(false);
  }
  bool taken() const { return taken_; }

 private:
  std::atomic<bool>& flag_;
  const bool taken_;
};

}  // namespace

std::string Group::Impl::describe(int peer) const {
  return describe_rank(peer, at(peer).card);
}

Status Group::Impl::wait_change(std::unique_lock<std::mutex>& lock, const Limit& limit,
                                const std::string& waiting_for) {
  if (limit.aborted()) return error(Code::Aborted, "aborted in %s", waiting_for.c_str());
  if (limit.deadline.expired())
    return error(Code::Timeout,
                 "%s: nothing came within %lld ms",
                 waiting_for.c_str(),
                 static_cast<long long>(limit.deadline.limit_ms()));
  changed.wait_for(lock, std::chrono::milliseconds(limit.deadline.slice_ms(kSliceMs)));
  return {};
}

// True if the peer's part has come; what it sent to exchanges that this rank gave up is dropped.
bool Group::Impl::has_part(int from, uint32_t number) {
  GroupPeer& peer = at(from);
  while (!peer.exchanges.empty() && peer.exchanges.front().frame.number < number) {
    peer.waiting_bytes -= peer.exchanges.front().frame.payload.size();
    peer.exchanges.pop_front();
  }
  return !peer.exchanges.empty();
}

void Group::Impl::take_part(int from, ExchangePart& part) {
  GroupPeer& peer = at(from);
  GroupPeer::Waiting& waiting = peer.exchanges.front();
  peer.waiting_bytes -= waiting.frame.payload.size();
  part.number = waiting.frame.number;
  part.operation = waiting.frame.operation;
  part.phase = std::move(waiting.frame.phase);
  part.status = std::move(waiting.frame.status);
  part.payload = std::move(waiting.frame.payload);
  part.has_fd = waiting.frame.has_fd;
  part.fd = std::move(waiting.fd);
  peer.exchanges.pop_front();
}

void Group::Impl::send_parts(Frame& frame, int fd) {
  std::vector<uint8_t> plain = encode(frame);
  frame.has_fd = true;
  std::vector<uint8_t> with_fd = fd >= 0 ? encode(frame) : std::vector<uint8_t>();
  for (int peer = 0; peer < ranks(); peer++) {
    if (!at(peer).stream) continue;
    UniqueFd copy;
    if (fd >= 0 && at(peer).stream->is_unix()) copy.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    const bool attached = copy.valid();
    queue_frame(peer, attached ? with_fd : plain, std::move(copy));
  }
  // A split sends secrets this way.
  sodium_memzero(plain.data(), plain.size());
  sodium_memzero(with_fd.data(), with_fd.size());
}

Status Group::Impl::exchange(const OwnPart& own, std::vector<ExchangePart>& parts,
                             const Limit& limit) {
  const BusyMark busy(in_exchange);
  if (!busy.taken())
    return error(Code::Busy, "another thread is in an exchange of this communicator");
  Frame frame;
  frame.kind = FrameKind::Exchange;
  frame.operation = own.operation;
  frame.status = own.status;
  frame.phase = std::string(own.phase).substr(0, kMaxPhaseBytes);
  if (own.status.ok() && own.bytes > 0) {
    const uint8_t* first = static_cast<const uint8_t*>(own.blob);
    frame.payload.assign(first, first + own.bytes);
  }
  std::unique_lock<std::mutex> lock(mutex);
  if (leaving) return error(Code::InvalidUsage, "an exchange after this rank has left");
  const uint32_t number = next_exchange++;
  frame.number = number;
  send_parts(frame, own.status.ok() ? own.fd : -1);
  parts.clear();
  parts.resize(peers.size());
  ExchangePart& mine = parts[static_cast<size_t>(rank)];
  mine.number = number;
  mine.operation = own.operation;
  mine.phase = frame.phase;
  mine.status = own.status;
  mine.payload = std::move(frame.payload);
  const std::string what =
      std::string(operation_name(own.operation)) + " '" + frame.phase + "' with ";
  for (int peer = 0; peer < ranks(); peer++) {
    if (peer == rank) continue;
    while (!has_part(peer, number)) {
      // Any peer that is gone ends the exchange, whoever is waited for at the moment. The first
      // that failed is named: the others may have ended because of it.
      for (int other = peer; other < ranks(); other++)
        if (at(other).gone() && !has_part(other, number))
          return first_failure.ok() ? at(other).failure : first_failure;
      FCCL_TRY(wait_change(lock, limit, what + describe(peer)));
    }
    take_part(peer, parts[static_cast<size_t>(peer)]);
  }
  return {};
}

// All ranks have the same parts, so all come to the same words.
Status Group::Impl::verdict(const std::vector<ExchangePart>& parts) const {
  const ExchangePart& first = parts[0];
  for (size_t peer = 1; peer < parts.size(); peer++) {
    const ExchangePart& part = parts[peer];
    if (part.number == first.number && part.operation == first.operation &&
        part.phase == first.phase)
      continue;
    return error(
        Code::Mismatch,
        "the ranks are not at the same point: rank 0 in %s '%s' (exchange %u), rank %zu in "
        "%s '%s' (exchange %u)",
        operation_name(first.operation),
        first.phase.c_str(),
        first.number,
        peer,
        operation_name(part.operation),
        part.phase.c_str(),
        part.number);
  }
  for (size_t peer = 0; peer < parts.size(); peer++) {
    const Status& status = parts[peer].status;
    if (status.ok()) continue;
    const int blamed = status.rank() >= 0 ? status.rank() : static_cast<int>(peer);
    return Status(status.code(), blamed, "rank " + std::to_string(peer) + ": " + status.text());
  }
  return {};
}

}  // namespace fccl
