// Fuzzes the parser of unique ids. The check at the end of an id would stop nearly every input, so
// by the first byte's choice it is set right, as by somebody who made the id on purpose.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bootstrap/unique_id.h"

using namespace fccl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  uint8_t bytes[kUniqueIdBytes] = {};
  std::memcpy(bytes, data + 1, size - 1 < kUniqueIdBytes ? size - 1 : kUniqueIdBytes);
  if ((data[0] & 1) != 0) {
    Secret secret;
    std::memcpy(secret.bytes.data(), bytes + 8, kSecretBytes);
    uint8_t hash[16];
    keyed_hash(secret, "fccl unique id check", {{bytes, 120}}, hash, sizeof hash);
    std::memcpy(bytes + 120, hash, 8);
  }
  Result<UniqueId> id = decode_unique_id(bytes);
  if (!id.ok()) return 0;
  uint8_t again[kUniqueIdBytes];
  const bool encoded = encode_unique_id(*id, again).ok();
  if (!encoded || std::memcmp(bytes, again, sizeof again) != 0) {
    std::fprintf(stderr, "an accepted id encodes to other bytes\n");
    std::abort();
  }
  return 0;
}
