// Secure channel: the handshake and the frames of every stream of the bootstrap, as a machine that
// is fed bytes and yields bytes; it knows no socket, so a fuzzer or a test can drive it.
//
// Who sends what, in which order (C is who connected, S who accepted; both have the same secret):
//   1. C: hello, 128 bytes: magic, wire version, purpose, rank, ranks, library version, the rank it
//         believes to have reached, hash of the secret (which id), nonce; then a keyed hash of
//         these.
//   2. S: nothing, and closes, unless all of that fits; else its own hello, 128 bytes, its keyed
//   hash
//         taken over both hellos under another label.
//   3. Both: two keys, one for each direction, by keyed hash of secret and both hellos.
//   4. Each direction: 24 bytes secretstream header, then frames: length (4 bytes) of the
//   ciphertext,
//      ciphertext; the length is authenticated too. The first frame of C proves that C is not a
//      replay.
// The layout of the two hellos never changes, so that different wire versions can tell each other.
//
// What an attacker who can connect, listen, record and inject, but has no secret, can do: get a
// connection closed; by replaying a recorded hello, get one answer of 152 bytes that tells nothing,
// and hold a slot until the handshake deadline. Not: be taken for a rank (the keys depend on a
// fresh nonce of each side), reflect (labels differ by side), redirect to another rank or purpose
// (both are in the hash), replay, reorder, cut or change frames (secretstream), make us allocate
// (lengths are bounded before anything is stored). A cut stream looks like a death, which ends the
// communicator. Invariant: after receive() has failed the channel yields no further message.
#pragma once
#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/status.h"
#include "bootstrap/secret.h"

namespace fccl {

constexpr uint16_t kWireVersion = 1;
constexpr size_t kHelloBytes = 128;
constexpr size_t kNonceBytes = 32;

enum class Purpose : uint8_t { Rendezvous = 1, Mesh = 2 };
enum class Side : uint8_t { Client, Server };

struct Hello {
  Purpose purpose = Purpose::Rendezvous;
  uint16_t wire_version = kWireVersion;
  uint32_t library_version = 0;
  int32_t rank = -1;  // of the sender; -1 for the rendezvous service
  int32_t ranks = 0;
  int32_t target = -1;  // the rank that the client wants to reach
};

class SecureChannel {
 public:
  // The client's hello is in output() at once. A server answers only hellos for `mine.purpose`,
  // and, in a mesh, for target == mine.rank.
  static Result<SecureChannel> create(Side side, const Secret& secret, const Hello& mine,
                                      size_t frame_limit);
  SecureChannel(SecureChannel&&) noexcept;
  SecureChannel& operator=(SecureChannel&&) noexcept;
  ~SecureChannel();

  Status receive(const uint8_t* data, size_t bytes);
  // Encrypts one message into output(). Legal once established().
  Status send(const void* data, size_t bytes);
  bool next(std::vector<uint8_t>& message);
  // Bytes to put on the wire; whoever sends them removes them.
  std::vector<uint8_t>& output() { return output_; }

  // Keys exist. For a client the server has proved itself; a server must wait for the first frame.
  bool established() const { return established_; }
  bool confirmed() const { return confirmed_; }  // a frame of the peer was authentic
  const Hello& peer() const { return peer_; }
  void set_frame_limit(size_t bytes) { frame_limit_ = bytes; }

 private:
  SecureChannel() = default;
  Status start();
  Status take_hello();
  Status check_hello(const uint8_t* bytes);
  Status make_keys();
  Status take_stream_header();
  Status take_frame(bool& taken);
  Status build_hello();
  void wipe();

  Side side_ = Side::Client;
  Secret secret_;
  Hello mine_;
  Hello peer_;
  size_t frame_limit_ = 0;
  std::array<uint8_t, kHelloBytes> my_hello_{};
  std::array<uint8_t, kHelloBytes> peer_hello_{};
  Secret receive_key_;
  crypto_secretstream_xchacha20poly1305_state push_{};
  crypto_secretstream_xchacha20poly1305_state pull_{};
  std::vector<uint8_t> input_;
  size_t consumed_ = 0;
  std::vector<uint8_t> output_;
  std::deque<std::vector<uint8_t>> messages_;
  bool established_ = false;
  bool pull_ready_ = false;
  bool confirmed_ = false;
  bool failed_ = false;
};

}  // namespace fccl
