#include "bootstrap/messages.h"

#include <sodium.h>

#include <utility>

#include "bootstrap/group.h"
#include "bootstrap/interfaces.h"

namespace fccl {
namespace {

constexpr uint32_t kMaxTimeMs = 7 * 86400000u;

Status malformed(const char* what) {
  return error(Code::RemoteError, "a peer sent a malformed %s", what);
}

// Texts of peers end in logs and errors: no control characters.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

Code known_code(int32_t number) {
  switch (number) {
#define FCCL_RESULT(value, name, text) case value:
#include "base/result.def"
#undef FCCL_RESULT
    return static_cast<Code>(number);
    default:
      return Code::RemoteError;
  }
}

}  // namespace

void write_status(ByteWriter& writer, const Status& status) {
  writer.i32(static_cast<int32_t>(status.code()));
  writer.i32(status.rank() < -1 || status.rank() >= kMaxRanks ? -1 : status.rank());
  writer.text(status.text(), kMaxErrorText);
}

Status read_status(ByteReader& reader) {
  const Code code = known_code(reader.i32());
  const int rank = reader.i32();
  const std::string text = printable(reader.text(kMaxErrorText));
  if (rank < -1 || rank >= kMaxRanks) reader.fail();
  if (code == Code::Success) return {};
  return Status(code, rank, text);
}

std::string version_text(uint32_t library_version, int wire_version) {
  return std::to_string(library_version / 10000) + "." +
         std::to_string(library_version / 100 % 100) + "." + std::to_string(library_version % 100) +
         " (wire version " + std::to_string(wire_version) + ")";
}

void write_card(ByteWriter& writer, const RankCard& card) {
  writer.u64(static_cast<uint64_t>(card.process_id));
  writer.u64(card.host_token);
  writer.text(card.host, kMaxHostBytes);
  writer.text(card.unix_name, kMaxUnixNameBytes);
  writer.u8(static_cast<uint8_t>(card.addresses.size()));
  for (const Address& address : card.addresses) address.pack(writer.bytes());
}

RankCard read_card(ByteReader& reader) {
  RankCard card;
  card.process_id = static_cast<int64_t>(reader.u64());
  card.host_token = reader.u64();
  card.host = printable(reader.text(kMaxHostBytes));
  card.unix_name = reader.text(kMaxUnixNameBytes);
  const size_t count = reader.u8();
  if (count > kMaxAddresses) reader.fail();
  size_t offset = reader.offset();
  if (!reader.ok() ||
      !unpack_addresses(reader.data(), reader.size(), offset, count, card.addresses))
    reader.fail();
  else
    reader.skip_to(offset);
  return card;
}

std::vector<uint8_t> encode(const RendezvousHello& hello) {
  ByteWriter writer;
  write_status(writer, hello.local);
  writer.u32(hello.limit_ms);
  writer.u32(hello.remaining_ms);
  write_card(writer, hello.card);
  return std::move(writer.bytes());
}

Result<RendezvousHello> decode_rendezvous_hello(const std::vector<uint8_t>& bytes) {
  ByteReader reader(bytes);
  RendezvousHello hello;
  hello.local = read_status(reader);
  hello.limit_ms = reader.u32();
  hello.remaining_ms = reader.u32();
  hello.card = read_card(reader);
  if (!reader.at_end() || hello.limit_ms > kMaxTimeMs || hello.remaining_ms > kMaxTimeMs)
    return malformed("hello");
  return hello;
}

std::vector<uint8_t> encode(const RendezvousMessage& message) {
  ByteWriter writer;
  writer.u8(static_cast<uint8_t>(message.kind));
  if (message.kind == RendezvousKind::Report || message.kind == RendezvousKind::Done)
    write_status(writer, message.status);
  if (message.kind == RendezvousKind::Table) {
    // All at once: a vector that grows would leave copies of the secret behind.
    writer.bytes().reserve(kSecretBytes + message.cards.size() * 512 + 2);
    writer.raw(message.secret.bytes.data(), kSecretBytes);
    writer.u8(static_cast<uint8_t>(message.cards.size()));
    for (const RankCard& card : message.cards) write_card(writer, card);
  }
  return std::move(writer.bytes());
}

Result<RendezvousMessage> decode_rendezvous_message(const std::vector<uint8_t>& bytes) {
  ByteReader reader(bytes);
  RendezvousMessage message;
  const uint8_t kind = reader.u8();
  message.kind = static_cast<RendezvousKind>(kind);
  switch (message.kind) {
    case RendezvousKind::Welcome:
      break;
    case RendezvousKind::Report:
    case RendezvousKind::Done:
      message.status = read_status(reader);
      break;
    case RendezvousKind::Table: {
      reader.raw(message.secret.bytes.data(), kSecretBytes);
      const size_t count = reader.u8();
      if (count > static_cast<size_t>(kMaxRanks)) return malformed("table of ranks");
      for (size_t i = 0; i < count && reader.ok(); i++) message.cards.push_back(read_card(reader));
      break;
    }
    default:
      return malformed("rendezvous message");
  }
  if (!reader.at_end()) return malformed("rendezvous message");
  return message;
}

std::vector<uint8_t> encode(const Frame& frame) {
  ByteWriter writer;
  writer.bytes().reserve(frame.payload.size() + 512);
  writer.u8(static_cast<uint8_t>(frame.kind));
  switch (frame.kind) {
    case FrameKind::Exchange:
      writer.u8(static_cast<uint8_t>(frame.operation));
      writer.u8(frame.has_fd ? 1 : 0);
      writer.u32(frame.number);
      write_status(writer, frame.status);
      writer.text(frame.phase, kMaxPhaseBytes);
      writer.raw(frame.payload.data(), frame.payload.size());
      break;
    case FrameKind::Message:
      writer.u32(frame.number);
      writer.raw(frame.payload.data(), frame.payload.size());
      break;
    case FrameKind::Failure:
      write_status(writer, frame.status);
      break;
    case FrameKind::Notice:
      writer.u32(frame.number);
      writer.u8(frame.died ? 1 : 0);
      write_status(writer, frame.status);
      break;
    case FrameKind::Bye:
      break;
  }
  return std::move(writer.bytes());
}

Result<Frame> decode_frame(const std::vector<uint8_t>& bytes) {
  ByteReader reader(bytes);
  Frame frame;
  frame.kind = static_cast<FrameKind>(reader.u8());
  switch (frame.kind) {
    case FrameKind::Exchange: {
      const uint8_t operation = reader.u8();
      if (operation < 1 || operation > 4) return malformed("exchange");
      frame.operation = static_cast<Operation>(operation);
      const uint8_t has_fd = reader.u8();
      if (has_fd > 1) return malformed("exchange");
      frame.has_fd = has_fd == 1;
      frame.number = reader.u32();
      frame.status = read_status(reader);
      frame.phase = printable(reader.text(kMaxPhaseBytes));
      frame.payload = reader.rest();
      break;
    }
    case FrameKind::Message:
      frame.number = reader.u32();
      frame.payload = reader.rest();
      break;
    case FrameKind::Failure:
      frame.status = read_status(reader);
      // A failure that claims success is none; whoever sent it is not to be trusted further.
      if (frame.status.ok()) return malformed("failure notice");
      break;
    case FrameKind::Notice: {
      frame.number = reader.u32();
      const uint8_t died = reader.u8();
      frame.died = died == 1;
      frame.status = read_status(reader);
      if (frame.number >= static_cast<uint32_t>(kMaxRanks) || died > 1 || frame.status.ok())
        return malformed("notice");
      break;
    }
    case FrameKind::Bye:
      break;
    default:
      return malformed("frame");
  }
  if (!reader.at_end() || frame.payload.size() > kMaxBlobBytes) return malformed("frame");
  return frame;
}

}  // namespace fccl
