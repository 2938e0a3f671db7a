#include "bootstrap/secret.h"

#include <sodium.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace fccl {

void Secret::wipe() {
  sodium_memzero(bytes.data(), bytes.size());
}

Status start_cryptography() {
  static const int started = sodium_init();
  if (started < 0) return error(Code::SystemError, "libsodium cannot be initialised");
  return {};
}

Status random_bytes(void* out, size_t bytes) {
  uint8_t* cursor = static_cast<uint8_t*>(out);
  while (bytes > 0) {
    const ssize_t got = getrandom(cursor, bytes, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno_error("getrandom of %zu bytes", bytes);
    }
    cursor += got;
    bytes -= static_cast<size_t>(got);
  }
  return {};
}

Result<Secret> random_secret() {
  Secret secret;
  FCCL_TRY(random_bytes(secret.bytes.data(), secret.bytes.size()));
  return secret;
}

void keyed_hash(const Secret& key, const char* label, std::initializer_list<ByteView> parts,
                uint8_t* out, size_t out_bytes) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.bytes.data(), key.bytes.size(), out_bytes);
  // The label's final zero separates it from the parts; the parts themselves have fixed lengths.
  crypto_generichash_update(
      &state, reinterpret_cast<const uint8_t*>(label), std::strlen(label) + 1);
  for (const ByteView& part : parts)
    crypto_generichash_update(&state, static_cast<const uint8_t*>(part.data), part.bytes);
  crypto_generichash_final(&state, out, out_bytes);
  sodium_memzero(&state, sizeof state);
}

Secret derive_secret(const Secret& key, const char* label, std::initializer_list<ByteView> parts) {
  Secret derived;
  keyed_hash(key, label, parts, derived.bytes.data(), derived.bytes.size());
  return derived;
}

bool equal_in_constant_time(const void* a, const void* b, size_t bytes) {
  return sodium_memcmp(a, b, bytes) == 0;
}

std::string hex(const void* data, size_t bytes) {
  static const char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes * 2);
  for (size_t i = 0; i < bytes; i++) {
    const uint8_t byte = static_cast<const uint8_t*>(data)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace fccl
