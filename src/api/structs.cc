#include "api/structs.h"

namespace fccl {

// All structs are of version 1, so their size then is their size now; a later version keeps a table
// of the sizes of the earlier ones here.
Status check_struct(const char* name, const void* given, size_t known_size, uint32_t magic) {
  struct Head {
    size_t size;
    uint32_t magic;
    uint32_t version;
  } head;
  std::memcpy(&head, given, sizeof head);
  if (head.magic != magic || head.version == 0)
    return error(Code::InvalidArgument,
                 "%s has a wrong magic or version; begin with its INITIALIZER macro",
                 name);
  if (head.size < known_size)
    return error(Code::InvalidArgument,
                 "%s says that it has %zu bytes; version 1 has %zu",
                 name,
                 head.size,
                 known_size);
  constexpr size_t kMostBytes = 1 << 16;
  if (head.size > kMostBytes)
    return error(Code::InvalidArgument,
                 "%s says that it has %zu bytes; at most 65536 are believed",
                 name,
                 head.size);
  for (size_t at = known_size; at < head.size; ++at)
    if (static_cast<const unsigned char*>(given)[at] != 0)
      return error(Code::InvalidArgument,
                   "%s sets a field at offset %zu that this version of fccl does not know",
                   name,
                   at);
  return {};
}

}  // namespace fccl
