// Mesh: builds the streams between all ranks. Each rank already listens and has everybody's card
// and one common secret. The higher rank of a pair connects to the lower one: over the unix socket
// if both have the same host token and it answers, else over TCP. The handshake says which rank
// wants which rank; the lower rank answers with a welcome, and the stream stands. A rank that fails
// here still connects to those who wait for it, and says why: else they would wait for a deadline.
#pragma once
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/fault.h"
#include "bootstrap/rank_card.h"
#include "bootstrap/stream.h"

namespace fccl {

// Looks at the world outside while the mesh is built, so that a rank's death ends it at once.
class MeshWatch {
 public:
  virtual ~MeshWatch() = default;
  virtual int fd() const = 0;  // to poll for input, or -1
  virtual Status check() = 0;  // called in each round
};

struct MeshArgs {
  Secret secret;
  int rank = -1;
  uint32_t library_version = 0;
  std::vector<RankCard> cards;  // one per rank
  std::string test_fault;
  FaultPhase hook = "bootstrap.mesh";
  // False where something else tells the peers of a failure: the rendezvous, which they watch.
  bool tell_peers = true;
};

// result[k] is the stream to rank k; the own entry is empty.
using MeshStreams = std::vector<std::optional<Stream>>;
Result<MeshStreams> build_mesh(const MeshArgs& args, std::vector<Listener> listeners,
                               const Limit& limit, MeshWatch* watch);

}  // namespace fccl
