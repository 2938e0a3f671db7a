// Address: one TCP address with its port, IPv4 or IPv6, as it travels in unique ids and hellos.
// Packed form: kind (4, 6, or 7 for IPv6 with a scope), port (2 bytes), 4 or 16 address bytes, and
// for kind 7 the scope id (4 bytes), all little-endian except the address bytes themselves.
#pragma once
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace fccl {

struct Address {
  int family = 0;  // AF_INET or AF_INET6
  std::array<uint8_t, 16> bytes{};  // IPv4 uses the first 4
  uint16_t port = 0;
  uint32_t scope = 0;  // interface index of a link-local IPv6 address

  bool operator==(const Address&) const = default;
  bool is_loopback() const;
  bool is_link_local() const;
  std::string text() const;  // 192.0.2.1:4000, [fe80::1%2]:4000
  size_t packed_bytes() const;
  void pack(std::vector<uint8_t>& out) const;
  socklen_t to_sockaddr(sockaddr_storage& out) const;
  static Address from_sockaddr(const sockaddr* in);
};

// Reads `count` packed addresses from `data`; advances `offset`. False if they do not fit or are of
// no known kind, or an address is one that nobody can connect to (port 0).
bool unpack_addresses(const uint8_t* data, size_t bytes, size_t& offset, size_t count,
                      std::vector<Address>& out);

// host:port, [v6]:port or name:port; names are resolved, both families.
Result<std::vector<Address>> resolve_address(const std::string& host_and_port);

}  // namespace fccl
