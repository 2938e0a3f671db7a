#include "memory/workspace.h"

#include <algorithm>

namespace fccl {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLLCapacity = 64 << 10;  // LL serves small messages

// Bytes of one tensor, by default. A CPU chunk should fit into the cache that ranks share; a GPU
// exchange costs two microseconds, so its chunks are large and its generations of one size whatever
// the number of ranks.
uint64_t default_lamport(BackendKind backend, int ranks) {
  return backend == BackendKind::Cpu ? static_cast<uint64_t>(ranks) * kMiB : 64 * kMiB;
}
uint64_t default_staging(BackendKind backend, int ranks) {
  return backend == BackendKind::Cpu ? static_cast<uint64_t>(ranks) * kMiB : 32 * kMiB;
}

}  // namespace

WorkspaceLayout workspace_layout(BackendKind backend, int ranks, uint64_t capacity) {
  if (ranks <= 1) return make_layout(1, 0, 0, 0);
  const auto count = static_cast<uint64_t>(ranks);
  // Owned columns carry unit sums beside them: an eighth more is enough from 128 packs a row on.
  const uint64_t whole = capacity == 0 ? 0 : count * (round_up(capacity, 16) + capacity / 8 + 4096);
  return make_layout(ranks,
                     capacity == 0 ? default_lamport(backend, ranks) : whole,
                     count * 2 * kLLCapacity,
                     capacity == 0 ? default_staging(backend, ranks) : whole);
}

Status check_workspace(const WorkspaceLayout& layout) {
  if (layout.bytes <= kMostWindowBytes) return {};
  return error(
      Code::InvalidArgument,
      "the workspace would take %llu bytes on each rank, at most %llu are possible: ask for "
      "fewer (FCCL_WORKSPACE_BYTES)",
      static_cast<unsigned long long>(layout.bytes),
      static_cast<unsigned long long>(kMostWindowBytes));
}

uint64_t workspace_capacity(const WorkspaceLayout& layout, int ranks) {
  if (ranks <= 1) return UINT64_MAX / 2;
  return std::min(hop_bytes(layout.lamport, ranks, false),
                  hop_bytes(layout.staging, ranks, false)) *
         8 / 9;
}

Status clear_workspace(DeviceContext& context, char* window, const WorkspaceLayout& layout,
                       uint64_t first_epoch, uint64_t limit_ns) {
  const uint64_t lamport = layout.lamport.generation * kGenerations;
  FCCL_TRY(context.fill(window, 0, layout.lamport.offset));
  if (lamport != 0) FCCL_TRY(context.fill(window + layout.lamport.offset, 0xFF, lamport));
  // LL tags start at 0; staging is never read before it was written.
  FCCL_TRY(context.fill(window + layout.ll.offset, 0, layout.staging.offset - layout.ll.offset));
  const uint64_t line = line_of(first_epoch);
  FCCL_TRY(context.copy_in(window + offsetof(Control, line), &line, sizeof line));
  return context.copy_in(window + offsetof(Control, limit_ns), &limit_ns, sizeof limit_ns);
}

}  // namespace fccl
