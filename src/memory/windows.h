// Windows: memory that every rank of a group has and maps from all others, at one size. The
// workspace of a communicator is one; fcclCommWindowRegister makes more.
//
// Made together: each step (allocate, clear, export, map) ends in a vote, so that all ranks have
// the window or none has, and the error names the rank that failed. Memory is cleared before it is
// published: a peer's first store can never be wiped. Threads of one process map each other's
// memory by the pointer, through a registry of this process; the allocation lives as long as
// somebody maps it.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "bootstrap/group.h"
#include "topology/facts.h"

namespace fccl {

class Window {
 public:
  // By rank; at(own rank) is the own memory.
  char* at(int rank) const { return at_[static_cast<size_t>(rank)]; }
  uint64_t bytes() const { return own_->bytes; }
  uint64_t mapped_bytes() const { return mapped_bytes_; }
  const std::shared_ptr<Allocation>& own() const { return own_; }

 private:
  friend class WindowMaker;
  std::shared_ptr<Allocation> own_;
  std::vector<std::unique_ptr<Mapping>> mappings_;
  std::vector<char*> at_;
  uint64_t mapped_bytes_ = 0;
};

struct WindowArgs {
  Group* group = nullptr;
  const CommFacts* facts = nullptr;
  DeviceContext* context = nullptr;
  uint64_t bytes = 0;  // of a new allocation
  std::shared_ptr<Allocation> own;  // or memory that exists already
  uint32_t memory_kind = 0;
  // Clears new memory; complete on return.
  std::function<Status(char* memory)> clear;
  const char* phase = "window";
};

// Collective. The same result on all ranks.
Result<std::shared_ptr<Window>> make_window(const WindowArgs& args, const Limit& limit);

// The kinds of memory these ranks can share, best first; empty if they cannot.
std::vector<uint32_t> memory_kinds_to_try(const CommFacts& facts, BackendKind backend);

}  // namespace fccl
