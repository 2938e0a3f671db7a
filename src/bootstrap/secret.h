// Secret: 32 bytes that are wiped when they are dropped, and the few cryptographic words that the
// bootstrap uses (libsodium: keyed BLAKE2b, constant-time compare). Random bytes come from the
// kernel, so that two processes after a fork never share them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/status.h"

namespace fccl {

constexpr size_t kSecretBytes = 32;

struct Secret {
  std::array<uint8_t, kSecretBytes> bytes{};
  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(); }
  void wipe();
};

struct ByteView {
  const void* data;
  size_t bytes;
};

// Once per process; every entry into the bootstrap calls it.
Status start_cryptography();
Status random_bytes(void* out, size_t bytes);
Result<Secret> random_secret();

// Keyed BLAKE2b over `label` and the parts; out_bytes is 16 to 64. Each use has its own label.
void keyed_hash(const Secret& key, const char* label, std::initializer_list<ByteView> parts,
                uint8_t* out, size_t out_bytes);
Secret derive_secret(const Secret& key, const char* label, std::initializer_list<ByteView> parts);
bool equal_in_constant_time(const void* a, const void* b, size_t bytes);
std::string hex(const void* data, size_t bytes);

}  // namespace fccl
