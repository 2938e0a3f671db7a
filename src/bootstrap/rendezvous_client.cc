#include "bootstrap/rendezvous_client.h"

#include <sodium.h>

#include <algorithm>

namespace fccl {
namespace {

constexpr int kSliceMs = 50;
constexpr size_t kReadBytes = 16 * 1024;
// Rounds of refusals after which nothing listens there any more. The listeners of an id are older
// than the id itself, so this is no race.
constexpr int kEmptyRounds = 3;
// The verdict of a deadline travels after the deadline.
constexpr int64_t kGraceMs = 500;

Result<Stream> connect(const RendezvousArgs& args, const Limit& limit) {
  Connector connector(args.secret, args.mine, args.endpoints, encode(args.hello));
  while (!connector.connected()) {
    if (limit.aborted()) return error(Code::Aborted, "aborted while connecting to the rendezvous");
    if (limit.deadline.expired())
      return error(Code::Timeout,
                   "rank %d did not reach the rendezvous within %lld ms: %s",
                   args.mine.rank,
                   static_cast<long long>(limit.deadline.limit_ms()),
                   connector.last_failure().c_str());
    if (!args.fixed && connector.nobody_listens(kEmptyRounds))
      return error(Code::InvalidUsage,
                   "nothing listens at the addresses of this unique id (%s): it was already used "
                   "for an init, its deadline has passed, or the process that made it (pid %u) has "
                   "ended",
                   connector.last_failure().c_str(),
                   args.creator_pid);
    std::vector<pollfd> polled;
    connector.add_polled(polled);
    if (!poll_within(polled, limit, connector.sleep_ms(kSliceMs))) return errno_error("poll");
    connector.step(polled[0]);
  }
  return connector.take();
}

}  // namespace

Result<std::unique_ptr<RendezvousClient>> RendezvousClient::meet(const RendezvousArgs& args,
                                                                 const Limit& limit) {
  FCCL_TRY_ASSIGN(stream, connect(args, limit));
  std::unique_ptr<RendezvousClient> client(new RendezvousClient(args, std::move(stream)));
  FCCL_TRY(client->wait_for(RendezvousKind::Table, limit));
  const size_t ranks = client->table_.cards.size();
  if (ranks != static_cast<size_t>(args.mine.ranks))
    return error(Code::RemoteError,
                 "the rendezvous sent a table of %zu ranks, expected %d",
                 ranks,
                 args.mine.ranks);
  return client;
}

Status RendezvousClient::closed() const {
  if (creator_pid_ == 0)
    return error_of_rank(0, Code::RemoteError, "rank 0 closed the rendezvous before it was done");
  return error(Code::RemoteError,
               "the rendezvous was closed before it was done: the process that made the unique id "
               "(pid %u) has ended",
               creator_pid_);
}

Status RendezvousClient::take_messages() {
  FCCL_TRY(stream_.read(kReadBytes));
  std::vector<uint8_t> bytes;
  while (stream_.next(bytes)) {
    FCCL_TRY_ASSIGN(message, decode_rendezvous_message(bytes));
    sodium_memzero(bytes.data(), bytes.size());
    if (message.kind == RendezvousKind::Table && !have_table_) {
      table_ = message;
      have_table_ = true;
    } else if (message.kind == RendezvousKind::Done) {
      verdict_ = message.status;
      have_verdict_ = true;
    }
  }
  return {};
}

Status RendezvousClient::check() {
  FCCL_TRY(take_messages());
  if (have_verdict_) return verdict_;
  if (stream_.ended()) return closed();
  return {};
}

Status RendezvousClient::wait_for(RendezvousKind kind, const Limit& limit) {
  const int64_t left = std::max<int64_t>(limit.deadline.remaining_ms(), 0);
  const Limit graced{Deadline::after_ms(left + kGraceMs), limit.abort};
  while (true) {
    FCCL_TRY(take_messages());
    if (have_verdict_) return verdict_;
    if (kind == RendezvousKind::Table && have_table_) return {};
    if (stream_.ended()) return closed();
    if (limit.aborted()) {
      Status status = error(Code::Aborted, "aborted during init");
      RendezvousMessage report;
      report.kind = RendezvousKind::Report;
      report.status = status;
      (void)stream_.send(encode(report));
      return status;
    }
    if (graced.deadline.expired())
      return error(Code::Timeout,
                   "rank %d waited %lld ms for the other ranks in the rendezvous",
                   rank_,
                   static_cast<long long>(limit.deadline.limit_ms()));
    std::vector<pollfd> polled{{stream_.fd(), stream_.poll_events(), 0}};
    if (!poll_within(polled, graced, kSliceMs)) return errno_error("poll");
    if (stream_.wants_write()) FCCL_TRY(stream_.flush());
  }
}

Status RendezvousClient::conclude(const Status& mine, const Limit& limit) {
  table_.secret.wipe();
  if (have_verdict_) return verdict_;
  RendezvousMessage report;
  report.kind = RendezvousKind::Report;
  report.status = mine;
  FCCL_TRY(stream_.send(encode(report)));
  // A local abort has been reported; nobody has to be waited for.
  if (mine.code() == Code::Aborted) return mine;
  const Status verdict = wait_for(RendezvousKind::Done, limit);
  // Only if the service could not tell: the own reason is better than none.
  const bool told = have_verdict_ || mine.ok();
  return told ? verdict : mine;
}

}  // namespace fccl
