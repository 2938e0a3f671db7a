#include "fccl_perf/join.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "fccl_perf/contestant.h"

namespace perf {
namespace {

constexpr double kIdWaitUs = 120e6;
constexpr useconds_t kPollUs = 5000;

Outcome choose_device(const RankSetup& setup, std::unique_ptr<Device>& device) {
  const Options& options = *setup.options;
  if (options.backend == fcclBackendHip)
    return Outcome::failure("--backend hip: this fccl_perf drives CPU ranks and NVIDIA GPUs");
  const bool gpu = options.backend == fcclBackendCuda ||
                   (options.backend == fcclBackendAuto && cuda_device_count() > 0);
  if (!gpu) {
    device = make_cpu_device();
    return {};
  }
  std::string problem;
  const int ordinal = options.shared_device ? setup.local_rank % std::max(1, cuda_device_count())
                                            : setup.local_rank;
  device = make_cuda_device(ordinal, options.null_stream, problem);
  return device ? Outcome() : Outcome::failure(problem);
}

// The id of ranks that we started: rank 0 leaves it in the shared block.
Outcome shared_id(SharedBlock* block, int rank, fcclUniqueId& id) {
  if (rank == 0) {
    const Outcome made = fccl_outcome(fcclGetUniqueId(&id), nullptr, "fcclGetUniqueId");
    if (made.ok()) block->id = id;
    block->id_ready.store(made.ok() ? 1 : 2, std::memory_order_release);
    return made;
  }
  const double end = now_us() + kIdWaitUs;
  while (block->id_ready.load(std::memory_order_acquire) == 0) {
    if (now_us() > end) return Outcome::failure("rank 0 made no unique id");
    usleep(200);
  }
  if (block->id_ready.load() == 2) return Outcome::failure("rank 0 could not make the unique id");
  id = block->id;
  return {};
}

Outcome write_id(const std::string& path, const fcclUniqueId& id) {
  const std::string draft = path + ".new";
  unlink(draft.c_str());
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0)
    return Outcome::failure(fmt::format("--id-file {}: {}", draft, std::strerror(errno)));
  const ssize_t written = write(file, &id, sizeof(id));
  close(file);
  if (written != static_cast<ssize_t>(sizeof(id)) || rename(draft.c_str(), path.c_str()) != 0) {
    return Outcome::failure(fmt::format("--id-file {}: cannot be written", path));
  }
  return {};
}

Outcome read_id(const std::string& path, fcclUniqueId& id) {
  constexpr std::time_t kOldS = 10;  // an older file is left over from a run that was killed
  const std::time_t begin = std::time(nullptr);
  const double end = now_us() + kIdWaitUs;
  while (now_us() < end) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
      usleep(kPollUs);
      continue;
    }
    struct stat info;
    const bool safe =
        fstat(file, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
    const bool old = info.st_mtime + kOldS < begin;
    const ssize_t got = old ? 0 : read(file, &id, sizeof(id));
    close(file);
    if (!safe)
      return Outcome::failure(fmt::format("--id-file {}: must be mine, with mode 0600", path));
    if (got == static_cast<ssize_t>(sizeof(id))) return {};
    usleep(kPollUs);
  }
  return Outcome::failure(
      fmt::format("--id-file {}: rank 0 left no unique id in {} s", path, kIdWaitUs / 1e6));
}

Outcome get_id(const RankSetup& setup, fcclUniqueId& id) {
  if (setup.block != nullptr) return shared_id(setup.block, setup.rank, id);
  const bool fixed = std::getenv("FCCL_COMM_ID") != nullptr;
  if (fixed) return fccl_outcome(fcclGetUniqueId(&id), nullptr, "fcclGetUniqueId");
  if (setup.rank != 0) return read_id(setup.id_file, id);
  PERF_TRY(fccl_outcome(fcclGetUniqueId(&id), nullptr, "fcclGetUniqueId"));
  return write_id(setup.id_file, id);
}

// The workspace is sized for the largest tensor of the sweep, within reason: larger ones are
// chunked.
void size_workspace(const RankSetup& setup, fcclConfig& config) {
  constexpr int64_t kMostBytes = int64_t{64} << 20;
  int64_t largest = 0;
  for (const Case& one : sweep(*setup.options, setup.ranks)) {
    if (!is_fused_shape(one.op) || one.bytes <= largest || one.bytes > kMostBytes) continue;
    largest = one.bytes;
    config.datatype = one.datatype;
    config.max_tokens = one.tokens;
    config.hidden = one.hidden;
  }
}

}  // namespace

Outcome join(const RankSetup& setup, Joined& joined) {
  const Options& options = *setup.options;
  PERF_TRY(choose_device(setup, joined.device));
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  config.backend = joined.device->is_cpu() ? fcclBackendCpu : fcclBackendCuda;
  config.device = joined.device->is_cpu() ? 0 : FCCL_DEVICE(joined.device->ordinal());
  config.shared_device = options.shared_device ? 1 : 0;
  config.call_timeout_ms = options.timeout_s * 1000;
  config.name = "fccl_perf";
  size_workspace(setup, config);
  fcclUniqueId id;
  PERF_TRY(get_id(setup, id));
  const fcclResult_t result =
      fcclCommInitRankConfig(&joined.comm, setup.ranks, &id, setup.rank, &config);
  const bool own_file = setup.block == nullptr && setup.rank == 0 && !setup.id_file.empty();
  if (own_file) unlink(setup.id_file.c_str());
  PERF_TRY(fccl_outcome(result, nullptr, "fcclCommInitRankConfig"));
  joined.team = setup.block != nullptr
                    ? make_shared_team(setup.block, setup.rank)
                    : make_comm_team(joined.comm, joined.device.get(), setup.rank, setup.ranks);
  return {};
}

}  // namespace perf
