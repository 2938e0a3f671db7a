// What init would have agreed on for CPU ranks as processes of one host, for tests that ask the
// pure functions behind it.
#pragma once
#include <cstdint>
#include <vector>

#include "topology/facts.h"

namespace fccl::test {

// `cpus`: a bit for each CPU that every rank may use.
inline CommFacts cpu_facts(int ranks, uint64_t cpus) {
  std::vector<RankFacts> all(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    RankFacts& facts = all[static_cast<size_t>(r)];
    facts.rank = r;
    facts.bytes = sizeof facts;
    facts.pid = 100 + r;
    facts.process_token = 7u + static_cast<uint64_t>(r);
    facts.host_id = facts.boot_id_hash = 5;
    facts.backends = kBackendCpu;
    facts.memory_kinds = kMemoryMemfd;
    facts.allowed[0] = cpus;
  }
  return classify(all);
}

}  // namespace fccl::test
