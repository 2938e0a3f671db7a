#include "bootstrap/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

namespace fccl {
namespace {

constexpr uint8_t kKindIpv4 = 4;
constexpr uint8_t kKindIpv6 = 6;
constexpr uint8_t kKindIpv6Scoped = 7;

size_t address_bytes(int family) {
  return family == AF_INET ? 4 : 16;
}

}  // namespace

bool Address::is_loopback() const {
  if (family == AF_INET) return bytes[0] == 127;
  for (size_t i = 0; i < 15; i++)
    if (bytes[i] != 0) return false;
  return bytes[15] == 1;
}

bool Address::is_link_local() const {
  if (family == AF_INET) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

std::string Address::text() const {
  char host[INET6_ADDRSTRLEN] = "?";
  inet_ntop(family, bytes.data(), host, sizeof host);
  std::string result = host;
  if (family == AF_INET6) {
    if (scope != 0) result += "%" + std::to_string(scope);
    result = "[" + result + "]";
  }
  return result + ":" + std::to_string(port);
}

size_t Address::packed_bytes() const {
  return 3 + address_bytes(family) + (family == AF_INET6 && scope != 0 ? 4 : 0);
}

void Address::pack(std::vector<uint8_t>& out) const {
  const bool scoped = family == AF_INET6 && scope != 0;
  out.push_back(family == AF_INET ? kKindIpv4 : scoped ? kKindIpv6Scoped : kKindIpv6);
  out.push_back(static_cast<uint8_t>(port & 0xff));
  out.push_back(static_cast<uint8_t>(port >> 8));
  for (size_t i = 0; i < address_bytes(family); i++) out.push_back(bytes[i]);
  if (!scoped) return;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(scope >> shift));
}

bool unpack_addresses(const uint8_t* data, size_t bytes, size_t& offset, size_t count,
                      std::vector<Address>& out) {
  for (size_t i = 0; i < count; i++) {
    if (offset >= bytes) return false;
    const uint8_t kind = data[offset];
    if (kind != kKindIpv4 && kind != kKindIpv6 && kind != kKindIpv6Scoped) return false;
    Address address;
    address.family = kind == kKindIpv4 ? AF_INET : AF_INET6;
    const size_t length = address_bytes(address.family);
    const size_t needed = 3 + length + (kind == kKindIpv6Scoped ? 4 : 0);
    if (bytes - offset < needed) return false;
    const uint8_t* cursor = data + offset;
    address.port = static_cast<uint16_t>(cursor[1] | cursor[2] << 8);
    std::memcpy(address.bytes.data(), cursor + 3, length);
    if (kind == kKindIpv6Scoped)
      for (int byte = 3; byte >= 0; byte--)
        address.scope = address.scope << 8 | cursor[3 + length + static_cast<size_t>(byte)];
    // Kind 7 with scope 0 would be packed as kind 6: one form per address.
    if (address.port == 0 || (kind == kKindIpv6Scoped && address.scope == 0)) return false;
    out.push_back(address);
    offset += needed;
  }
  return true;
}

socklen_t Address::to_sockaddr(sockaddr_storage& out) const {
  std::memset(&out, 0, sizeof out);
  if (family == AF_INET) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, bytes.data(), 4);
    std::memcpy(&out, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  std::memcpy(&in6.sin6_addr, bytes.data(), 16);
  in6.sin6_scope_id = scope;
  std::memcpy(&out, &in6, sizeof in6);
  return sizeof in6;
}

Address Address::from_sockaddr(const sockaddr* in) {
  Address address;
  address.family = in->sa_family;
  if (in->sa_family == AF_INET) {
    sockaddr_in in4;
    std::memcpy(&in4, in, sizeof in4);
    std::memcpy(address.bytes.data(), &in4.sin_addr, 4);
    address.port = ntohs(in4.sin_port);
  } else {
    sockaddr_in6 in6;
    std::memcpy(&in6, in, sizeof in6);
    std::memcpy(address.bytes.data(), &in6.sin6_addr, 16);
    address.port = ntohs(in6.sin6_port);
    // The kernel gives a scope for link-local addresses only; others must compare equal without
    // one.
    address.scope = in6.sin6_scope_id;
  }
  return address;
}

Result<std::vector<Address>> resolve_address(const std::string& host_and_port) {
  const char* const kForm = "expected host:port, 192.0.2.1:port or [2001:db8::1]:port";
  std::string host;
  size_t colon = host_and_port.rfind(':');
  if (!host_and_port.empty() && host_and_port[0] == '[') {
    const size_t close = host_and_port.find(']');
    if (close == std::string::npos || close + 1 != colon)
      return error(Code::InvalidArgument, "address \"%s\": %s", host_and_port.c_str(), kForm);
    host = host_and_port.substr(1, close - 1);
  } else if (colon != std::string::npos) {
    host = host_and_port.substr(0, colon);
  }
  if (host.empty() || colon == std::string::npos ||
      (host_and_port[0] != '[' && host.find(':') != std::string::npos))
    return error(Code::InvalidArgument, "address \"%s\": %s", host_and_port.c_str(), kForm);
  const std::string port_text = host_and_port.substr(colon + 1);
  char* end = nullptr;
  const long port = std::strtol(port_text.c_str(), &end, 10);
  if (port_text.empty() || *end != 0 || port < 1 || port > 65535)
    return error(Code::InvalidArgument,
                 "address \"%s\": the port must be 1 to 65535",
                 host_and_port.c_str());

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0)
    return error(Code::SystemError, "cannot resolve \"%s\": %s", host.c_str(), gai_strerror(code));
  std::vector<Address> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6) continue;
    Address address = Address::from_sockaddr(info->ai_addr);
    address.port = static_cast<uint16_t>(port);
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

}  // namespace fccl
