#include "comm/init.h"

#include <fccl/fccl.h>

#include <cstring>

#include "base/fault.h"
#include "memory/workspace.h"
#include "select/tuner_file.h"
#include "topology/detect.h"

namespace fccl {
namespace {

struct BackendRow {
  BackendKind kind;
  uint32_t bit;
};
constexpr BackendRow kBackends[] = {
    // best first
    {BackendKind::Cuda, kBackendCuda},
    {BackendKind::Hip, kBackendHip},
    {BackendKind::Cpu, kBackendCpu},
};

int most_ranks_on_a_device(const CommFacts& facts) {
  int most = 1;
  for (int a = 0; a < facts.ranks; ++a) {
    int here = 0;
    for (int b = 0; b < facts.ranks; ++b) here += facts.pair(a, b).same_device || a == b ? 1 : 0;
    most = here > most ? here : most;
  }
  return most;
}

}  // namespace

Status Init::run(const Communicator::Join& join) {
  FCCL_TRY(set_fault(settings().env.test_fault));
  const Status local = find_local_facts();
  FCCL_TRY(join_group(join));
  FCCL_TRY(exchange_facts(local));
  FCCL_TRY(choose_backend());
  FCCL_TRY(group().vote(open_device(), limit_, "init.device"));
  FCCL_TRY(make_workspace());
  FCCL_TRY(test_paths());
  FCCL_TRY(share_costs());
  FCCL_TRY(group().vote(fault_status("init.ready", comm_.rank_), limit_, "init.ready"));
  FCCL_LOG(Info,
           kLogInit,
           "rank %d of %d is ready: backend %s, workspace %llu bytes",
           comm_.rank_,
           comm_.ranks_,
           comm_.backend_->name(),
           static_cast<unsigned long long>(comm_.workspace_->bytes()));
  return {};
}

// ---------------------------------------------------------------- facts

Status Init::find_local_facts() {
  FCCL_TRY_ASSIGN(machine, detect_machine(settings().env));
  machine_ = std::move(machine);
  mine_ = local_rank_facts(machine_, comm_.rank_);
  FCCL_TRY(describe_backends());
  return fault_status("init.facts", comm_.rank_);
}

Status Init::describe_backends() {
  for (const BackendRow& row : kBackends) {
    const bool forced = settings().backend == static_cast<int32_t>(row.kind);
    if (settings().backend != fcclBackendAuto && !forced) continue;
    auto found = find_backend(row.kind, settings().env);
    Status status = found.ok() ? (*found)->available() : found.status();
    if (status.ok()) {
      int device = settings().device;
      if (device < 0) {
        FCCL_TRY_ASSIGN(current, (*found)->current_device());
        device = current;
      }
      status = (*found)->describe(device, mine_);
      if (status.ok() && row.kind != BackendKind::Cpu) comm_.device_ = device;
    }
    if (forced) FCCL_TRY(status);
    if (!status.ok())
      FCCL_LOG(Info,
               kLogBackend,
               "no backend %d: %s",
               static_cast<int>(row.kind),
               status.text().c_str());
  }
  if (mine_.has_device != 0) place_device(machine_, &mine_);
  return {};
}

Status Init::join_group(const Communicator::Join& join) {
  auto group = join(settings(), limit_);
  if (!group.ok()) return group.status();
  {
    const std::lock_guard<std::mutex> lock(comm_.tell_mutex_);
    comm_.group_ = *group;
  }
  comm_.group_->set_event_function(
      [comm = &comm_](int peer, PeerEvent event, const std::string& text) {
        comm->on_peer(peer, event, text);
      });
  return {};
}

// One blob for each rank: its facts, then what must be equal, as text.
Status Init::exchange_facts(const Status& local) {
  std::string blob(reinterpret_cast<const char*>(&mine_), sizeof mine_);
  blob += settings_text(settings());
  std::vector<std::vector<uint8_t>> blobs;
  FCCL_TRY(group().allgather(local, blob.data(), blob.size(), blobs, limit_, "init.facts"));
  std::vector<std::string> texts;
  for (int q = 0; q < comm_.ranks_; ++q) {
    const auto& theirs = blobs[static_cast<size_t>(q)];
    if (theirs.size() < sizeof(RankFacts))
      return error_of_rank(q, Code::RemoteError, "rank %d sent malformed facts", q);
    RankFacts facts_of_rank;
    std::memcpy(&facts_of_rank, theirs.data(), sizeof facts_of_rank);
    FCCL_TRY(validate(facts_of_rank, q, comm_.ranks_));
    all_.push_back(facts_of_rank);
    texts.emplace_back(theirs.begin() + sizeof(RankFacts), theirs.end());
  }
  return compare_settings(texts);
}

// ---------------------------------------------------------------- backend and device

Status Init::choose_backend() {
  const CommFacts all = classify(all_, Between::Hosts);
  const BackendRow* best = nullptr;
  for (const BackendRow& row : kBackends)
    if (best == nullptr && (all.backends & row.bit) != 0) best = &row;
  if (best == nullptr) return error(Code::Unsupported, "the ranks have no backend in common");
  const bool cpu = best->kind == BackendKind::Cpu;
  comm_.situation_.backend = best->kind;
  facts() = cpu ? all : classify(all_, Between::Devices);
  if (cpu) comm_.device_ = -1;
  auto found = find_backend(best->kind, settings().env);
  if (!found.ok()) return found.status();
  comm_.backend_ = *found;
  FCCL_TRY(refuse_other_hosts());
  return refuse_shared_device();
}

Status Init::refuse_shared_device() {
  const int* pair = facts().shared_device_rank;
  if (comm_.situation_.backend == BackendKind::Cpu || pair[0] < 0 || settings().shared_device)
    return {};
  const RankFacts& rank = facts().rank[static_cast<size_t>(pair[0])];
  std::string uuid;
  for (const uint8_t byte : rank.device.uuid) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    uuid += hex;
  }
  return error_of_rank(
      pair[1],
      Code::InvalidUsage,
      "ranks %d and %d are on one device (%s, uuid %s); give each a device of its own, or allow it "
      "by config.shared_device or FCCL_SHARED_DEVICE=1",
      pair[0],
      pair[1],
      rank.device.name,
      uuid.c_str());
}

