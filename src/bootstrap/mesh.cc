#include "bootstrap/mesh.h"

#include "bootstrap/acceptor.h"
#include "bootstrap/connector.h"

namespace fccl {
namespace {

constexpr int kSliceMs = 50;
// About two seconds of refusals: the peer listened before it told us where, so it cannot be
// reached.
constexpr int kHopelessRounds = 10;
// How long a rank that failed tries to tell its peers; one that was aborted must be quick.
constexpr int64_t kTellMs = 500;
constexpr int64_t kTellAbortedMs = 50;

std::vector<uint8_t> report_of(const Status& failure) {
  RendezvousMessage report;
  report.kind = RendezvousKind::Report;
  report.status = failure;
  return encode(report);
}

class MeshBuilder {
 public:
  explicit MeshBuilder(const MeshArgs& args)
      : args_(args), introduction_(encode(RendezvousMessage{})), streams_(args.cards.size()) {
    connectors_.resize(args.cards.size());
    for (int peer = 0; peer < args.rank; peer++) connect_to(peer);
  }

  Status listen(std::vector<Listener> listeners);
  Result<MeshStreams> build(const Limit& limit, MeshWatch* watch);
  void tell(const Status& failure, const Limit& limit);

 private:
  int ranks() const { return static_cast<int>(args_.cards.size()); }
  std::optional<Stream>& stream(int peer) { return streams_[static_cast<size_t>(peer)]; }
  std::optional<Connector>& connector(int peer) { return connectors_[static_cast<size_t>(peer)]; }
  const RankCard& card(int peer) const { return args_.cards[static_cast<size_t>(peer)]; }
  Hello hello(int target) const;
  void connect_to(int peer);
  bool complete() const;
  void hear(int peer, const std::vector<uint8_t>& said);
  Status round(const Limit& limit, MeshWatch* watch);
  void take_connected(int peer);
  void take_accepted(Accepted accepted);
  Status check_hopeless();
  std::string missing();

