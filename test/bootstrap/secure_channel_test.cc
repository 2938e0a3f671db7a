// The handshake and the frames, without sockets: what an attacker on the wire can and cannot do.
#include "bootstrap/secure_channel.h"

#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

constexpr size_t kLimit = 1000;

SecureChannel make(Side side, const Secret& secret, int rank, int target = -1,
                   Purpose purpose = Purpose::Mesh) {
  Hello hello;
  hello.purpose = purpose;
  hello.rank = rank;
  hello.ranks = 4;
  hello.library_version = 203;
  hello.target = target;
  Result<SecureChannel> channel = SecureChannel::create(side, secret, hello, kLimit);
  REQUIRE(channel.ok());
  return std::move(*channel);
}

std::vector<uint8_t> take_output(SecureChannel& channel) {
  std::vector<uint8_t> bytes = channel.output();
  channel.output().clear();
  return bytes;
}

Status feed(SecureChannel& channel, const std::vector<uint8_t>& bytes) {
  return channel.receive(bytes.data(), bytes.size());
}

struct Pair {
  Secret secret = *random_secret();
  SecureChannel client = make(Side::Client, secret, 3, 1);
  SecureChannel server = make(Side::Server, secret, 1);
  void connect() {
    REQUIRE(feed(server, take_output(client)).ok());
    REQUIRE(feed(client, take_output(server)).ok());
    REQUIRE(client.established());
    REQUIRE(server.established());
    REQUIRE_FALSE(server.confirmed());
  }
};

std::vector<uint8_t> text_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

Status say(SecureChannel& channel, const std::string& text) {
  return channel.send(text.data(), text.size());
}

std::string heard(SecureChannel& channel) {
  std::vector<uint8_t> message;
  return channel.next(message) ? std::string(message.begin(), message.end()) : "(nothing)";
}

}  // namespace

TEST_CASE("two ends with one secret talk both ways, whatever the cuts") {
  for (size_t cut : {size_t{1}, size_t{7}, size_t{128}, size_t{100000}}) {
    Pair pair;
    pair.connect();
    REQUIRE(say(pair.client, "hello").ok());
    REQUIRE(say(pair.client, "").ok());
    REQUIRE(say(pair.client, std::string(kLimit, 'x')).ok());
    REQUIRE(say(pair.server, "welcome").ok());
    const std::vector<uint8_t> up = take_output(pair.client);
    for (size_t start = 0; start < up.size(); start += cut)
      REQUIRE(pair.server.receive(up.data() + start, std::min(cut, up.size() - start)).ok());
    REQUIRE(feed(pair.client, take_output(pair.server)).ok());
    CHECK(pair.server.confirmed());
    CHECK(heard(pair.server) == "hello");
    CHECK(heard(pair.server) == "");
    CHECK(heard(pair.server) == std::string(kLimit, 'x'));
    CHECK(heard(pair.client) == "welcome");
    CHECK(pair.server.peer().rank == 3);
    CHECK(pair.server.peer().ranks == 4);
    CHECK(pair.client.peer().rank == 1);
    CHECK(pair.client.peer().library_version == 203);
  }
}

TEST_CASE("B13 another secret, purpose or target gets no answer at all") {
  Pair pair;
  SecureChannel strangers[] = {make(Side::Client, *random_secret(), 3, 1),
                               make(Side::Client, pair.secret, 3, 1, Purpose::Rendezvous),
                               make(Side::Client, pair.secret, 3, 2)};
  for (SecureChannel& stranger : strangers) {
    SecureChannel server = make(Side::Server, pair.secret, 1);
    CHECK_FALSE(feed(server, take_output(stranger)).ok());
    CHECK(server.output().empty());
    CHECK_FALSE(server.established());
  }
}

TEST_CASE("every changed byte of a hello is refused without an answer") {
  Pair pair;
  const std::vector<uint8_t> hello = take_output(pair.client);
  REQUIRE(hello.size() == kHelloBytes);
  for (size_t i = 0; i < hello.size(); i++) {
    SecureChannel server = make(Side::Server, pair.secret, 1);
    std::vector<uint8_t> changed = hello;
    changed[i] ^= 0x10;
    INFO("byte " << i);
    CHECK_FALSE(feed(server, changed).ok());
    CHECK(server.output().empty());
  }
}

