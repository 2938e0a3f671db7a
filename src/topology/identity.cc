// See identity.h.
#include "topology/identity.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/wiped_word.h"
#include "topology/detect.h"
#include "topology/text_file.h"

namespace fccl {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

uint64_t random_number() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    // Before the kernel's pool is ready: told apart by time and place instead.
    number =
        mix(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())) ^
        reinterpret_cast<uintptr_t>(&number);
  }
  return number | 1;  // 0 means "not drawn yet"
}

// A forked child draws anew. Where the word cannot be had, the process id alone tells apart.
std::atomic<uint64_t>* seed_word() {
  static std::atomic<uint64_t> plain{0};
  static std::atomic<uint64_t>* const word = [] {
    std::atomic<uint64_t>* wiped = make_wiped_word();
    return wiped != nullptr ? wiped : &plain;
  }();
  return word;
}

}  // namespace

uint64_t hash_text(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash = mix(hash);
  return hash == 0 ? 1 : hash;
}

HostIdentity host_identity_of(const std::string& hostid_setting, const std::string& host_name,
                              const std::string& boot_id, const std::string& machine_id) {
  HostIdentity identity;
  identity.host_name = host_name;
  identity.boot_id = boot_id;
  const std::string boot = boot_id.empty() ? "machine " + machine_id + ' ' + host_name : boot_id;
  identity.boot_id_hash = hash_text(boot);
  identity.host_id =
      hostid_setting.empty() ? identity.boot_id_hash : hash_text("hostid " + hostid_setting);
  return identity;
}

HostIdentity host_identity(const std::string& hostid_setting) {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  return host_identity_of(hostid_setting,
                          name,
                          read_text_file("/proc/sys/kernel/random/boot_id"),
                          read_text_file("/etc/machine-id"));
}

uint64_t process_token() {
  std::atomic<uint64_t>* word = seed_word();
  uint64_t seed = word->load();
  if (seed == 0) {
    const uint64_t drawn = random_number();
    seed = word->compare_exchange_strong(seed, drawn) ? drawn : seed;
  }
  const uint64_t token = mix(seed ^ mix(static_cast<uint64_t>(::getpid())));
  return token == 0 ? 1 : token;
}

}  // namespace fccl
