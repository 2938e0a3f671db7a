// What travels inside frames: round trips, and refusal of everything malformed.
#include "bootstrap/messages.h"

#include "bootstrap/ranks.h"

using namespace fccl;

namespace {

RankCard sample_card() {
  RankCard card;
  card.process_id = 1234;
  card.host_token = 0x0123456789abcdefull;
  card.host = "node-7";
  card.unix_name = "fccl-0011";
  Address address;
  address.family = AF_INET;
  address.bytes = {10, 0, 0, 1};
  address.port = 4000;
  card.addresses = {address};
  return card;
}

Frame sample_exchange() {
  Frame frame;
  frame.kind = FrameKind::Exchange;
  frame.operation = Operation::Vote;
  frame.has_fd = true;
  frame.number = 77;
  frame.status = Status(Code::OutOfResources, 3, "no memory");
  frame.phase = "map windows";
  frame.payload = {1, 2, 3};
  return frame;
}

}  // namespace

TEST_CASE("messages survive encoding") {
  RendezvousHello hello;
  hello.local = error(Code::SystemError, "no sockets");
  hello.limit_ms = 2000;
  hello.remaining_ms = 1900;
  hello.card = sample_card();
  Result<RendezvousHello> hello_again = decode_rendezvous_hello(encode(hello));
  REQUIRE(hello_again.ok());
  CHECK(hello_again->local.text() == "no sockets");
  CHECK(hello_again->remaining_ms == 1900);
  CHECK(hello_again->card.host == "node-7");
  CHECK(hello_again->card.addresses == hello.card.addresses);

  RendezvousMessage table;
  table.kind = RendezvousKind::Table;
  table.secret = *random_secret();
  table.cards = std::vector<RankCard>(kMaxRanks, sample_card());
  Result<RendezvousMessage> table_again = decode_rendezvous_message(encode(table));
  REQUIRE(table_again.ok());
  CHECK(table_again->secret.bytes == table.secret.bytes);
  CHECK(table_again->cards.size() == kMaxRanks);
  CHECK(table_again->cards[15].unix_name == "fccl-0011");

  Result<Frame> frame = decode_frame(encode(sample_exchange()));
  REQUIRE(frame.ok());
  CHECK(frame->number == 77);
  CHECK(frame->has_fd);
  CHECK(frame->status.code() == Code::OutOfResources);
  CHECK(frame->status.rank() == 3);
  CHECK(frame->phase == "map windows");
  CHECK(frame->payload == std::vector<uint8_t>{1, 2, 3});
}

TEST_CASE("every truncation and every extension of a message is refused") {
  RendezvousHello hello;
  hello.card = sample_card();
  const std::vector<uint8_t> whole = encode(hello);
  for (size_t length = 0; length < whole.size(); length++) {
    INFO("length " << length);
    CHECK_FALSE(
        decode_rendezvous_hello({whole.begin(), whole.begin() + static_cast<long>(length)}).ok());
  }
  std::vector<uint8_t> longer = whole;
  longer.push_back(0);
  CHECK_FALSE(decode_rendezvous_hello(longer).ok());
  RendezvousMessage done;
  done.kind = RendezvousKind::Done;
  longer = encode(done);
  longer.push_back(0);
  CHECK_FALSE(decode_rendezvous_message(longer).ok());
}

TEST_CASE("numbers out of their range are refused") {
  Frame frame = sample_exchange();
  std::vector<uint8_t> bytes = encode(frame);
  for (uint8_t kind : {0, 6, 255}) {
    bytes[0] = kind;
    CHECK_FALSE(decode_frame(bytes).ok());
  }
  bytes = encode(frame);
  bytes[1] = 5;
  CHECK_FALSE(decode_frame(bytes).ok());
  bytes = encode(frame);
  bytes[2] = 2;
  CHECK_FALSE(decode_frame(bytes).ok());
  bytes = encode(frame);
  bytes[11] = kMaxRanks;  // the rank to blame
  CHECK_FALSE(decode_frame(bytes).ok());
  frame.kind = FrameKind::Failure;
  frame.status = Status{};
  CHECK_FALSE(decode_frame(encode(frame)).ok());
  CHECK_FALSE(decode_frame({}).ok());
  CHECK_FALSE(decode_rendezvous_message({}).ok());
  CHECK_FALSE(decode_rendezvous_message({9}).ok());
}

TEST_CASE("texts of peers are cut and made printable, unknown codes are still errors") {
  Frame frame = sample_exchange();
  frame.status = error(Code::SystemError, "%s\n\x1b[31m", std::string(600, 'x').c_str());
  Result<Frame> again = decode_frame(encode(frame));
  REQUIRE(again.ok());
  CHECK(again->status.text().size() == kMaxErrorText);
  frame.status = error(Code::SystemError, "a\nb\x1b[31m");
  again = decode_frame(encode(frame));
  REQUIRE(again.ok());
  CHECK(again->status.text() == "a?b?[31m");
  frame.status = Status(static_cast<Code>(4242), "from the future");
  again = decode_frame(encode(frame));
  REQUIRE(again.ok());
  CHECK(again->status.code() == Code::RemoteError);
}