Status Init::refuse_other_hosts() {
  if (facts().same_host) return {};
  std::string where;
  for (const RankFacts& rank : facts().rank)
    where += (where.empty() ? "rank " : ", rank ") + std::to_string(rank.rank) + " on " +
             rank.host_name +
             (rank.has_device != 0 ? std::string(" (") + rank.device.name + ")" : "");
  return error(Code::Unsupported,
               "the ranks are on %zu hosts, and the fused paths need one: %s",
               facts().hosts.size(),
               where.c_str());
}

Status Init::open_device() {
  FCCL_TRY(fault_status("init.device", comm_.rank_));
  OpenArgs args;
  args.device = comm_.device_;
  args.config = &settings().env;
  args.oversubscribed = facts().oversubscribed;
  args.max_blocks = settings().max_blocks;
  auto context = comm_.backend_->open(args);
  if (!context.ok()) return context.status();
  auto words = (*context)->host_words();
  if (!words.ok()) return words.status();
  {
    const std::lock_guard<std::mutex> lock(comm_.tell_mutex_);
    comm_.context_ = std::move(*context);
    (*words)->abort = comm_.words_->abort;
    comm_.words_ = *words;
  }
  FCCL_TRY(fault_status("init.kernels", comm_.rank_));
  return comm_.context_->prepare(comm_.ranks_, most_ranks_on_a_device(facts()));
}

// ---------------------------------------------------------------- memory

