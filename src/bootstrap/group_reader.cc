// The reader thread of a group: polls all streams, takes frames apart, and notes what becomes of
// peers.
#include <poll.h>
#include <sodium.h>
#include <sys/eventfd.h>

#include <new>

#include "base/fault.h"
#include "base/log.h"
#include "bootstrap/group_impl.h"
#include "bootstrap/worker_thread.h"

namespace fccl {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kFrameLimit = kMaxBlobBytes + 1024;
// Peers take turns, so a sound one is at most one exchange ahead; messages may pile up a little.
constexpr size_t kMaxWaitingFrames = 1024;
constexpr size_t kMaxWaitingBytes = 16 * kMaxBlobBytes;
constexpr int kReaderSleepMs = 1000;

}  // namespace

Group::Impl::Impl(GroupArgs args)
    : rank(args.rank),
      library_version(args.library_version),
      config(std::move(args.config)),
      wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  peers.resize(args.cards.size());
  for (size_t i = 0; i < peers.size(); i++) {
    peers[i].card = args.cards[i];
    peers[i].stream = std::move(args.streams[i]);
    if (!peers[i].stream) continue;
    peers[i].stream->channel().set_frame_limit(kFrameLimit);
    peers[i].stream->accept_fds();
  }
}

Result<std::unique_ptr<Group::Impl>> Group::Impl::create(GroupArgs args) {
  if (fault(args.config.test_fault, "bootstrap.thread", args.rank))
    return error(Code::OutOfResources, "cannot start thread fccl-group (fault hook)");
  std::unique_ptr<Impl> impl(new Impl(std::move(args)));
  if (!impl->wake.valid()) return errno_error("eventfd");
  Impl* const self = impl.get();
  FCCL_TRY_ASSIGN(thread, start_thread("fccl-group", [self] { self->run_reader(); }));
  impl->reader = std::move(thread);
  return impl;
}

Group::Impl::~Impl() {
  if (!reader.joinable()) return;
  stopping.store(true, std::memory_order_release);
  wake_reader();
  reader.join();
}

void Group::Impl::wake_reader() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake.get(), &one, sizeof one);
}

