// Fuzzes the grammar of FCCL_SOCKET_IFNAME over a fixed list of interfaces: it yields a subset, or
// an error that names the variable.
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

#include "bootstrap/interfaces.h"

using namespace fccl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::vector<Interface> interfaces;
  for (const char* name : {"lo", "eth0", "eth1", "eth10", "ib0", "docker0", "veth7"}) {
    Interface interface;
    interface.name = name;
    interface.address.family = interfaces.size() % 2 == 0 ? AF_INET : AF_INET6;
    interface.address.bytes[0] = static_cast<uint8_t>(interfaces.size() + 1);
    interface.loopback = interfaces.empty();
    interfaces.push_back(interface);
  }
  const char* const families[] = {"", "AF_INET", "AF_INET6"};
  const std::string ifname(reinterpret_cast<const char*>(data + 1), size - 1);
  Result<std::vector<Address>> chosen = select_addresses(interfaces, ifname, families[data[0] % 3]);
  const bool good = chosen.ok() ? chosen->size() <= interfaces.size()
                                : chosen.status().text().find("FCCL_SOCKET_") == 0;
  if (!good) {
    std::fprintf(stderr, "a wrong answer to an interface list\n");
    std::abort();
  }
  return 0;
}
