#include "bootstrap/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>

namespace fccl {
namespace {

struct Filter {
  bool exclude = false;
  bool exact = false;
  std::vector<std::string> names;
  bool selects(const std::string& name) const {
    bool listed = false;
    for (const std::string& entry : names)
      listed = listed || (exact ? name == entry : name.compare(0, entry.size(), entry) == 0);
    return listed != exclude;
  }
};

Result<Filter> parse_filter(const std::string& text) {
  Filter filter;
  size_t start = 0;
  if (start < text.size() && text[start] == '^') filter.exclude = true, start++;
  if (start < text.size() && text[start] == '=') filter.exact = true, start++;
  while (start <= text.size()) {
    size_t end = text.find(',', start);
    if (end == std::string::npos) end = text.size();
    // NCCL allows name:port and ignores the port; so do we.
    std::string name = text.substr(start, end - start);
    name = name.substr(0, name.find(':'));
    if (name.empty() || name.find_first_of("^= ") != std::string::npos)
      return error(Code::InvalidArgument,
                   "FCCL_SOCKET_IFNAME=%s: expected a list like eth,ib (prefixes), =eth0,eth1 "
                   "(exact names), ^docker,veth or ^=eth0 (all but these)",
                   text.c_str());
    filter.names.push_back(name);
    start = end + 1;
  }
  return filter;
}

std::string names_of(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& interface : interfaces) {
    const std::string entry =
        interface.name + (interface.address.family == AF_INET ? " (IPv4)" : " (IPv6)");
    if (text.find(entry) != std::string::npos) continue;
    text += (text.empty() ? "" : ", ") + entry;
  }
  return text.empty() ? "none" : text;
}

bool begins_with(const std::string& name, const char* prefix) {
  return name.rfind(prefix, 0) == 0;
}

// Smaller is better. Link-local IPv6 is last because its scope means nothing on another host.
int preference(const Interface& interface) {
  int score = begins_with(interface.name, "ib") ? 0 : begins_with(interface.name, "docker") ? 8 : 4;
  if (interface.loopback) score = 12;
  if (interface.address.family == AF_INET6) score += interface.address.is_link_local() ? 2 : 1;
  return score;
}

// Without a filter: only the best class that exists (others, else docker, else loopback).
void apply_default(std::vector<Interface>& interfaces) {
  const auto drop = [&](auto condition) {
    std::vector<Interface> kept;
    for (const Interface& interface : interfaces)
      if (!condition(interface)) kept.push_back(interface);
    if (!kept.empty()) interfaces = kept;
  };
  drop([](const Interface& interface) { return interface.loopback; });
  drop([](const Interface& interface) { return begins_with(interface.name, "docker"); });
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return errno_error("cannot list the network interfaces");
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Interface interface;
    interface.name = entry->ifa_name;
    interface.address = Address::from_sockaddr(entry->ifa_addr);
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    interfaces.push_back(interface);
  }
  freeifaddrs(first);
  return interfaces;
}

Result<std::vector<Address>> select_addresses(const std::vector<Interface>& interfaces,
                                              const std::string& ifname,
                                              const std::string& family) {
  if (!family.empty() && family != "AF_INET" && family != "AF_INET6")
    return error(Code::InvalidArgument,
                 "FCCL_SOCKET_FAMILY=%s: expected AF_INET or AF_INET6",
                 family.c_str());
  std::vector<Interface> chosen = interfaces;
  if (!ifname.empty()) {
    FCCL_TRY_ASSIGN(filter, parse_filter(ifname));
    std::erase_if(chosen, [&](const Interface& i) { return !filter.selects(i.name); });
    if (chosen.empty() && !filter.exclude)
      return error(Code::InvalidArgument,
                   "FCCL_SOCKET_IFNAME=%s selects no interface that is up; there are: %s",
                   ifname.c_str(),
                   names_of(interfaces).c_str());
  }
  if (!family.empty() && !chosen.empty()) {
    const int wanted = family == "AF_INET" ? AF_INET : AF_INET6;
    const std::string before = names_of(chosen);
    std::erase_if(chosen, [&](const Interface& i) { return i.address.family != wanted; });
    if (chosen.empty())
      return error(Code::InvalidArgument,
                   "FCCL_SOCKET_FAMILY=%s, but no interface has such an address; there are: %s",
                   family.c_str(),
                   before.c_str());
  }
  if (ifname.empty()) apply_default(chosen);
  std::stable_sort(chosen.begin(), chosen.end(), [](const Interface& a, const Interface& b) {
    return preference(a) < preference(b);
  });
  std::vector<Address> addresses;
  for (const Interface& interface : chosen) {
    if (addresses.size() == kMaxAddresses) break;
    // A link-local address adds nothing beside a routable one of the same interface.
    bool covered = false;
    for (const Interface& other : chosen)
      covered =
          covered || (interface.address.family == AF_INET6 && interface.address.is_link_local() &&
                      other.name == interface.name && !other.address.is_link_local());
    if (!covered) addresses.push_back(interface.address);
  }
  return addresses;
}

Result<std::vector<Address>> local_addresses(const Config& config) {
  FCCL_TRY_ASSIGN(interfaces, list_interfaces());
  return select_addresses(interfaces, config.socket_ifname, config.socket_family);
}

}  // namespace fccl
