// The size of a communicator's workspace: a pure function of what is agreed, so that the answer
// before init (fcclWorkspaceBytes) and the allocation of init are the same.
#pragma once
#include <cstdint>

#include "backend/backend.h"
#include "device/layout/workspace.h"

namespace fccl {

// `capacity`: bytes of one tensor that must run in one launch by every algorithm; 0: the backend's
// default. One rank needs the control block only.
WorkspaceLayout workspace_layout(BackendKind backend, int ranks, uint64_t capacity);

// Can kernels reach all of it?
Status check_workspace(const WorkspaceLayout& layout);

// What `layout` gives: bytes of a tensor that every algorithm runs in one launch.
uint64_t workspace_capacity(const WorkspaceLayout& layout, int ranks);

// Arms a new workspace: Lamport regions with the sentinel, the rest with zeros, the control line
// with the first epoch. Complete on return.
Status clear_workspace(DeviceContext& context, char* window, const WorkspaceLayout& layout,
                       uint64_t first_epoch, uint64_t limit_ns);

}  // namespace fccl
