#include "bootstrap/rendezvous_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/unique_fd.h"
#include "bootstrap/connector.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/rendezvous_service.h"

namespace fccl {
namespace {

constexpr size_t kRemembered = 1024;
constexpr size_t kShortestSecret = 16;
constexpr size_t kLongestSecret = 4096;

struct Opened {
  std::array<uint8_t, 16> tag;
  std::weak_ptr<RendezvousService> service;  // its thread owns it
};

bool is_over(const Opened& opened) {
  const std::shared_ptr<RendezvousService> service = opened.service.lock();
  return service == nullptr || service->ended();
}

struct Registry {
  const ProcessMark process;
  std::mutex mutex;
  std::deque<Opened> opened;
};

// A forked child starts with an empty one: the parent's mutex may be locked for ever there. Never
// destroyed, because services outlive static destructors.
Registry& registry() {
  static std::atomic<Registry*> current{new Registry};
  Registry* mine = current.load(std::memory_order_acquire);
  while (!mine->process.is_here()) {
    Registry* fresh = new Registry;
    if (current.compare_exchange_strong(mine, fresh)) return *fresh;
    delete fresh;
  }
  return *mine;
}

std::array<uint8_t, 16> id_tag(const UniqueId& id) {
  std::array<uint8_t, 16> tag;
  keyed_hash(id.secret, "fccl opened id", {}, tag.data(), tag.size());
  return tag;
}

void remember(const UniqueId& id, const std::shared_ptr<RendezvousService>& service) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().opened.push_back({id_tag(id), service});
  if (registry().opened.size() > kRemembered) registry().opened.pop_front();
}

// The last init by this fixed id may still linger for its latecomers, and hold the port.
void displace_former(const UniqueId& id) {
  std::vector<std::shared_ptr<RendezvousService>> former;
  {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    for (const Opened& opened : registry().opened)
      if (opened.tag == id_tag(id)) former.push_back(opened.service.lock());
    std::erase_if(registry().opened, [&](const Opened& o) { return o.tag == id_tag(id); });
  }
  const Deadline patience = Deadline::after_ms(1000);
  for (const std::shared_ptr<RendezvousService>& service : former) {
    if (service) service->request_stop();
    while (service && !service->ended() && !patience.expired())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<Secret> read_secret_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0)
    return error(Code::InvalidArgument,
                 "FCCL_COMM_SECRET_FILE=%s cannot be read: %s",
                 path.c_str(),
                 std::strerror(errno));
  if (!S_ISREG(info.st_mode) || (info.st_mode & 077) != 0)
    return error(Code::InvalidArgument,
                 "FCCL_COMM_SECRET_FILE=%s must be a regular file that only its owner can read "
                 "(mode 0600); it has mode %04o",
                 path.c_str(),
                 static_cast<unsigned>(info.st_mode & 07777));
  std::vector<uint8_t> content(kLongestSecret);
  const ssize_t got = ::read(file.get(), content.data(), content.size());
  size_t length = got > 0 ? static_cast<size_t>(got) : 0;
  while (length > 0 && (content[length - 1] == '\n' || content[length - 1] == '\r')) length--;
  if (length < kShortestSecret)
    return error(
        Code::InvalidArgument,
        "FCCL_COMM_SECRET_FILE=%s holds %zu bytes; a secret needs at least %zu random ones",
        path.c_str(),
        length,
        kShortestSecret);
  const Secret secret = derive_secret(Secret{}, "fccl secret file", {{content.data(), length}});
  sodium_memzero(content.data(), content.size());
  return secret;
}

Status create_fixed_id(const Config& config, uint8_t out[kUniqueIdBytes]) {
  if (config.comm_secret_file.empty())
    return error(Code::InvalidArgument,
                 "FCCL_COMM_ID=%s needs FCCL_COMM_SECRET_FILE, a file with mode 0600 and the same "
                 "secret on all ranks",
                 config.comm_id.c_str());
  UniqueId id;
  id.fixed = true;
  FCCL_TRY_ASSIGN(secret, read_secret_file(config.comm_secret_file));
  id.secret = secret;
  FCCL_TRY_ASSIGN(addresses, resolve_address(config.comm_id));
  id.addresses = addresses;
  return encode_unique_id(id, out);
}

// A name may resolve to a loopback address on its own host (/etc/hosts), where no other host can
// come; then the port is opened on the chosen interfaces too.
bool names_exact_addresses(const std::string& comm_id) {
  std::string host = comm_id.substr(0, comm_id.rfind(':'));
  if (!host.empty() && host[0] == '[') return true;
  in_addr address;
  return host == "localhost" || inet_pton(AF_INET, host.c_str(), &address) == 1;
}

}  // namespace

