#include "comm/make.h"

#include <cstring>

#include "bootstrap/worker_thread.h"
#include "comm/handles.h"

namespace fccl {
namespace {

Status check_ranks(int ranks, int rank) {
  if (ranks < 1 || ranks > kMaxRanks)
    return error(Code::InvalidArgument, "nranks is %d; allowed: 1 to %d", ranks, kMaxRanks);
  if (rank < 0 || rank >= ranks)
    return error(Code::InvalidArgument, "rank is %d; allowed: 0 to %d", rank, ranks - 1);
  return {};
}

Communicator::Join join_by_id(const fcclUniqueId& id, int rank, int ranks) {
  return [id, rank, ranks](const Settings& settings, const Limit& limit) {
    JoinArgs args;
    args.unique_id = reinterpret_cast<const uint8_t*>(id.internal);
    args.rank = rank;
    args.ranks = ranks;
    args.library_version = FCCL_VERSION_CODE;
    args.config = &settings.env;
    return Group::join(args, limit);
  };
}

// Runs init and gives out the handle.
Status start(std::unique_ptr<Communicator> comm, const Communicator::Join& join, fcclComm_t* out) {
  const bool blocking = comm->settings().blocking;
  if (blocking) {
    FCCL_TRY(comm->init(join));
    FCCL_TRY_ASSIGN(handle, make_handle(std::move(comm)));
    *out = handle;
    return {};
  }
  Communicator& begun = *comm;
  FCCL_TRY_ASSIGN(handle, make_handle(std::move(comm)));
  const Status started = begun.init_in_background(join);
  if (!started.ok()) {
    static_cast<void>(take_handle(handle, 0));
    return started;
  }
  *out = handle;
  return Status(Code::InProgress, "init goes on in the background; poll fcclCommGetAsyncError");
}

}  // namespace

Status make_by_id(const fcclConfig& config, int ranks, int rank, const fcclUniqueId& id,
                  fcclComm_t* out) {
  FCCL_TRY(check_ranks(ranks, rank));
  FCCL_TRY_ASSIGN(settings, make_settings(config));
  return start(
      std::make_unique<Communicator>(settings, rank, ranks), join_by_id(id, rank, ranks), out);
}

Status make_all(const fcclConfig& config, int ranks, const int* devices, fcclComm_t* out) {
  FCCL_TRY(check_ranks(ranks, 0));
  FCCL_TRY_ASSIGN(settings, make_settings(config));
  fcclUniqueId id;
  FCCL_TRY(create_unique_id(settings.env, reinterpret_cast<uint8_t*>(id.internal)));
  std::vector<std::unique_ptr<Communicator>> comms;
  std::vector<Status> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    Settings mine = settings;
    mine.device = devices == nullptr ? r : devices[r];
    comms.push_back(std::make_unique<Communicator>(mine, r, ranks));
  }
  Status begun;
  for (int r = 0; r < ranks && begun.ok(); ++r) {
    auto thread = start_thread("fccl-init", [&, r] {
      results[static_cast<size_t>(r)] =
          comms[static_cast<size_t>(r)]->init(join_by_id(id, r, ranks));
    });
    begun = thread.status();
    if (thread.ok()) threads.push_back(std::move(*thread));
  }
  if (!begun.ok())
    for (auto& comm : comms) comm->abort();
  for (auto& thread : threads) thread.join();
  FCCL_TRY(begun);
  for (const Status& status : results) FCCL_TRY(status);
  for (int r = 0; r < ranks; ++r) {
    FCCL_TRY_ASSIGN(handle, make_handle(std::move(comms[static_cast<size_t>(r)])));
    out[r] = handle;
  }
  return {};
}

Status make_by_allgather(const fcclConfig& config, int ranks, int rank, fcclAllgather_t allgather,
                         void* context, fcclComm_t* out) {
  FCCL_TRY(check_ranks(ranks, rank));
  FCCL_TRY_ASSIGN(settings, make_settings(config));
  if (!settings.blocking)
    return error(
        Code::InvalidArgument,
        "config.blocking = -1 is not possible here: the allgather runs on the calling thread");
  const Communicator::Join join = [=](const Settings& s, const Limit& limit) {
    AllgatherJoinArgs args;
    args.allgather = allgather;
    args.context = context;
    args.rank = rank;
    args.ranks = ranks;
    args.library_version = FCCL_VERSION_CODE;
    args.config = &s.env;
    return Group::join_allgather(args, limit);
  };
  return start(std::make_unique<Communicator>(settings, rank, ranks), join, out);
}

Status make_by_split(Communicator& parent, int color, int key, const fcclConfig* config,
                     fcclComm_t* out) {
  const auto lock = parent.lock();
  FCCL_TRY(parent.usable());
  const Limit limit{Deadline::after_ms(parent.settings().init_timeout_ms),
                    parent.health().abort_word()};
  Result<Settings> settings =
      config == nullptr ? Result<Settings>(parent.settings()) : make_settings(*config);
  // A refused config takes part in the split all the same: the others must not wait for it.
  FCCL_TRY(parent.group().vote(settings.status(), limit, "split.config"));
  auto group = parent.group().split(color, key, limit);
  if (!group.ok()) return group.status();
  if (*group == nullptr) return {};
  std::shared_ptr<Group> mine = *group;
  const int rank = mine->rank();
  const int ranks = mine->ranks();
  if (settings->device < 0) settings->device = parent.device();
  const Communicator::Join join = [mine](const Settings&, const Limit&) {
    return Result<std::shared_ptr<Group>>(mine);
  };
  const Status made = start(std::make_unique<Communicator>(*settings, rank, ranks), join, out);
  // A rank that died meanwhile is gone from the parent too, where it has the number that the caller
  // knows it by.
  constexpr int64_t kParentMs = 500;
  if (made.code() == Code::RemoteError) parent.health().wait_for_failure(kParentMs);
  return made.code() == Code::RemoteError && parent.health().failed() ? parent.health().status()
                                                                      : made;
}

}  // namespace fccl
