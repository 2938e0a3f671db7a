// B02, B04, B05: which interfaces and addresses the bootstrap takes.
#include "bootstrap/interfaces.h"

#include <arpa/inet.h>

#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

Interface interface_of(const char* name, const char* address, bool loopback = false) {
  Interface made;
  made.name = name;
  made.address.family = std::string(address).find(':') == std::string::npos ? AF_INET : AF_INET6;
  REQUIRE(inet_pton(made.address.family, address, made.address.bytes.data()) == 1);
  made.loopback = loopback;
  return made;
}

std::vector<Interface> host() {
  return {interface_of("lo", "127.0.0.1", true),
          interface_of("lo", "::1", true),
          interface_of("docker0", "172.17.0.1"),
          interface_of("eth0", "10.0.0.1"),
          interface_of("eth0", "fd00::1"),
          interface_of("eth0", "fe80::1"),
          interface_of("eth1", "10.1.0.1"),
          interface_of("eth10", "10.10.0.1"),
          interface_of("ib0", "10.2.0.1"),
          interface_of("veth7", "fe80::7")};
}

std::string chosen(const std::vector<Interface>& interfaces, const char* ifname,
                   const char* family = "") {
  Result<std::vector<Address>> addresses = select_addresses(interfaces, ifname, family);
  if (!addresses.ok()) return code_name(addresses.status().code());
  std::string text;
  for (Address& address : *addresses) {
    char name[INET6_ADDRSTRLEN];
    inet_ntop(address.family, address.bytes.data(), name, sizeof name);
    text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text;
}

}  // namespace

TEST_CASE("B02 the grammar of FCCL_SOCKET_IFNAME") {
  CHECK(chosen(host(), "eth1") == "10.1.0.1 10.10.0.1");
  CHECK(chosen(host(), "=eth1") == "10.1.0.1");
  CHECK(chosen(host(), "=eth1,ib0") == "10.2.0.1 10.1.0.1");
  CHECK(chosen(host(), "eth1:2") == "10.1.0.1 10.10.0.1");
  CHECK(chosen(host(), "lo") == "127.0.0.1 ::1");
  CHECK(chosen(host(), "^lo,docker,eth,veth") == "10.2.0.1");
  CHECK(chosen(host(), "^=lo,docker0,eth1,ib0,veth7,eth0") == "10.10.0.1");
  CHECK(chosen(host(), "^lo,docker,eth,veth,ib").empty());
}

TEST_CASE("B02 a name that selects nothing is an error with the names there are") {
  const Status status = select_addresses(host(), "nosuch0", "").status();
  CHECK(status.code() == Code::InvalidArgument);
  CHECK(contains(status.text(), "FCCL_SOCKET_IFNAME=nosuch0"));
  CHECK(contains(status.text(), "eth10 (IPv4)"));
  CHECK(chosen(host(), "=eth") == "fcclInvalidArgument");
}

TEST_CASE("B05 a wrong list is an error that shows the grammar") {
  for (const char* bad : {",", "eth0,", "eth0,,eth1", "^", "=", "^=", "=^eth0", "eth0, eth1"}) {
    INFO(bad);
    const Status status = select_addresses(host(), bad, "").status();
    CHECK(status.code() == Code::InvalidArgument);
    CHECK(contains(status.text(), "=eth0,eth1"));
  }
}

TEST_CASE("without a setting loopback and docker are the last resort") {
  CHECK(chosen(host(), "") == "10.2.0.1 10.0.0.1 10.1.0.1 10.10.0.1 fd00::1 fe80::7");
  CHECK(chosen({host()[0], host()[1], host()[2]}, "") == "172.17.0.1");
  CHECK(chosen({host()[0], host()[1]}, "") == "127.0.0.1 ::1");
  CHECK(chosen({}, "").empty());
}

TEST_CASE("B04 a forced family that no interface has is an error") {
  CHECK(chosen(host(), "=eth0", "AF_INET6") == "fd00::1");
  CHECK(chosen(host(), "=eth0", "AF_INET") == "10.0.0.1");
  CHECK(chosen(host(), "veth", "") == "fe80::7");
  const Status status = select_addresses({interface_of("eth0", "fd00::1")}, "", "AF_INET").status();
  CHECK(status.code() == Code::InvalidArgument);
  CHECK(contains(status.text(), "FCCL_SOCKET_FAMILY=AF_INET"));
  CHECK(contains(status.text(), "eth0 (IPv6)"));
  CHECK(chosen(host(), "", "inet") == "fcclInvalidArgument");
}

TEST_CASE("at most kMaxAddresses are told to peers") {
  std::vector<Interface> many;
  for (int i = 0; i < 40; i++)
    many.push_back(interface_of("eth0", ("10.0.0." + std::to_string(i + 1)).c_str()));
  Result<std::vector<Address>> addresses = select_addresses(many, "", "");
  REQUIRE(addresses.ok());
  CHECK(addresses->size() == kMaxAddresses);
}
