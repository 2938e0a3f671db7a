// Fuzzes the decoders of everything that travels inside frames. The first byte chooses the decoder.
// What a decoder accepts must come out of another encode and decode as the same bytes.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bootstrap/messages.h"

using namespace fccl;

namespace {

template <class Decode>
void check(const std::vector<uint8_t>& bytes, Decode decode) {
  auto first = decode(bytes);
  if (!first.ok()) return;
  const std::vector<uint8_t> once = encode(*first);
  auto second = decode(once);
  if (second.ok() && encode(*second) == once) return;
  std::fprintf(stderr, "an accepted message does not survive another encoding\n");
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::vector<uint8_t> bytes(data + 1, data + size);
  switch (data[0] % 3) {
    case 0:
      check(bytes, decode_rendezvous_hello);
      break;
    case 1:
      check(bytes, decode_rendezvous_message);
      break;
    default:
      check(bytes, decode_frame);
      break;
  }
  return 0;
}
