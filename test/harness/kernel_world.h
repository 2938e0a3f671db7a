// Ranks of the CPU kernels without a communicator: a window per rank in plain memory, armed as the
// protocol says, and a thread per rank. A test sees every word of every window, may start the
// counters anywhere, and may break what it likes.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/entry/cpu_entry.h"
#include "device/layout/workspace.h"

namespace fccl::test {

class KernelWorld {
 public:
  struct Options {
    int ranks = 2;
    uint64_t slot_bytes = 1 << 16;  // that one sender may push in one launch, padded packs
    uint64_t start_epoch = 1;
    int64_t limit_ms = 60000;
  };
  explicit KernelWorld(const Options& options);

  int ranks() const { return options_.ranks; }
  Control& control(int rank) { return *reinterpret_cast<Control*>(window(rank)); }
  char* window(int rank) { return windows_[static_cast<size_t>(rank)].get(); }
  FailureRecord& record(int rank) { return records_[static_cast<size_t>(rank)]; }
  uint32_t& host_abort(int rank) { return aborts_[static_cast<size_t>(rank)]; }
  // What a host does to abort: the status word that every wait of this rank looks at.
  void abort_waits(int rank);
  const WorkspaceLayout& layout() const { return layout_; }
  static const Region& region_of(const WorkspaceLayout& layout, ProtocolKind protocol);

  // The exchange half of the arguments for a kernel of this kind.
  ExchangeArgs exchange(int rank, const KernelId& id);

  // body(rank) on a thread per rank, all at once; what it returns is an error text or "". The first
  // error aborts the waits of all ranks. Returns the errors, one a line.
  std::string run(const std::function<std::string(int)>& body);

  // What is not as it should be after `exchanges` launches that all ended well, or "": counters,
  // failure words, and every byte of the mailboxes armed.
  std::string not_at_rest(uint64_t exchanges);

 private:
  struct Free {
    void operator()(char* memory) const;
  };

  Options options_;
  WorkspaceLayout layout_;
  std::vector<std::unique_ptr<char, Free>> windows_;
  std::vector<FailureRecord> records_;
  std::vector<uint32_t> aborts_;
};

// Runs one launch of `blocks` blocks: block 0 on the calling thread, the others on threads of their
// own.
void run_kernel(CpuKernel kernel, const KernelArgs& args, int blocks, uint32_t chaos);

// The status of a rank after a failed launch, as text.
std::string describe_failure(const FailureRecord& record);

}  // namespace fccl::test