  const MeshArgs& args_;
  // What a peer hears first: nothing but that it is authentic; or why this rank has failed.
  std::vector<uint8_t> introduction_;
  std::optional<Acceptor> acceptor_;
  std::vector<std::optional<Connector>> connectors_;
  MeshStreams streams_;
  Status peer_failure_;  // the first that a peer told
};

Hello MeshBuilder::hello(int target) const {
  Hello mine;
  mine.purpose = Purpose::Mesh;
  mine.library_version = args_.library_version;
  mine.rank = args_.rank;
  mine.ranks = ranks();
  mine.target = target;
  return mine;
}

Status MeshBuilder::listen(std::vector<Listener> listeners) {
  FCCL_TRY_ASSIGN(acceptor, Acceptor::create(args_.secret, hello(-1), std::move(listeners)));
  acceptor_ = std::move(acceptor);
  return {};
}

void MeshBuilder::connect_to(int peer) {
  std::vector<Endpoint> endpoints;
  const bool same_host = card(peer).host_token == card(args_.rank).host_token;
  if (same_host && !card(peer).unix_name.empty()) endpoints.push_back({card(peer).unix_name, {}});
  for (Endpoint& endpoint : tcp_endpoints(card(peer).addresses))
    endpoints.push_back(std::move(endpoint));
  connector(peer).emplace(args_.secret, hello(peer), std::move(endpoints), introduction_);
}

bool MeshBuilder::complete() const {
  for (int peer = 0; peer < ranks(); peer++)
    if (peer != args_.rank && !streams_[static_cast<size_t>(peer)]) return false;
  return true;
}

void MeshBuilder::hear(int peer, const std::vector<uint8_t>& said) {
  Result<RendezvousMessage> message = decode_rendezvous_message(said);
  if (!peer_failure_.ok() || !message.ok() || message->status.ok()) return;
  const Status& told = message->status;
  // It may be passing on what it was told.
  const bool blames = told.rank() >= 0 && told.rank() < ranks();
  peer_failure_ =
      blames ? told
             : Status(told.code(), peer, describe_rank(peer, card(peer)) + ": " + told.text());
}

void MeshBuilder::take_connected(int peer) {
  hear(peer, connector(peer)->welcome());
  stream(peer).emplace(connector(peer)->take());
  connector(peer).reset();
}

void MeshBuilder::take_accepted(Accepted accepted) {
  const int peer = accepted.hello.rank;
  if (peer <= args_.rank || peer >= ranks() || accepted.hello.ranks != ranks()) return;
  if (!accepted.stream.send(introduction_).ok()) return;
  hear(peer, accepted.first);
  // The peer comes again if its first connection broke before our welcome reached it.
  stream(peer).emplace(std::move(accepted.stream));
}

std::string MeshBuilder::missing() {
  std::string names;
  for (int peer = 0; peer < ranks(); peer++) {
    if (peer == args_.rank || stream(peer)) continue;
    names += (names.empty() ? "" : ", ") + describe_rank(peer, card(peer));
    if (connector(peer) && !connector(peer)->last_failure().empty())
      names += ": " + connector(peer)->last_failure();
  }
  return names;
}

Status MeshBuilder::check_hopeless() {
  for (int peer = 0; peer < args_.rank; peer++)
    if (connector(peer) && connector(peer)->nobody_listens(kHopelessRounds))
      return error_of_rank(peer,
                           Code::SystemError,
                           "cannot reach %s: %s",
                           describe_rank(peer, card(peer)).c_str(),
                           connector(peer)->last_failure().c_str());
  return {};
}

Status MeshBuilder::round(const Limit& limit, MeshWatch* watch) {
  std::vector<pollfd> polled;
  polled.push_back({watch != nullptr ? watch->fd() : -1, POLLIN, 0});
  polled.push_back({acceptor_ ? acceptor_->fd() : -1, POLLIN, 0});
  int sleep = acceptor_ ? acceptor_->sleep_ms(kSliceMs) : kSliceMs;
  for (std::optional<Connector>& connector : connectors_) {
    if (!connector) continue;
    connector->add_polled(polled);
    sleep = connector->sleep_ms(sleep);
  }
  if (!poll_within(polled, limit, sleep)) return errno_error("poll");
  size_t entry = 2;
  for (int peer = 0; peer < args_.rank; peer++) {
    if (!connector(peer)) continue;
    connector(peer)->step(polled[entry++]);
    if (connector(peer)->connected()) take_connected(peer);
  }
  std::vector<Accepted> accepted;
  if (acceptor_) acceptor_->step(accepted);
  for (Accepted& one : accepted) take_accepted(std::move(one));
  if (watch != nullptr) FCCL_TRY(watch->check());
  FCCL_TRY(peer_failure_);
  return check_hopeless();
}

Result<MeshStreams> MeshBuilder::build(const Limit& limit, MeshWatch* watch) {
  if (fault(args_.test_fault, args_.hook, args_.rank))
    return error(Code::SystemError, "cannot connect to the peers (fault hook)");
  while (!complete()) {
    if (limit.aborted())
      return error(Code::Aborted, "aborted while connecting to %s", missing().c_str());
    if (limit.deadline.expired())
      return error(Code::Timeout,
                   "no connection within %lld ms with %s",
                   static_cast<long long>(limit.deadline.limit_ms()),
                   missing().c_str());
    FCCL_TRY(round(limit, watch));
  }
  return std::move(streams_);
}

// Goes on meeting those that are not met yet, for a moment, with the failure for an introduction.
// Each of them either hears it, or failed as well and does the same.
void MeshBuilder::tell(const Status& failure, const Limit& limit) {
  introduction_ = report_of(failure);
  for (int peer = 0; peer < args_.rank; peer++)
    if (!stream(peer)) connect_to(peer);
  const int64_t ms = limit.aborted() ? kTellAbortedMs : kTellMs;
  const Limit moment{Deadline::after_ms(ms), nullptr};
  while (!complete() && !moment.deadline.expired()) (void)round(moment, nullptr);
}

}  // namespace

Result<MeshStreams> build_mesh(const MeshArgs& args, std::vector<Listener> listeners,
                               const Limit& limit, MeshWatch* watch) {
  MeshBuilder builder(args);
  const Status listens = builder.listen(std::move(listeners));
  Result<MeshStreams> streams =
      listens.ok() ? builder.build(limit, watch) : Result<MeshStreams>(listens);
  if (!streams.ok() && args.tell_peers) builder.tell(streams.status(), limit);
  return streams;
}

}  // namespace fccl