// Falls down the list of memory kinds together.
Status Init::make_workspace() {
  comm_.situation_.layout =
      workspace_layout(comm_.situation_.backend, comm_.ranks_, settings().capacity_bytes);
  const WorkspaceLayout& layout = comm_.situation_.layout;
  FCCL_TRY(check_workspace(layout));  // the same on all ranks: the capacity was agreed
  const auto limit_ns = static_cast<uint64_t>(settings().call_timeout_ms) * 1000000u;
  Status why;  // of every kind that was tried
  for (const uint32_t kind : memory_kinds_to_try(facts(), comm_.situation_.backend)) {
    WindowArgs args;
    args.group = comm_.group_.get();
    args.facts = &facts();
    args.context = comm_.context_.get();
    args.bytes = layout.bytes;
    args.memory_kind = kind;
    args.clear = [&](char* memory) {
      return clear_workspace(*comm_.context_, memory, layout, settings().first_epoch, limit_ns);
    };
    auto window = make_window(args, limit_);
    if (window.ok()) {
      const std::lock_guard<std::mutex> lock(comm_.tell_mutex_);
      comm_.workspace_ = *window;
      comm_.memory_kind_ = kind;
      return {};
    }
    const Status& status = window.status();
    why = Status(status.code(),
                 status.rank(),
                 why.ok() ? status.text() : why.text() + "; next kind: " + status.text());
    if (limit_.aborted() || limit_.deadline.expired()) break;
    FCCL_LOG(Info, kLogMemory, "memory kind %u is declined: %s", kind, status.text().c_str());
  }
  return why.ok() ? error(Code::Unsupported, "the ranks have no way to share memory in common")
                  : why;
}

// Capability bits are not believed: every rank stores into every peer, and looks at what arrived.
Status Init::test_paths() {
  const auto slot = [&](int owner, int from) {
    return comm_.workspace_->at(owner) + offsetof(Control, headers) +
           (static_cast<size_t>(kGenerations - 1) * kMaxRanks + static_cast<size_t>(from)) *
               sizeof(CallHeader);
  };
  const auto mark = [](int owner, int from) {  // epoch 0: older than every call
    return CallHeader{0, 0xF0CC0000u + static_cast<uint32_t>(owner * 256 + from), 0x5A5A5A5Au};
  };
  Status stored = fault_status("init.selftest", comm_.rank_);
  for (int q = 0; q < comm_.ranks_ && stored.ok(); ++q) {
    const CallHeader value = mark(q, comm_.rank_);
    stored = comm_.context_->copy_in(slot(q, comm_.rank_), &value, sizeof value);
  }
  FCCL_TRY(group().vote(stored, limit_, "init.selftest.store"));
  Status seen;
  for (int q = 0; q < comm_.ranks_ && seen.ok(); ++q) {
    const CallHeader expected = mark(comm_.rank_, q);
    CallHeader value{};
    seen = comm_.context_->copy_out(&value, slot(comm_.rank_, q), sizeof value);
    if (seen.ok() && std::memcmp(&value, &expected, sizeof value) != 0)
      seen = error_of_rank(q,
                           Code::Unsupported,
                           "what %s stored into the window of rank %d did not arrive; peer access "
                           "is claimed but does "
                           "not work here (PCI ACS, IOMMU or a container?)",
                           group().describe(q).c_str(),
                           comm_.rank_);
  }
  return group().vote(seen, limit_, "init.selftest.load");
}

// ---------------------------------------------------------------- selection

// The tuner file of rank 0 serves all.
Status Init::share_costs() {
  std::string text;
  Status local = fault_status("init.tuner", comm_.rank_);
  if (local.ok() && comm_.rank_ == 0 && !settings().env.tuner_file.empty()) {
    auto read = read_tuner_file(settings().env.tuner_file);
    local = read.status();
    if (read.ok()) text = *read;
  }
  std::vector<std::vector<uint8_t>> blobs;
  FCCL_TRY(group().allgather(local, text.data(), text.size(), blobs, limit_, "init.tuner"));
  const std::string agreed(blobs[0].begin(), blobs[0].end());
  Situation& situation = comm_.situation_;
  situation.algo = settings().env.algo;
  situation.max_blocks = settings().max_blocks;
  if (agreed.empty()) {
    situation.costs = builtin_costs(situation.backend, situation.facts);
    return {};
  }
  FCCL_TRY_ASSIGN(costs, parse_tuner_text(agreed));
  situation.costs = std::move(costs);
  return {};
}

}  // namespace fccl
