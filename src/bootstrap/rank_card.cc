#include "bootstrap/rank_card.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/fault.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "bootstrap/interfaces.h"

namespace fccl {
namespace {

std::string host_name() {
  char name[kMaxHostBytes + 1] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

// The kernel draws it at every boot: equal within one host, containers included, and nowhere else.
std::string boot_id() {
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t got = file.valid() ? ::read(file.get(), text, sizeof text) : 0;
  if (got <= 0) return host_name();
  return std::string(text, static_cast<size_t>(got));
}

uint64_t host_token(const Config& config) {
  const std::string boot = boot_id();
  std::array<uint8_t, 16> hash;
  keyed_hash(Secret{},
             "fccl host",
             {{boot.data(), boot.size()}, {"/", 1}, {config.hostid.data(), config.hostid.size()}},
             hash.data(),
             hash.size());
  return ByteReader(hash.data(), hash.size()).u64();
}

}  // namespace

RankCard identity_card(const Config& config) {
  RankCard card;
  card.process_id = ::getpid();
  card.host = config.hostid.empty() ? host_name() : config.hostid.substr(0, kMaxHostBytes);
  card.host_token = host_token(config);
  return card;
}

Status open_local_rank(const Config& config, int rank, LocalRank& out) {
  FCCL_TRY(start_cryptography());
  out.card = identity_card(config);
  if (fault(config.test_fault, "bootstrap.listen", rank))
    return error(Code::SystemError, "cannot open listening sockets (fault hook)");
  std::array<uint8_t, 16> token;
  FCCL_TRY(random_bytes(token.data(), token.size()));
  FCCL_TRY_ASSIGN(name, unix_socket_name(config.socket_dir, token.data(), token.size()));
  Status failure;
  Result<Listener> local = listen_unix(name);
  if (local.ok()) {
    out.card.unix_name = name;
    out.listeners.push_back(std::move(*local));
  } else {
    failure = local.status();
  }
  FCCL_TRY_ASSIGN(addresses, local_addresses(config));
  for (Address address : addresses) {
    address.port = 0;
    Result<Listener> remote = listen_tcp(address);
    if (!remote.ok()) {
      // For instance an IPv6 address that is still being checked for duplicates.
      FCCL_LOG(Info, kLogBootstrap, "rank %d: %s", rank, remote.status().text().c_str());
      failure = remote.status();
      continue;
    }
    out.card.addresses.push_back(address);
    out.listeners.push_back(std::move(*remote));
  }
  if (out.listeners.empty()) return failure;
  return {};
}

std::string describe_rank(int rank, const RankCard& card) {
  return "rank " + std::to_string(rank) + " (pid " + std::to_string(card.process_id) + " on host " +
         card.host + ")";
}

}  // namespace fccl
