// The way into a group by the caller's own allgather (MPI, torch.distributed, an existing
// ncclComm).
//
//   call 1   every rank: version, rank, ranks, its status so far, its card; rank 0: the mesh secret
//            (then the mesh is built, if all were well)
//   call 2   every rank: how that went
//
// Both calls are made by every rank whatever failed before, with the same number of bytes, so that
// no rank is left waiting in one. The transport is the caller's: whoever can read it can read the
// secret. What comes back is checked like any bytes from outside.
#include <sodium.h>

#include <cstring>

#include "base/fault.h"
#include "bootstrap/group_impl.h"

namespace fccl {
namespace {

constexpr size_t kCallBytes = 2048;
constexpr char kMagic[] = "fcclAG01";
constexpr size_t kMagicBytes = 8;

struct Contribution {
  uint8_t call = 0;
  uint16_t wire_version = kWireVersion;
  uint32_t library_version = 0;
  int32_t rank = -1;
  int32_t ranks = 0;
  Status status;
  Secret secret;
  RankCard card;
};

void encode_contribution(const Contribution& mine, std::vector<uint8_t>& out) {
  ByteWriter writer;
  writer.bytes().reserve(kCallBytes);
  writer.raw(kMagic, kMagicBytes);
  writer.u8(mine.call);
  writer.u16(mine.wire_version);
  writer.u32(mine.library_version);
  writer.i32(mine.rank);
  writer.i32(mine.ranks);
  write_status(writer, mine.status);
  writer.raw(mine.secret.bytes.data(), kSecretBytes);
  write_card(writer, mine.card);
  out = std::move(writer.bytes());
  out.resize(kCallBytes, 0);
}

Status decode_contribution(const uint8_t* bytes, Contribution& out) {
  if (std::memcmp(bytes, kMagic, kMagicBytes) != 0)
    return error(Code::InvalidUsage, "the bytes are not what fccl sent");
  ByteReader reader(bytes + kMagicBytes, kCallBytes - kMagicBytes);
  out.call = reader.u8();
  out.wire_version = reader.u16();
  out.library_version = reader.u32();
  out.rank = reader.i32();
  out.ranks = reader.i32();
  // Another version may lay the rest out differently.
  if (out.wire_version != kWireVersion) return {};
  out.status = read_status(reader);
  reader.raw(out.secret.bytes.data(), kSecretBytes);
  out.card = read_card(reader);
  if (!reader.ok()) return error(Code::InvalidUsage, "the bytes are not what fccl sent");
  return {};
}

class AllgatherJoin {
 public:
  explicit AllgatherJoin(const AllgatherJoinArgs& args) : args_(args) {
    mine_.library_version = args.library_version;
    mine_.rank = args.rank;
    mine_.ranks = args.ranks;
    if (fault(args.config->test_fault, "bootstrap.version", args.rank)) mine_.wire_version++;
  }
  // One call of the caller's function; everybody's answer is in all(), the common verdict is
  // returned.
  Status call(uint8_t number, const Status& status);
  Contribution& mine() { return mine_; }
  const std::vector<Contribution>& all() const { return all_; }
  // The last call brought everybody's part, so its verdict is everybody's.
  bool agreed() const { return agreed_; }

 private:
  Status compare() const;
  Status verdict() const;

