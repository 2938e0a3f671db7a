#include "bootstrap/secure_channel.h"

#include <algorithm>
#include <cstring>

#include "bootstrap/wire.h"

namespace fccl {
namespace {

constexpr char kMagic[] = "fccl";
constexpr size_t kMagicBytes = 4;
constexpr size_t kIdHashOffset = 32;
constexpr size_t kIdHashBytes = 16;
constexpr size_t kNonceOffset = 64;
constexpr size_t kMacOffset = 96;
constexpr size_t kMacBytes = kHelloBytes - kMacOffset;
constexpr size_t kLengthBytes = 4;
constexpr size_t kStreamHeaderBytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr size_t kFrameOverhead = crypto_secretstream_xchacha20poly1305_ABYTES;

Status refuse(const char* why) {
  return error(Code::RemoteError, "%s", why);
}

void id_hash(const Secret& secret, uint8_t out[kIdHashBytes]) {
  keyed_hash(secret, "fccl which id", {}, out, kIdHashBytes);
}

}  // namespace

Result<SecureChannel> SecureChannel::create(Side side, const Secret& secret, const Hello& mine,
                                            size_t frame_limit) {
  SecureChannel channel;
  channel.side_ = side;
  channel.secret_ = secret;
  channel.mine_ = mine;
  channel.frame_limit_ = frame_limit;
  FCCL_TRY(channel.start());
  return channel;
}

SecureChannel::SecureChannel(SecureChannel&& other) noexcept {
  *this = std::move(other);
}

SecureChannel& SecureChannel::operator=(SecureChannel&& other) noexcept {
  if (this == &other) return *this;
  side_ = other.side_;
  secret_ = other.secret_;
  mine_ = other.mine_;
  peer_ = other.peer_;
  frame_limit_ = other.frame_limit_;
  my_hello_ = other.my_hello_;
  peer_hello_ = other.peer_hello_;
  receive_key_ = other.receive_key_;
  push_ = other.push_;
  pull_ = other.pull_;
  input_ = std::move(other.input_);
  consumed_ = other.consumed_;
  output_ = std::move(other.output_);
  messages_ = std::move(other.messages_);
  established_ = other.established_;
  pull_ready_ = other.pull_ready_;
  confirmed_ = other.confirmed_;
  failed_ = other.failed_;
  other.wipe();
  return *this;
}

SecureChannel::~SecureChannel() {
  wipe();
}

void SecureChannel::wipe() {
  secret_.wipe();
  receive_key_.wipe();
  sodium_memzero(&push_, sizeof push_);
  sodium_memzero(&pull_, sizeof pull_);
  failed_ = true;
}

Status SecureChannel::start() {
  FCCL_TRY(start_cryptography());
  if (side_ == Side::Client) {
    FCCL_TRY(build_hello());
    output_.assign(my_hello_.begin(), my_hello_.end());
  }
  return {};
}

Status SecureChannel::build_hello() {
  FCCL_TRY(random_bytes(my_hello_.data() + kNonceOffset, kNonceBytes));
  ByteWriter writer;
  writer.raw(kMagic, kMagicBytes);
  writer.u16(mine_.wire_version);
  writer.u8(static_cast<uint8_t>(mine_.purpose));
  writer.u8(0);
  writer.i32(mine_.rank);
  writer.i32(mine_.ranks);
  writer.u32(mine_.library_version);
  writer.i32(mine_.target);
  std::memcpy(my_hello_.data(), writer.bytes().data(), writer.bytes().size());
  id_hash(secret_, my_hello_.data() + kIdHashOffset);
  uint8_t* const mac = my_hello_.data() + kMacOffset;
  const ByteView mine{my_hello_.data(), kMacOffset};
  if (side_ == Side::Client)
    keyed_hash(secret_, "fccl hello of the client", {mine}, mac, kMacBytes);
  else
    keyed_hash(secret_,
               "fccl hello of the server",
               {{peer_hello_.data(), kHelloBytes}, mine},
               mac,
               kMacBytes);
  return {};
}

Status SecureChannel::check_hello(const uint8_t* bytes) {
  uint8_t expected[kMacBytes];
  const ByteView theirs{bytes, kMacOffset};
  if (side_ == Side::Server)
    keyed_hash(secret_, "fccl hello of the client", {theirs}, expected, kMacBytes);
  else
    keyed_hash(secret_,
               "fccl hello of the server",
               {{my_hello_.data(), kHelloBytes}, theirs},
               expected,
               kMacBytes);
  uint8_t which[kIdHashBytes];
  id_hash(secret_, which);
  if (!equal_in_constant_time(which, bytes + kIdHashOffset, kIdHashBytes) ||
      !equal_in_constant_time(expected, bytes + kMacOffset, kMacBytes))
    return refuse("the peer has another secret");
  ByteReader reader(bytes + kMagicBytes, kIdHashOffset - kMagicBytes);
  peer_.wire_version = reader.u16();
  const uint8_t purpose = reader.u8();
  reader.u8();
  peer_.rank = reader.i32();
  peer_.ranks = reader.i32();
  peer_.library_version = reader.u32();
  peer_.target = reader.i32();
  if (purpose != static_cast<uint8_t>(mine_.purpose))
    return refuse("the peer wants another service");
  peer_.purpose = mine_.purpose;
  if (side_ == Side::Server && mine_.purpose == Purpose::Mesh && peer_.target != mine_.rank)
    return refuse("the peer looks for another rank");
  return {};
}

// The hello is judged by its first bytes as soon as they are there, and whole when it is whole.
Status SecureChannel::take_hello() {
  const size_t available = input_.size() - consumed_;
  const uint8_t* bytes = input_.data() + consumed_;
  if (std::memcmp(bytes, kMagic, std::min(available, kMagicBytes)) != 0)
    return refuse("the peer does not speak fccl's protocol");
  if (available < kHelloBytes) return {};
  FCCL_TRY(check_hello(bytes));
  std::memcpy(peer_hello_.data(), bytes, kHelloBytes);
  consumed_ += kHelloBytes;
  if (side_ == Side::Server) {
    FCCL_TRY(build_hello());
    output_.insert(output_.end(), my_hello_.begin(), my_hello_.end());
  }
  return make_keys();
}

Status SecureChannel::make_keys() {
  const bool client = side_ == Side::Client;
  const ByteView first{client ? my_hello_.data() : peer_hello_.data(), kHelloBytes};
  const ByteView second{client ? peer_hello_.data() : my_hello_.data(), kHelloBytes};
  const Secret up = derive_secret(secret_, "fccl key client to server", {first, second});
  const Secret down = derive_secret(secret_, "fccl key server to client", {first, second});
  static_assert(kSecretBytes == crypto_secretstream_xchacha20poly1305_KEYBYTES);
  uint8_t header[kStreamHeaderBytes];
  crypto_secretstream_xchacha20poly1305_init_push(
      &push_, header, (client ? up : down).bytes.data());
  output_.insert(output_.end(), header, header + sizeof header);
  receive_key_ = client ? down : up;
  secret_.wipe();
  established_ = true;
  return {};
}

Status SecureChannel::take_stream_header() {
  if (input_.size() - consumed_ < kStreamHeaderBytes) return {};
  if (crypto_secretstream_xchacha20poly1305_init_pull(
          &pull_, input_.data() + consumed_, receive_key_.bytes.data()) != 0)
    return refuse("the peer sent a bad stream header");
  receive_key_.wipe();
  consumed_ += kStreamHeaderBytes;
  pull_ready_ = true;
  return {};
}

Status SecureChannel::take_frame(bool& taken) {
  taken = false;
  const size_t available = input_.size() - consumed_;
  if (available < kLengthBytes) return {};
  const uint8_t* bytes = input_.data() + consumed_;
  const size_t length = ByteReader(bytes, kLengthBytes).u32();
  if (length < kFrameOverhead || length - kFrameOverhead > frame_limit_)
    return refuse("the peer sent a frame of an illegal length");
  if (available - kLengthBytes < length) return {};
  std::vector<uint8_t> message(length - kFrameOverhead);
  unsigned char tag = 0;
  if (crypto_secretstream_xchacha20poly1305_pull(&pull_,
                                                 message.data(),
                                                 nullptr,
                                                 &tag,
                                                 bytes + kLengthBytes,
                                                 length,
                                                 bytes,
                                                 kLengthBytes) != 0)
    return refuse("the peer sent a frame that is not authentic");
  consumed_ += kLengthBytes + length;
  confirmed_ = true;
  messages_.push_back(std::move(message));
  taken = true;
  return {};
}

Status SecureChannel::receive(const uint8_t* data, size_t bytes) {
  if (failed_) return refuse("the channel has failed before");
  if (bytes == 0) return {};
  input_.insert(input_.end(), data, data + bytes);
  Status status;
  bool more = true;
  while (status.ok() && more) {
    const size_t before = consumed_;
    bool taken = false;
    if (!established_)
      status = take_hello();
    else if (!pull_ready_)
      status = take_stream_header();
    else
      status = take_frame(taken);
    more = consumed_ != before;
  }
  if (!status.ok()) {
    wipe();
    messages_.clear();
    output_.clear();
    input_.clear();
    return status;
  }
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(consumed_));
  consumed_ = 0;
  return {};
}

Status SecureChannel::send(const void* data, size_t bytes) {
  if (failed_ || !established_)
    return error(Code::InternalError, "a message for a channel that is not established");
  ByteWriter writer;
  writer.u32(static_cast<uint32_t>(bytes + kFrameOverhead));
  const size_t start = output_.size();
  output_.insert(output_.end(), writer.bytes().begin(), writer.bytes().end());
  output_.resize(start + kLengthBytes + bytes + kFrameOverhead);
  uint8_t* const frame = output_.data() + start;
  crypto_secretstream_xchacha20poly1305_push(&push_,
                                             frame + kLengthBytes,
                                             nullptr,
                                             static_cast<const uint8_t*>(data),
                                             bytes,
                                             frame,
                                             kLengthBytes,
                                             crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
  return {};
}

bool SecureChannel::next(std::vector<uint8_t>& message) {
  if (messages_.empty()) return false;
  message = std::move(messages_.front());
  messages_.pop_front();
  return true;
}

}  // namespace fccl
