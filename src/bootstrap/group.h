// Group: the ranks of one communicator, joined by a full mesh of authenticated, encrypted control
// streams. The communicator makes one per init or split, exchanges small blobs, votes and
// descriptors through it, and keeps it open: a hang-up of a stream is how the death of a rank is
// seen.
//
// One thread per group reads all streams. Any thread may call any function, but only one at a time
// may be in an exchange (allgather, barrier, vote, exchange_fds, split): a second one gets Busy.
// All ranks make the same exchanges in the same order with the same phase names; a rank that failed
// locally still takes part (by vote, or by handing its error to the exchange), so nobody is left
// waiting. Invariant: a wait ends with the peer's message, with an error that names the peer (it
// died, left or failed), at the deadline, or within 50 ms of an abort.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/deadline.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "bootstrap/unique_id.h"
#include "device/layout/limits.h"

namespace fccl {

constexpr size_t kMaxBlobBytes = size_t{1} << 20;

struct JoinArgs {
  const uint8_t* unique_id = nullptr;  // kUniqueIdBytes
  int rank = -1;
  int ranks = 0;
  uint32_t library_version = 0;  // major * 10000 + minor * 100 + patch; equal on all ranks
  const Config* config = nullptr;  // read during the call only
};

using AllgatherFunction = int (*)(void* context, const void* send, void* recv,
                                  size_t bytes_per_rank);

struct AllgatherJoinArgs {
  AllgatherFunction allgather = nullptr;
  void* context = nullptr;
  int rank = -1;
  int ranks = 0;
  uint32_t library_version = 0;
  const Config* config = nullptr;
};

enum class PeerEvent {
  Died,  // its stream ended without a bye
  Failed,  // it told us by broadcast_failure that it failed or was aborted
  Left,  // it said bye
};
using PeerEventFunction = std::function<void(int rank, PeerEvent event, const std::string& text)>;

class Group {
 public:
  // Rendezvous by unique id. On error every rank that takes part gets the same code and text.
  static Result<std::shared_ptr<Group>> join(const JoinArgs& args, const Limit& limit);
  // The same mesh from the caller's own allgather: exactly kAllgatherCalls calls, whatever fails.
  static constexpr int kAllgatherCalls = 2;
  static Result<std::shared_ptr<Group>> join_allgather(const AllgatherJoinArgs& args,
                                                       const Limit& limit);
  // Collective over this group: ranks of one color form a new, independent group, ordered by key,
  // then by old rank. A negative color gets a null pointer.
  Result<std::shared_ptr<Group>> split(int color, int key, const Limit& limit);

  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const;
  int ranks() const;
  bool owned_by_this_process() const;  // false in a forked child, which may only drop it
  bool same_host_socket(
      int peer) const;  // a unix stream: descriptors can be passed; true for rank()
  uint64_t host_token(int peer) const;  // equal for ranks of one host (boot id and FCCL_HOSTID)
  int64_t process_id(int peer) const;
  std::string describe(
      int peer) const;  // "rank 2 (pid 1234 on host X)", the same text on all ranks

  // all[k] is rank k's blob; sizes may differ, each at most kMaxBlobBytes. `mine` may carry a local
  // failure in place of the blob: then all ranks return it as vote() would.
  Status allgather(const void* blob, size_t bytes, std::vector<std::vector<uint8_t>>& all,
                   const Limit& limit, const char* phase);
  Status allgather(const Status& mine, const void* blob, size_t bytes,
                   std::vector<std::vector<uint8_t>>& all, const Limit& limit, const char* phase);
  Status barrier(const Limit& limit, const char* phase);
  // The same answer on all ranks: ok if all are ok, else the error of the lowest failing rank with
  // its code kept and the text "rank K: <text>".
  Status vote(const Status& mine, const Limit& limit, const char* phase);
  // One descriptor (or -1) to every peer with a unix stream; it stays the caller's. result[k] is
  // invalid for the own rank, for peers on other hosts and where the peer gave none. Ends in a
  // vote.
  Result<std::vector<UniqueFd>> exchange_fds(int mine, const Limit& limit, const char* phase);

  // Point to point, in order per (peer, tag). send() only queues; it waits if 4 MiB are queued.
  Status send(int peer, uint32_t tag, const void* data, size_t bytes, const Limit& limit);
  Result<std::vector<uint8_t>> receive(int peer, uint32_t tag, const Limit& limit,
                                       const char* phase);

  // Called on the reader thread (or, for events that came before, on the thread that sets it), each
  // event once. It must not call leave() or drop the last reference. An empty function ends the
  // calls: on return none is running, unless this is called from within one.
  void set_event_function(PeerEventFunction function);
  // Tells all peers that this rank failed or was aborted; never waits. Their waits on this group
  // end with "rank K: <text>". Only the first call has an effect.
  void broadcast_failure(const Status& status);
  // ok while no peer has died or failed.
  Status health() const;
  // Says bye to all peers, so that the end of the streams is not taken for a death. Waits only
  // until the bytes are handed to the kernel. No exchange may follow.
  Status leave(const Limit& limit);

 private:
  struct Impl;
  explicit Group(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fccl
