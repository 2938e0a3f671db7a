// The 128 bytes of a unique id: what goes in comes out, what is damaged is refused, no two are
// alike.
#include "bootstrap/unique_id.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

Address address_of(int family, uint8_t last, uint16_t port, uint32_t scope = 0) {
  Address address;
  address.family = family;
  address.bytes[0] = family == AF_INET ? 10 : 0xfd;
  address.bytes[family == AF_INET ? 3 : 15] = last;
  address.port = port;
  address.scope = scope;
  return address;
}

UniqueId sample_id() {
  UniqueId id;
  id.secret = *random_secret();
  id.creator_pid = 4711;
  id.addresses = {
      address_of(AF_INET, 1, 4000), address_of(AF_INET6, 2, 65535), address_of(AF_INET6, 3, 1, 7)};
  return id;
}

}  // namespace

TEST_CASE("a unique id survives encoding") {
  const UniqueId id = sample_id();
  uint8_t bytes[kUniqueIdBytes];
  REQUIRE(encode_unique_id(id, bytes).ok());
  Result<UniqueId> decoded = decode_unique_id(bytes);
  REQUIRE(decoded.ok());
  CHECK(decoded->secret.bytes == id.secret.bytes);
  CHECK(decoded->creator_pid == id.creator_pid);
  CHECK(decoded->addresses == id.addresses);
  CHECK_FALSE(decoded->fixed);
}

TEST_CASE("addresses that do not fit into a unique id are left out, the last first") {
  UniqueId id = sample_id();
  id.addresses.clear();
  for (uint8_t i = 0; i < 8; i++) id.addresses.push_back(address_of(AF_INET6, i, 9));
  uint8_t bytes[kUniqueIdBytes];
  REQUIRE(encode_unique_id(id, bytes).ok());
  Result<UniqueId> decoded = decode_unique_id(bytes);
  REQUIRE(decoded.ok());
  REQUIRE(decoded->addresses.size() == 3);
  CHECK(decoded->addresses[2] == id.addresses[2]);
}

TEST_CASE("every flipped bit of a unique id is noticed") {
  uint8_t bytes[kUniqueIdBytes];
  REQUIRE(encode_unique_id(sample_id(), bytes).ok());
  for (size_t bit = 0; bit < kUniqueIdBytes * 8; bit++) {
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ (1 << bit % 8));
    const Status status = decode_unique_id(bytes).status();
    INFO("bit " << bit);
    REQUIRE_FALSE(status.ok());
    REQUIRE((status.code() == Code::InvalidArgument || status.code() == Code::VersionMismatch));
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ (1 << bit % 8));
  }
  REQUIRE(decode_unique_id(bytes).ok());
}

TEST_CASE("a unique id of zeros or of noise is refused with a reason") {
  uint8_t bytes[kUniqueIdBytes] = {};
  const Status zeros = decode_unique_id(bytes).status();
  CHECK(zeros.code() == Code::InvalidArgument);
  CHECK(contains(zeros.text(), "zero"));
  REQUIRE(random_bytes(bytes, sizeof bytes).ok());
  CHECK(decode_unique_id(bytes).status().code() == Code::InvalidArgument);
}

TEST_CASE("B13 no two of 100000 secrets are alike, in the parent and its forked child") {
  REQUIRE(start_cryptography().ok());
  constexpr size_t kEach = 50000;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // The same code from the same state as the parent's: only the kernel can make a difference.
    for (size_t i = 0; i < kEach; i++) {
      const Secret secret = *random_secret();
      if (write(ends[1], secret.bytes.data(), kSecretBytes) != kSecretBytes) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::set<std::string> seen;
  const auto add = [&](const uint8_t* data) {
    seen.insert(std::string(reinterpret_cast<const char*>(data), kSecretBytes));
  };
  for (size_t i = 0; i < kEach; i++) add((*random_secret()).bytes.data());
  std::vector<uint8_t> received;
  uint8_t buffer[65536];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    received.insert(received.end(), buffer, buffer + got);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(received.size() == kEach * kSecretBytes);
  for (size_t i = 0; i < kEach; i++) add(received.data() + i * kSecretBytes);
  CHECK(seen.size() == 2 * kEach);
}

TEST_CASE("addresses are resolved in both families and refused with the expected form") {
  Result<std::vector<Address>> v4 = resolve_address("127.0.0.1:4000");
  REQUIRE(v4.ok());
  REQUIRE(v4->size() == 1);
  CHECK((*v4)[0].text() == "127.0.0.1:4000");
  Result<std::vector<Address>> v6 = resolve_address("[::1]:4000");
  REQUIRE(v6.ok());
  CHECK((*v6)[0].text() == "[::1]:4000");
  CHECK((*v6)[0].is_loopback());
  for (const char* bad : {"",
                          ":",
                          "host",
                          "host:",
                          "host:0",
                          "host:65536",
                          "host:1x",
                          "::1:4000",
                          "[::1]",
                          "[::1]4000",
                          "[::1",
                          ":4000"}) {
    INFO(bad);
    CHECK(resolve_address(bad).status().code() == Code::InvalidArgument);
  }
}
