// Fuzzes handshake and frames: two honest ends talk, and the input is a script of what an attacker
// on the wire does. Each step is two bytes, what and how much:
//   0, 1  deliver some bytes of the client's (server's) output to the other side
//   2, 3  the same, with one bit changed
//   4, 5  drop some bytes of the output
//   6     the client says something       7  the server says something
//   8, 9  insert the next bytes of the script into the stream to the server (client)
//   10    reflect some of the client's output to the client
// Whatever happens, an end hears a prefix of what the other one said, and a server is not confirmed
// by a client that has said nothing.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bootstrap/secure_channel.h"

using namespace fccl;

namespace {

constexpr size_t kFrameLimit = 600;

struct End {
  SecureChannel channel;
  bool broken = false;
  uint32_t said = 0;
  uint32_t heard = 0;
};

End make(Side side, const Secret& secret) {
  Hello hello;
  hello.purpose = Purpose::Mesh;
  hello.rank = side == Side::Client ? 2 : 1;
  hello.target = 1;
  hello.ranks = 4;
  Result<SecureChannel> channel = SecureChannel::create(side, secret, hello, kFrameLimit);
  if (!channel.ok()) std::abort();
  return {std::move(*channel)};
}

void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void say(End& end, uint8_t amount) {
  if (end.broken || !end.channel.established()) return;
  std::vector<uint8_t> message(4 + amount * 2, static_cast<uint8_t>(end.said));
  for (size_t i = 0; i < 4; i++) message[i] = static_cast<uint8_t>(end.said >> (8 * i));
  if (!end.channel.send(message.data(), message.size()).ok()) fail("cannot say anything");
  end.said++;
}

void hear(End& end, const End& other, const uint8_t* data, size_t size) {
  if (!end.channel.receive(data, size).ok()) end.broken = true;
  std::vector<uint8_t> message;
  while (end.channel.next(message)) {
    if (end.broken) fail("a message from a broken channel");
    if (message.size() < 4) fail("a message that nobody sent");
    const uint32_t number = static_cast<uint32_t>(message[0] | message[1] << 8 | message[2] << 16) |
                            static_cast<uint32_t>(message[3]) << 24;
    if (number != end.heard || number >= other.said) fail("a message out of order");
    end.heard++;
  }
  if (end.channel.confirmed() && other.said == 0) fail("confirmed by a peer that said nothing");
}

std::vector<uint8_t> take(End& end, uint8_t amount) {
  std::vector<uint8_t>& output = end.channel.output();
  const size_t count = std::min<size_t>(output.size(), amount * size_t{4} + 1);
  std::vector<uint8_t> bytes(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(count));
  output.erase(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(count));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Secret secret;
  secret.bytes.fill(7);
  End client = make(Side::Client, secret);
  End server = make(Side::Server, secret);
  for (size_t step = 0; step + 1 < size; step += 2) {
    const uint8_t what = data[step] % 11;
    const uint8_t amount = data[step + 1];
    End& from = what % 2 == 0 ? client : server;
    End& to = what % 2 == 0 ? server : client;
    if (what == 6 || what == 7) {
      say(from, amount);
    } else if (what == 8 || what == 9) {
      const size_t count = std::min<size_t>(amount, size - step - 2);
      hear(to, from, data + step + 2, count);
      step += count;
    } else {
      std::vector<uint8_t> bytes = take(from, amount);
      if ((what == 2 || what == 3) && !bytes.empty())
        bytes[amount % bytes.size()] ^= static_cast<uint8_t>(1 << amount % 8);
      if (what == 10)
        hear(client, server, bytes.data(), bytes.size());
      else if (what < 4)
        hear(to, from, bytes.data(), bytes.size());
    }
  }
  return 0;
}
