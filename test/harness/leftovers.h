// What a process or a machine still holds: descriptors, threads, memory files
// of the own process; shared memory and sockets that are named after fccl.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace fccl::test {

struct Holdings {
  size_t descriptors = 0;
  size_t threads = 0;
  size_t memory_files = 0;  // mappings of memfd or /dev/shm in this process
};
Holdings own_holdings();
// Waits a little for helper threads to end: what is held once it no longer shrinks to `before`.
Holdings settled_holdings(const Holdings& before);
bool operator==(const Holdings& a, const Holdings& b);
std::string text_of(const Holdings& h);

// Shared memory and sockets in the file system that are named after fccl.
std::vector<std::string> named_things();

// Names of fccl's unix sockets, abstract ones too: of all processes here, or of one.
std::set<std::string> socket_names(pid_t pid = 0);

}  // namespace fccl::test
