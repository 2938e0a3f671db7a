// Unique id: 128 bytes that tell where the rendezvous of one communicator listens and hold the
// secret by which its ranks know each other. Whoever has it can join: it is a secret, and is never
// logged.
//
//   offset  bytes  content
//        0      6  "fcclID"
//        6      1  format version (1)
//        7      1  flags: bit 0 = the address is fixed (FCCL_COMM_ID), rank 0 opens the rendezvous
//        8     32  secret from the kernel's random generator (fixed id: hash of the secret file)
//       40      4  process id of the creator, for texts only (fixed id: 0)
//       44      1  number of addresses
//       45     75  addresses, packed: kind, port, address bytes, scope of a link-local one
//       (address.h)
//      120      8  keyed hash of the above, so that a damaged id is refused at once
//
// Invariant: `decode_unique_id` accepts exactly what `encode_unique_id` makes, whatever bytes it
// gets.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/address.h"
#include "bootstrap/secret.h"

namespace fccl {

constexpr size_t kUniqueIdBytes = 128;

struct UniqueId {
  Secret secret;
  bool fixed = false;
  uint32_t creator_pid = 0;
  std::vector<Address> addresses;
};

// Makes a new id and starts its rendezvous service, a thread of this process. It ends with the init
// that it serves, or after config.init_timeout_ms if no rank comes. With FCCL_COMM_ID set
// (config.comm_id) no service is started: rank 0 opens it when it joins.
Status create_unique_id(const Config& config, uint8_t out[kUniqueIdBytes]);

// Addresses that do not fit are left out, the last ones first.
Status encode_unique_id(const UniqueId& id, uint8_t out[kUniqueIdBytes]);
// InvalidArgument if the bytes are no unique id of this format; all zeros have a text of their own.
Result<UniqueId> decode_unique_id(const uint8_t bytes[kUniqueIdBytes]);

}  // namespace fccl