Result<std::string> rendezvous_socket_name(const UniqueId& id, const std::string& socket_dir) {
  const uint16_t port = id.fixed && !id.addresses.empty() ? id.addresses[0].port : 0;
  std::array<uint8_t, 16> token;
  keyed_hash(
      id.secret, "fccl rendezvous socket", {{&port, sizeof port}}, token.data(), token.size());
  return unix_socket_name(socket_dir, token.data(), token.size());
}

Result<std::vector<Endpoint>> rendezvous_endpoints(const UniqueId& id, const Config& config) {
  FCCL_TRY_ASSIGN(name, rendezvous_socket_name(id, config.socket_dir));
  std::vector<Endpoint> endpoints{{name, {}}};
  std::vector<Address> addresses = id.addresses;
  if (id.fixed && !config.comm_id.empty()) {
    FCCL_TRY_ASSIGN(resolved, resolve_address(config.comm_id));
    addresses = resolved;
  }
  for (Endpoint& endpoint : tcp_endpoints(addresses)) endpoints.push_back(std::move(endpoint));
  return endpoints;
}

Status create_unique_id(const Config& config, uint8_t out[kUniqueIdBytes]) {
  FCCL_TRY(start_cryptography());
  if (!config.comm_id.empty()) return create_fixed_id(config, out);
  UniqueId id;
  id.creator_pid = static_cast<uint32_t>(::getpid());
  FCCL_TRY_ASSIGN(secret, random_secret());
  id.secret = secret;
  std::vector<Listener> listeners;
  FCCL_TRY_ASSIGN(name, rendezvous_socket_name(id, config.socket_dir));
  FCCL_TRY_ASSIGN(local, listen_unix(name));
  listeners.push_back(std::move(local));
  FCCL_TRY_ASSIGN(addresses, local_addresses(config));
  for (Address& address : addresses) {
    address.port = 0;
    Result<Listener> listener = listen_tcp(address);
    if (!listener.ok()) continue;  // for instance an IPv6 address still checked for duplicates
    id.addresses.push_back(address);
    listeners.push_back(std::move(*listener));
  }
  FCCL_TRY_ASSIGN(
      service,
      RendezvousService::start(id.secret, std::move(listeners), config.init_timeout_ms, false));
  remember(id, service);
  return encode_unique_id(id, out);
}

Status open_fixed_rendezvous(const UniqueId& id, const Config& config, int64_t idle_ms) {
  displace_former(id);
  FCCL_TRY_ASSIGN(endpoints, rendezvous_endpoints(id, config));
  std::vector<Address> addresses;
  for (const Endpoint& endpoint : endpoints)
    if (!endpoint.is_unix()) addresses.push_back(endpoint.address);
  if (addresses.empty()) return error(Code::InvalidArgument, "FCCL_COMM_ID has no address");
  if (!names_exact_addresses(config.comm_id)) {
    FCCL_TRY_ASSIGN(own, local_addresses(config));
    for (Address address : own) {
      address.port = addresses[0].port;
      if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
        addresses.push_back(address);
    }
  }
  std::vector<Listener> listeners;
  Status failure;
  for (Address& address : addresses) {
    Result<Listener> listener = listen_tcp(address);
    if (listener.ok())
      listeners.push_back(std::move(*listener));
    else
      failure = listener.status();
  }
  // Some of the addresses may belong to other hosts; all refused means taken, or not ours at all.
  if (listeners.empty())
    return error(Code::SystemError,
                 "rank 0 cannot open FCCL_COMM_ID=%s: %s",
                 config.comm_id.c_str(),
                 failure.text().c_str());
  FCCL_TRY_ASSIGN(local, listen_unix(endpoints[0].unix_name));
  listeners.push_back(std::move(local));
  FCCL_TRY_ASSIGN(service,
                  RendezvousService::start(id.secret, std::move(listeners), idle_ms, true));
  remember(id, service);
  return {};
}

Status check_not_used(const UniqueId& id) {
  if (id.fixed) return {};
  const std::lock_guard<std::mutex> lock(registry().mutex);
  for (const Opened& opened : registry().opened)
    if (opened.tag == id_tag(id) && is_over(opened))
      return error(Code::InvalidUsage,
                   "this unique id was already used for an init, or its deadline has passed; each "
                   "init needs a new one");
  return {};
}

}  // namespace fccl
