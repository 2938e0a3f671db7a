// Group::Impl: the state behind a Group, and the parts of its work that live in files of their own:
// the reader thread and what it does with frames (group_reader.cc), exchanges (group_exchange.cc).
// Private to the files that implement Group.
//
// `mutex` guards everything below it. Only the reader thread reads from the streams and ends them;
// any thread may queue frames to send (Stream::send never waits). `event_mutex` is taken before
// `mutex`, and is held while the event function runs.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "bootstrap/fork_guard.h"
#include "bootstrap/group.h"
#include "bootstrap/mesh.h"
#include "bootstrap/messages.h"

namespace fccl {

// One rank's part of an exchange.
struct ExchangePart {
  uint32_t number = 0;
  Operation operation = Operation::Barrier;
  std::string phase;
  Status status;
  std::vector<uint8_t> payload;
  bool has_fd = false;
  UniqueFd fd;  // invalid although has_fd: this process had no descriptor left for it
};

// What this rank hands to an exchange.
struct OwnPart {
  Operation operation = Operation::Barrier;
  const char* phase = "";
  Status status;
  const void* blob = nullptr;
  size_t bytes = 0;
  int fd = -1;
};

struct GroupPeer {
  struct Waiting {
    Frame frame;
    UniqueFd fd;
  };
  RankCard card;
  std::optional<Stream> stream;  // empty for the own rank
  bool left = false;  // has said bye
  Status failure;  // died, failed, left: what a wait for it answers
  std::deque<Waiting> exchanges;
  std::deque<Frame> messages;
  size_t waiting_bytes = 0;
  bool gone() const { return !failure.ok(); }
};

struct GroupEvent {
  int rank;
  PeerEvent event;
  std::string text;
};

struct GroupArgs {
  int rank = -1;
  uint32_t library_version = 0;
  std::vector<RankCard> cards;
  MeshStreams streams;
  Config config;
};

struct Group::Impl {
  // Starts the reader thread.
  static Result<std::unique_ptr<Impl>> create(GroupArgs args);
  // Builds the mesh, then as create().
  static Status connect(MeshArgs mesh, std::vector<Listener> listeners, const Config& config,
                        const Limit& limit, MeshWatch* watch, std::unique_ptr<Impl>& out);
  ~Impl();

  // Waits for every rank's part. The returned error is this rank's own (a deadline, a dead peer);
  // what the parts say is for verdict().
  Status exchange(const OwnPart& own, std::vector<ExchangePart>& parts, const Limit& limit);
  // The one answer of all ranks: the parts' lowest failure, or a mismatch of what they exchange.
  Status verdict(const std::vector<ExchangePart>& parts) const;

  void read_all();
  void read_peer(int peer, short events);
  void take_frame(int peer, const std::vector<uint8_t>& bytes);
  void peer_failed(int peer, PeerEvent event, const Status& failure);
  void peer_died(int peer, const std::string& how);
  void tell_others(int about, bool died, const Status& failure);
  void deliver_events();
  void wake_reader();
  // Queues a frame to one peer; nothing happens if the peer is gone.
  void queue_frame(int peer, const std::vector<uint8_t>& frame, UniqueFd attached = {});
  // Sleeps until something changes; an error if the limit says so. `lock` holds `mutex`.
  Status wait_change(std::unique_lock<std::mutex>& lock, const Limit& limit,
                     const std::string& waiting_for);
  std::string describe(int peer) const;
  int ranks() const { return static_cast<int>(peers.size()); }
  GroupPeer& at(int peer) { return peers[static_cast<size_t>(peer)]; }
  const GroupPeer& at(int peer) const { return peers[static_cast<size_t>(peer)]; }

  const ProcessMark process;
  const int rank;
  const uint32_t library_version;
  const Config config;
  std::atomic<bool> in_exchange{false};
  std::atomic<bool> stopping{false};
  UniqueFd wake;
  std::thread reader;

  std::recursive_mutex event_mutex;
  PeerEventFunction event_function;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<GroupPeer> peers;
  std::deque<GroupEvent> events;
  Status first_failure;
  uint32_t next_exchange = 0;
  bool failure_sent = false;
  bool leaving = false;

 private:
  explicit Impl(GroupArgs args);
  void run_reader();
  void send_parts(Frame& frame, int fd);
  bool has_part(int peer, uint32_t number);
  void take_part(int peer, ExchangePart& part);
};

}  // namespace fccl
