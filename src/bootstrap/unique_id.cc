#include "bootstrap/unique_id.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "bootstrap/wire.h"

namespace fccl {
namespace {

constexpr char kMagic[] = "fcclID";
constexpr size_t kMagicBytes = 6;
constexpr uint8_t kFormat = 1;
constexpr uint8_t kFlagFixed = 1;
constexpr size_t kAddressOffset = 45;
constexpr size_t kCheckOffset = 120;
constexpr size_t kCheckBytes = 8;

void check_bytes(const Secret& secret, const uint8_t* bytes, uint8_t out[kCheckBytes]) {
  uint8_t hash[16];
  keyed_hash(secret, "fccl unique id check", {{bytes, kCheckOffset}}, hash, sizeof hash);
  std::memcpy(out, hash, kCheckBytes);
}

Status not_an_id(const char* why) {
  return error(Code::InvalidArgument, "this is not a unique id of fccl: %s", why);
}

}  // namespace

Status encode_unique_id(const UniqueId& id, uint8_t out[kUniqueIdBytes]) {
  FCCL_TRY(start_cryptography());
  ByteWriter writer;
  writer.raw(kMagic, kMagicBytes);
  writer.u8(kFormat);
  writer.u8(id.fixed ? kFlagFixed : 0);
  writer.raw(id.secret.bytes.data(), kSecretBytes);
  writer.u32(id.creator_pid);
  std::vector<uint8_t> packed;
  uint8_t count = 0;
  for (const Address& address : id.addresses) {
    if (packed.size() + address.packed_bytes() > kCheckOffset - kAddressOffset) break;
    address.pack(packed);
    count++;
  }
  writer.u8(count);
  writer.raw(packed.data(), packed.size());
  std::memset(out, 0, kUniqueIdBytes);
  std::memcpy(out, writer.bytes().data(), writer.bytes().size());
  sodium_memzero(writer.bytes().data(), writer.bytes().size());
  check_bytes(id.secret, out, out + kCheckOffset);
  return {};
}

Result<UniqueId> decode_unique_id(const uint8_t bytes[kUniqueIdBytes]) {
  FCCL_TRY(start_cryptography());
  if (std::all_of(bytes, bytes + kUniqueIdBytes, [](uint8_t byte) { return byte == 0; }))
    return not_an_id("all bytes are zero; fcclGetUniqueId makes one, on one rank, for all");
  ByteReader reader(bytes, kUniqueIdBytes);
  char magic[kMagicBytes];
  reader.raw(magic, kMagicBytes);
  if (std::memcmp(magic, kMagic, kMagicBytes) != 0) return not_an_id("it does not begin as one");
  const int format = reader.u8();
  if (format != kFormat)
    return error(Code::VersionMismatch,
                 "unique id of format %d, this library knows format %d",
                 format,
                 kFormat);
  const uint8_t flags = reader.u8();
  UniqueId id;
  reader.raw(id.secret.bytes.data(), kSecretBytes);
  uint8_t check[kCheckBytes];
  check_bytes(id.secret, bytes, check);
  if (!equal_in_constant_time(check, bytes + kCheckOffset, kCheckBytes))
    return not_an_id("it is damaged; all 128 bytes must be passed on unchanged");
  id.fixed = (flags & kFlagFixed) != 0;
  id.creator_pid = reader.u32();
  const size_t count = reader.u8();
  size_t offset = kAddressOffset;
  if (!unpack_addresses(bytes, kCheckOffset, offset, count, id.addresses) ||
      (flags & ~kFlagFixed) != 0)
    return not_an_id("its addresses cannot be read");
  for (; offset < kCheckOffset; offset++)
    if (bytes[offset] != 0) return not_an_id("its addresses cannot be read");
  return id;
}

}  // namespace fccl