void Group::Impl::run_reader() {
  while (!stopping.load(std::memory_order_acquire)) {
    try {
      read_all();
      deliver_events();
    } catch (const std::bad_alloc&) {
      // Bytes may be lost; then their stream breaks at its next frame and its peer counts as dead.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

void Group::Impl::read_all() {
  std::vector<pollfd> polled{{wake.get(), POLLIN, 0}};
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const GroupPeer& peer : peers) {
      const bool open = peer.stream && !peer.stream->ended();
      polled.push_back({open ? peer.stream->fd() : -1,
                        open ? peer.stream->poll_events() : static_cast<short>(0),
                        0});
    }
  }
  if (!poll_within(polled, Limit{Deadline::after_ms(kReaderSleepMs), nullptr}, kReaderSleepMs))
    return;
  if (polled[0].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake.get(), &count, sizeof count);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  bool any = false;
  for (int peer = 0; peer < ranks(); peer++) {
    const short revents = polled[static_cast<size_t>(peer) + 1].revents;
    if (revents == 0) continue;
    read_peer(peer, revents);
    any = true;
  }
  if (any) changed.notify_all();
}

void Group::Impl::read_peer(int peer, short revents) {
  Stream& stream = *at(peer).stream;
  Status status;
  if ((revents & POLLOUT) != 0) status = stream.flush();
  if (status.ok() && (revents & ~POLLOUT) != 0) status = stream.read(kReadBytes);
  std::vector<uint8_t> bytes;
  while (status.ok() && stream.next(bytes)) {
    take_frame(peer, bytes);
    sodium_memzero(bytes.data(), bytes.size());
  }
  if (!status.ok())
    peer_died(peer, " has a broken stream: " + status.text());
  else if (stream.ended())
    peer_died(peer, " closed its connection");
}

void Group::Impl::peer_died(int dead, const std::string& how) {
  at(dead).stream->close();
  peer_failed(dead,
              PeerEvent::Died,
              error_of_rank(dead, Code::RemoteError, "%s%s", describe(dead).c_str(), how.c_str()));
}

// All survivors shall name the same rank in the same words. A rank that ends because of this
// failure closes its streams too, and a third rank may see that before it sees the first cause. So
// everybody who learns of a failure passes it on at once, before anything that may follow from it.
void Group::Impl::tell_others(int about, bool died, const Status& failure) {
  Frame notice;
  notice.kind = FrameKind::Notice;
  notice.number = static_cast<uint32_t>(about);
  notice.died = died;
  notice.status = failure;
  const std::vector<uint8_t> encoded = encode(notice);
  for (int peer = 0; peer < ranks(); peer++)
    if (peer != about && !at(peer).gone()) queue_frame(peer, encoded);
}

void Group::Impl::take_frame(int from, const std::vector<uint8_t>& bytes) {
  GroupPeer& peer = at(from);
  const auto broken = [&](const char* why) {
    peer_died(from, std::string(" broke the protocol: ") + why);
  };
  Result<Frame> decoded = decode_frame(bytes);
  if (!decoded.ok()) return broken(decoded.status().text().c_str());
  Frame& frame = *decoded;
  if (frame.kind == FrameKind::Bye) {
    return peer_failed(
        from,
        PeerEvent::Left,
        error_of_rank(
            from, Code::RemoteError, "%s has left the communicator", describe(from).c_str()));
  }
  if (frame.kind == FrameKind::Notice) {
    const int about = static_cast<int>(frame.number);
    if (about == rank || about >= ranks()) return;
    return peer_failed(about, frame.died ? PeerEvent::Died : PeerEvent::Failed, frame.status);
  }
  if (frame.kind == FrameKind::Failure) {
    const int blamed = frame.status.rank() >= 0 ? frame.status.rank() : from;
    return peer_failed(from,
                       PeerEvent::Failed,
                       Status(frame.status.code(),
                              blamed,
                              "rank " + std::to_string(from) + ": " + frame.status.text()));
  }
  peer.waiting_bytes += frame.payload.size();
  if (peer.exchanges.size() + peer.messages.size() >= kMaxWaitingFrames ||
      peer.waiting_bytes > kMaxWaitingBytes)
    return broken("more frames than anybody waits for");
  if (frame.kind == FrameKind::Message) {
    peer.messages.push_back(std::move(frame));
    return;
  }
  UniqueFd fd;
  if (frame.has_fd && !peer.stream->fds().empty()) {
    fd = std::move(peer.stream->fds().front());
    peer.stream->fds().pop_front();
  } else if (frame.has_fd && !peer.stream->fds_lost()) {
    return broken("a descriptor was announced and did not come");
  }
  peer.exchanges.push_back({std::move(frame), std::move(fd)});
}

// Notes the first thing that ends a peer; what comes after it (a hang-up after a bye) is no news.
void Group::Impl::peer_failed(int from, PeerEvent event, const Status& failure) {
  GroupPeer& peer = at(from);
  if (peer.gone()) return;
  peer.failure = failure;
  peer.left = event == PeerEvent::Left;
  if (leaving) return;
  if (event != PeerEvent::Left) {
    if (first_failure.ok()) first_failure = failure;
    tell_others(from, event == PeerEvent::Died, failure);
  }
  FCCL_LOG(Info, kLogBootstrap, "rank %d: %s", rank, failure.text().c_str());
  events.push_back({from, event, failure.text()});
}

void Group::Impl::deliver_events() {
  const std::lock_guard<std::recursive_mutex> delivering(event_mutex);
  while (event_function) {
    GroupEvent event{};
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (events.empty()) return;
      event = std::move(events.front());
      events.pop_front();
    }
    // A copy: the function may replace itself.
    const PeerEventFunction function = event_function;
    function(event.rank, event.event, event.text);
  }
}

void Group::Impl::queue_frame(int to, const std::vector<uint8_t>& frame, UniqueFd attached) {
  GroupPeer& peer = at(to);
  if (!peer.stream || peer.stream->ended()) return;
  const Status status = peer.stream->send(frame.data(), frame.size(), std::move(attached));
  if (!status.ok())
    FCCL_LOG(Info, kLogBootstrap, "rank %d to %d: %s", rank, to, status.text().c_str());
  if (peer.stream->wants_write()) wake_reader();
}

}  // namespace fccl
