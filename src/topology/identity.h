// Who this host and this process are. A host is its boot id: a host name or a machine id may be
// equal on many machines or differ between two containers of one. FCCL_HOSTID makes one machine act
// as several; two machines with one FCCL_HOSTID stay two, because boot ids are compared as well.
#pragma once
#include <cstdint>
#include <string>

namespace fccl {

struct HostIdentity {
  std::string host_name, boot_id;  // boot_id empty: the kernel does not tell
  uint64_t host_id = 0;  // never 0
  uint64_t boot_id_hash = 0;  // never 0
};

HostIdentity host_identity(const std::string& hostid_setting);
// The same from given texts; `boot_id` empty: the machine id and host name stand for it.
HostIdentity host_identity_of(const std::string& hostid_setting, const std::string& host_name,
                              const std::string& boot_id, const std::string& machine_id);
uint64_t hash_text(const std::string& text);  // never 0

}  // namespace fccl
