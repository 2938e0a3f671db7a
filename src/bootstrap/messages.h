// Messages: everything that travels inside the encrypted frames, as plain structs with encode and
// decode. A decoder takes any bytes, checks every length and count against its bound, and refuses
// what is too short, too long or out of range; what it accepts survives another encode and decode.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/address.h"
#include "bootstrap/secret.h"
#include "bootstrap/wire.h"

namespace fccl {

constexpr size_t kMaxErrorText = 400;
constexpr size_t kMaxPhaseBytes = 48;
constexpr size_t kMaxHostBytes = 64;
constexpr size_t kMaxUnixNameBytes = 107;

// The code travels as a number; an unknown one becomes RemoteError. The text is cut at
// kMaxErrorText.
void write_status(ByteWriter& writer, const Status& status);
Status read_status(ByteReader& reader);

// "0.1.0 (wire version 1)"
std::string version_text(uint32_t library_version, int wire_version);

// Who a rank is and where it listens for its peers.
struct RankCard {
  int64_t process_id = 0;
  uint64_t host_token = 0;
  std::string host;
  std::string unix_name;  // of its mesh listener; empty if it has none
  std::vector<Address> addresses;
};
void write_card(ByteWriter& writer, const RankCard& card);
RankCard read_card(ByteReader& reader);

// A rank to the rendezvous service, once: `local` is an error if the rank cannot go on.
struct RendezvousHello {
  Status local;
  uint32_t limit_ms = 0;  // the whole of its deadline, for texts
  uint32_t remaining_ms = 0;  // what is left of it
  RankCard card;
};
std::vector<uint8_t> encode(const RendezvousHello& hello);
Result<RendezvousHello> decode_rendezvous_hello(const std::vector<uint8_t>& bytes);

enum class RendezvousKind : uint8_t {
  Welcome = 1,  // service to rank: the hello has been taken
  Table = 2,  // service to rank: all ranks are here; secret and cards
  Report = 3,  // rank to service: its part of the mesh stands, or an error
  Done = 4,  // service to rank: the verdict, the same for all; the last message
};
struct RendezvousMessage {
  RendezvousKind kind = RendezvousKind::Welcome;
  Status status;  // Report, Done
  Secret secret;  // Table: of the mesh
  std::vector<RankCard> cards;  // Table
};
std::vector<uint8_t> encode(const RendezvousMessage& message);
Result<RendezvousMessage> decode_rendezvous_message(const std::vector<uint8_t>& bytes);

enum class FrameKind : uint8_t {
  Exchange = 1,  // one rank's part of an exchange
  Message = 2,  // point to point
  Failure = 3,  // the sender failed or was aborted: status
  Bye = 4,  // the sender leaves; nothing follows
  Notice = 5,  // the sender saw another rank die or fail; before anything that follows from it
};
enum class Operation : uint8_t { Allgather = 1, Barrier = 2, Vote = 3, Descriptors = 4 };

struct Frame {
  FrameKind kind = FrameKind::Bye;
  Operation operation = Operation::Allgather;  // Exchange
  bool has_fd = false;  // Exchange: a descriptor came with this frame
  uint32_t number = 0;  // Exchange: counts exchanges; Message: the tag; Notice: the rank
  bool died = false;  // Notice: it died, else it failed
  Status status;  // Exchange, Failure, Notice
  std::string phase;  // Exchange
  std::vector<uint8_t> payload;  // Exchange, Message
};
std::vector<uint8_t> encode(const Frame& frame);
Result<Frame> decode_frame(const std::vector<uint8_t>& bytes);

}  // namespace fccl
