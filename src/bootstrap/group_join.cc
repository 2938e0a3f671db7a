// The way into a group by unique id, and what all ways share (the others: group_allgather.cc,
// group_split.cc). Each prepares listeners and a card, brings the cards together in its own way,
// builds the mesh, starts the reader thread, and ends in a verdict that is the same on all ranks.
#include <algorithm>

#include "base/fault.h"
#include "bootstrap/group_impl.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/rendezvous_host.h"

namespace fccl {
namespace {

uint32_t clamp_ms(int64_t ms) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, 0, 7 * 86400000LL));
}

RendezvousHello make_hello(const Status& local, const RankCard& card, const Limit& limit) {
  RendezvousHello hello;
  hello.local = local;
  hello.limit_ms = clamp_ms(limit.deadline.limit_ms());
  hello.remaining_ms = clamp_ms(limit.deadline.remaining_ms());
  hello.card = card;
  return hello;
}

}  // namespace

Result<std::shared_ptr<Group>> Group::join(const JoinArgs& args, const Limit& limit) {
  if (args.unique_id == nullptr || args.config == nullptr)
    return error(Code::InvalidArgument, "the unique id is NULL");
  const Config& config = *args.config;
  FCCL_TRY_ASSIGN(id, decode_unique_id(args.unique_id));
  FCCL_TRY(check_not_used(id));
  if (id.fixed && args.rank == 0)
    FCCL_TRY(open_fixed_rendezvous(id, config, limit.deadline.remaining_ms()));

  LocalRank local;
  Status status = open_local_rank(config, args.rank, local);
  if (status.ok() && fault(config.test_fault, "bootstrap.hello", args.rank))
    status = error(Code::SystemError, "cannot say hello (fault hook)");
  RendezvousArgs rendezvous;
  rendezvous.secret = id.secret;
  rendezvous.mine.rank = args.rank;
  rendezvous.mine.ranks = args.ranks;
  rendezvous.mine.library_version = args.library_version;
  if (fault(config.test_fault, "bootstrap.version", args.rank)) rendezvous.mine.wire_version++;
  Result<std::vector<Endpoint>> endpoints = rendezvous_endpoints(id, config);
  if (!endpoints.ok()) {
    // A wrong setting is this rank's failure, and the others shall hear of it.
    status = endpoints.status();
    Config without_folder = config;
    without_folder.socket_dir.clear();
    endpoints = rendezvous_endpoints(id, without_folder);
    if (!endpoints.ok()) return status;
  }
  rendezvous.endpoints = *endpoints;
  rendezvous.hello = make_hello(status, local.card, limit);
  rendezvous.fixed = id.fixed;
  rendezvous.creator_pid = id.creator_pid;
  Result<std::unique_ptr<RendezvousClient>> met = RendezvousClient::meet(rendezvous, limit);
  if (!met.ok()) return met.status();
  RendezvousClient& client = **met;

  MeshArgs mesh;
  mesh.secret = client.mesh_secret();
  mesh.rank = args.rank;
  mesh.library_version = args.library_version;
  mesh.cards = client.cards();
  mesh.tell_peers = false;
  std::unique_ptr<Impl> impl;
  status = Impl::connect(std::move(mesh), std::move(local.listeners), config, limit, &client, impl);
  FCCL_TRY(client.conclude(status, limit));
  return std::shared_ptr<Group>(new Group(std::move(impl)));
}

Status Group::Impl::connect(MeshArgs mesh, std::vector<Listener> listeners, const Config& config,
                            const Limit& limit, MeshWatch* watch, std::unique_ptr<Impl>& out) {
  mesh.test_fault = config.test_fault;
  FCCL_TRY_ASSIGN(streams, build_mesh(mesh, std::move(listeners), limit, watch));
  GroupArgs args;
  args.rank = mesh.rank;
  args.library_version = mesh.library_version;
  args.cards = mesh.cards;
  args.streams = std::move(streams);
  args.config = config;
  FCCL_TRY_ASSIGN(impl, create(std::move(args)));
  out = std::move(impl);
  return {};
}

}  // namespace fccl
