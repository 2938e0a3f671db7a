// Interfaces: which local addresses the bootstrap listens on and tells to peers. The grammar of
// FCCL_SOCKET_IFNAME is NCCL's:
//   eth,ib        interfaces whose name begins with one of these
//   =eth0,eth1    exactly these
//   ^docker,veth  all but those that begin with one of these;  ^=eth0 all but exactly these
// Unset: all but loopback and docker bridges, "ib" first; those two only where nothing else is.
// The own host name is never resolved. A host with no interface at all is legal: its ranks meet
// over unix sockets.
#pragma once
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/address.h"

namespace fccl {

constexpr size_t kMaxAddresses = 8;

struct Interface {
  std::string name;
  Address address;
  bool loopback = false;
};

// The addresses of all interfaces that are up.
Result<std::vector<Interface>> list_interfaces();

// A pure function of the list. InvalidArgument names the variable, its value and what there is.
Result<std::vector<Address>> select_addresses(const std::vector<Interface>& interfaces,
                                              const std::string& ifname, const std::string& family);

Result<std::vector<Address>> local_addresses(const Config& config);

}  // namespace fccl
