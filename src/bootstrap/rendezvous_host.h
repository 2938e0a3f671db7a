// The side of the rendezvous that opens it: fcclGetUniqueId (create_unique_id, declared in
// unique_id.h), rank 0 of an FCCL_COMM_ID, and the record of the ids that this process has opened,
// by which a second use of an id is told apart from a failure.
#pragma once
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/socket.h"
#include "bootstrap/unique_id.h"

namespace fccl {

// The name of the rendezvous' unix socket: a keyed hash of the secret, so only holders can know it.
Result<std::string> rendezvous_socket_name(const UniqueId& id, const std::string& socket_dir);

// Where to look for the rendezvous of `id`: the unix socket, then its addresses. A fixed id's name
// is resolved here, because each host may know it by another address.
Result<std::vector<Endpoint>> rendezvous_endpoints(const UniqueId& id, const Config& config);

// Rank 0 of a fixed id: opens the port. SystemError at once if it is in use by another process.
Status open_fixed_rendezvous(const UniqueId& id, const Config& config, int64_t idle_ms);

// InvalidUsage if this process opened the id and its rendezvous is over.
Status check_not_used(const UniqueId& id);

}  // namespace fccl