  const AllgatherJoinArgs& args_;
  Contribution mine_;
  std::vector<Contribution> all_;
  bool agreed_ = false;
};

Status AllgatherJoin::call(uint8_t number, const Status& status) {
  mine_.call = number;
  mine_.status = status;
  std::vector<uint8_t> send;
  encode_contribution(mine_, send);
  const size_t ranks = static_cast<size_t>(args_.ranks);
  std::vector<uint8_t> received(ranks * kCallBytes, 0);
  const int code = args_.allgather(args_.context, send.data(), received.data(), kCallBytes);
  sodium_memzero(send.data(), send.size());
  Status answer;
  if (code != 0)
    answer = error(Code::SystemError, "the caller's allgather function returned %d", code);
  all_.assign(ranks, Contribution{});
  for (size_t peer = 0; peer < ranks && answer.ok(); peer++) {
    answer = decode_contribution(received.data() + peer * kCallBytes, all_[peer]);
    if (!answer.ok())
      answer = error(answer.code(),
                     "the caller's allgather, part of rank %zu: %s",
                     peer,
                     answer.text().c_str());
  }
  sodium_memzero(received.data(), received.size());
  agreed_ = answer.ok();
  FCCL_TRY(answer);
  FCCL_TRY(compare());
  return verdict();
}

// The lowest rank that failed for a reason of its own; one that only waited in vain, if there is
// none.
Status AllgatherJoin::verdict() const {
  Status found;
  for (size_t peer = 0; peer < all_.size(); peer++) {
    const Status& theirs = all_[peer].status;
    if (theirs.ok()) continue;
    const bool cause = theirs.code() != Code::Timeout;
    if (!found.ok() && (!cause || found.code() != Code::Timeout)) continue;
    const int blamed = theirs.rank() >= 0 ? theirs.rank() : static_cast<int>(peer);
    found = Status(theirs.code(), blamed, "rank " + std::to_string(peer) + ": " + theirs.text());
  }
  return found;
}

Status AllgatherJoin::compare() const {
  for (size_t peer = 0; peer < all_.size(); peer++) {
    const Contribution& one = all_[peer];
    if (one.wire_version != all_[0].wire_version || one.library_version != all_[0].library_version)
      return error(Code::VersionMismatch,
                   "rank 0 has fccl %s, rank %zu has fccl %s",
                   version_text(all_[0].library_version, all_[0].wire_version).c_str(),
                   peer,
                   version_text(one.library_version, one.wire_version).c_str());
    if (one.rank != static_cast<int32_t>(peer) || one.ranks != static_cast<int32_t>(all_.size()))
      return error(
          Code::InvalidUsage,
          "part %zu of the caller's allgather is of rank %d of %d; expected rank %zu of %zu",
          peer,
          one.rank,
          one.ranks,
          peer,
          all_.size());
    if (one.call != all_[0].call)
      return error(
          Code::InvalidUsage, "rank %zu is in another call of the caller's allgather", peer);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<Group>> Group::join_allgather(const AllgatherJoinArgs& args,
                                                     const Limit& limit) {
  if (args.allgather == nullptr || args.config == nullptr)
    return error(Code::InvalidArgument, "the allgather function is NULL");
  // Without these the size of the caller's buffers is unknown: the only errors before the calls.
  if (args.ranks < 1 || args.ranks > kMaxRanks || args.rank < 0 || args.rank >= args.ranks)
    return error(Code::InvalidArgument,
                 "rank %d of %d; 1 to %d ranks are possible",
                 args.rank,
                 args.ranks,
                 kMaxRanks);
  const Config& config = *args.config;
  AllgatherJoin join(args);
  LocalRank local;
  Status status = open_local_rank(config, args.rank, local);
  if (status.ok() && fault(config.test_fault, "bootstrap.hello", args.rank))
    status = error(Code::SystemError, "cannot say hello (fault hook)");
  join.mine().card = local.card;
  if (args.rank == 0 && status.ok()) {
    Result<Secret> secret = random_secret();
    status = secret.status();
    if (secret.ok()) join.mine().secret = *secret;
  }
  const Status first = join.call(1, status);
  join.mine().secret.wipe();

  std::unique_ptr<Impl> impl;
  status = first;
  if (first.ok()) {
    MeshArgs mesh;
    mesh.secret = join.all()[0].secret;
    mesh.rank = args.rank;
    mesh.library_version = args.library_version;
    for (const Contribution& one : join.all()) mesh.cards.push_back(one.card);
    status =
        Impl::connect(std::move(mesh), std::move(local.listeners), config, limit, nullptr, impl);
  }
  // A verdict that is everybody's already must not get a second "rank K:".
  const bool known_to_all = !first.ok() && join.agreed();
  const Status second = join.call(2, known_to_all ? Status{} : status);
  FCCL_TRY(first);
  FCCL_TRY(second);
  return std::shared_ptr<Group>(new Group(std::move(impl)));
}

}  // namespace fccl
