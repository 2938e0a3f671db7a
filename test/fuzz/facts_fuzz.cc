// RankFacts as a peer may send them: what `validate` lets through can be classified and written,
// with pair classes that are symmetric.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "topology/facts.h"

using namespace fccl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  constexpr size_t kMostRanks = 6;
  const size_t ranks = std::min(kMostRanks, bytes / sizeof(RankFacts));
  std::vector<RankFacts> all(ranks);
  for (size_t i = 0; i < ranks; ++i) {
    std::memcpy(static_cast<void*>(&all[i]), data + i * sizeof(RankFacts), sizeof(RankFacts));
    if (!validate(all[i], static_cast<int>(i), static_cast<int>(ranks)).ok()) return 0;
  }
  const CommFacts comm = classify(all);
  for (int a = 0; a < comm.ranks; ++a) {
    for (int b = 0; b < comm.ranks; ++b) {
      if (!(comm.pair(a, b) == comm.pair(b, a))) std::abort();
    }
  }
  if (comm_text(comm).empty() || comm_json(comm).empty()) std::abort();
  return 0;
}