TEST_CASE("garbage is refused at its first byte") {
  Pair pair;
  CHECK_FALSE(feed(pair.server, text_bytes("GET / HTTP/1.1")).ok());
  SecureChannel other = make(Side::Server, pair.secret, 1);
  CHECK(feed(other, text_bytes("fc")).ok());
  CHECK_FALSE(feed(other, text_bytes("x")).ok());
}

TEST_CASE("a replayed hello and first frame do not make a rank") {
  Pair pair;
  const std::vector<uint8_t> hello = take_output(pair.client);
  REQUIRE(feed(pair.server, hello).ok());
  REQUIRE(feed(pair.client, take_output(pair.server)).ok());
  REQUIRE(say(pair.client, "I am rank 3").ok());
  const std::vector<uint8_t> first = take_output(pair.client);
  REQUIRE(feed(pair.server, first).ok());
  REQUIRE(pair.server.confirmed());

  SecureChannel again = make(Side::Server, pair.secret, 1);
  REQUIRE(feed(again, hello).ok());
  CHECK_FALSE(feed(again, first).ok());
  CHECK_FALSE(again.confirmed());
  CHECK(heard(again) == "(nothing)");
}

TEST_CASE("a client's own hello sent back to it, or an old answer, is refused") {
  Pair pair;
  const std::vector<uint8_t> hello = take_output(pair.client);
  SecureChannel reflected = make(Side::Client, pair.secret, 3, 1);
  const std::vector<uint8_t> own = take_output(reflected);
  CHECK_FALSE(feed(reflected, own).ok());

  REQUIRE(feed(pair.server, hello).ok());
  const std::vector<uint8_t> answer = take_output(pair.server);
  SecureChannel later = make(Side::Client, pair.secret, 3, 1);
  CHECK_FALSE(feed(later, answer).ok());
  CHECK(feed(pair.client, answer).ok());
}

TEST_CASE("frames cannot be changed, repeated, swapped, dropped or reflected") {
  enum class Attack { None, Change, Repeat, Swap, Drop, Reflect };
  for (Attack attack : {Attack::None,
                        Attack::Change,
                        Attack::Repeat,
                        Attack::Swap,
                        Attack::Drop,
                        Attack::Reflect}) {
    Pair pair;
    pair.connect();
    std::vector<uint8_t> header =
        take_output(pair.client);  // the stream header went with the hello
    REQUIRE(say(pair.client, "one").ok());
    std::vector<uint8_t> one = take_output(pair.client);
    REQUIRE(say(pair.client, "two").ok());
    std::vector<uint8_t> two = take_output(pair.client);
    REQUIRE(feed(pair.server, header).ok());
    Status status;
    SecureChannel& target = attack == Attack::Reflect ? pair.client : pair.server;
    if (attack == Attack::Change) one[one.size() / 2] ^= 1;
    if (attack == Attack::Swap) std::swap(one, two);
    if (attack != Attack::Drop) status = feed(target, one);
    if (status.ok()) status = feed(target, attack == Attack::Repeat ? one : two);
    INFO("attack " << static_cast<int>(attack));
    CHECK(status.ok() == (attack == Attack::None));
    if (attack == Attack::None) continue;
    CHECK(heard(target) != "two");
    // It stays failed, whatever comes.
    CHECK_FALSE(feed(target, two).ok());
    CHECK_FALSE(say(target, "x").ok());
  }
}

TEST_CASE("a frame above the limit is refused by its length, before its bytes come") {
  Pair pair;
  pair.connect();
  REQUIRE(feed(pair.server, take_output(pair.client)).ok());
  for (uint32_t length : {0u, 16u, static_cast<uint32_t>(kLimit) + 18u, 0xffffffffu}) {
    Pair fresh;
    fresh.connect();
    std::vector<uint8_t> bytes = take_output(fresh.client);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(length >> shift));
    INFO("length " << length);
    CHECK_FALSE(feed(fresh.server, bytes).ok());
  }
}

TEST_CASE("a cut stream yields only whole frames") {
  Pair pair;
  pair.connect();
  REQUIRE(say(pair.client, "whole").ok());
  REQUIRE(say(pair.client, "cut off").ok());
  std::vector<uint8_t> bytes = take_output(pair.client);
  bytes.pop_back();
  REQUIRE(feed(pair.server, bytes).ok());
  CHECK(heard(pair.server) == "whole");
  CHECK(heard(pair.server) == "(nothing)");
}
