// Splitting a group: the members of one color meet over the parent's encrypted streams and build an
// independent mesh of their own.
//
//   allgather over the parent   color, key, card, and a candidate for the mesh secret; the group
//   takes
//                               that of its first rank
//   (each color builds its mesh; the others see nothing of it)
//   vote over the parent        all colors stand, or nobody gets a group
#include <sodium.h>

#include <algorithm>

#include "base/fault.h"
#include "bootstrap/group_impl.h"

namespace fccl {
namespace {

struct SplitEntry {
  int32_t color = -1;
  int32_t key = 0;
  int parent_rank = -1;
  Secret secret;
  RankCard card;
};

std::vector<uint8_t> encode_entry(const SplitEntry& entry) {
  ByteWriter writer;
  writer.bytes().reserve(1024);
  writer.i32(entry.color);
  writer.i32(entry.key);
  writer.raw(entry.secret.bytes.data(), kSecretBytes);
  write_card(writer, entry.card);
  return std::move(writer.bytes());
}

Result<SplitEntry> decode_entry(int rank, const std::vector<uint8_t>& bytes) {
  ByteReader reader(bytes);
  SplitEntry entry;
  entry.parent_rank = rank;
  entry.color = reader.i32();
  entry.key = reader.i32();
  reader.raw(entry.secret.bytes.data(), kSecretBytes);
  entry.card = read_card(reader);
  if (!reader.at_end())
    return error_of_rank(rank, Code::RemoteError, "rank %d sent a malformed part of a split", rank);
  return entry;
}

// The parent's reader thread notices deaths; the new mesh is built only while all parents live.
class ParentWatch : public MeshWatch {
 public:
  explicit ParentWatch(const Group& parent) : parent_(parent) {}
  int fd() const override { return -1; }
  Status check() override { return parent_.health(); }

 private:
  const Group& parent_;
};

}  // namespace

Result<std::shared_ptr<Group>> Group::split(int color, int key, const Limit& limit) {
  if (!owned_by_this_process())
    return error(Code::InvalidUsage, "this communicator belongs to the process before the fork");
  const Config& config = impl_->config;
  LocalRank local;
  SplitEntry mine;
  Status status = open_local_rank(config, rank(), local);
  if (status.ok() && fault(config.test_fault, "bootstrap.split", rank()))
    status = error(Code::SystemError, "cannot split (fault hook)");
  if (status.ok()) status = random_bytes(mine.secret.bytes.data(), kSecretBytes);
  mine.color = color;
  mine.key = key;
  mine.card = local.card;
  std::vector<uint8_t> blob = encode_entry(mine);
  std::vector<std::vector<uint8_t>> all;
  status = allgather(status, blob.data(), blob.size(), all, limit, "split");
  sodium_memzero(blob.data(), blob.size());
  FCCL_TRY(status);

  std::vector<SplitEntry> members;
  for (size_t peer = 0; peer < all.size(); peer++) {
    Result<SplitEntry> entry = decode_entry(static_cast<int>(peer), all[peer]);
    sodium_memzero(all[peer].data(), all[peer].size());
    if (!entry.ok() && status.ok()) status = entry.status();
    if (entry.ok() && color >= 0 && entry->color == color) members.push_back(std::move(*entry));
  }
  std::stable_sort(members.begin(), members.end(), [](const SplitEntry& a, const SplitEntry& b) {
    return a.key < b.key;
  });
  std::unique_ptr<Impl> impl;
  if (status.ok() && color >= 0) {
    MeshArgs mesh;
    mesh.secret = members[0].secret;
    mesh.hook = "bootstrap.split.mesh";
    mesh.library_version = impl_->library_version;
    for (const SplitEntry& member : members) {
      if (member.parent_rank == rank()) mesh.rank = static_cast<int>(mesh.cards.size());
      mesh.cards.push_back(member.card);
    }
    ParentWatch watch(*this);
    status =
        Impl::connect(std::move(mesh), std::move(local.listeners), config, limit, &watch, impl);
  }
  FCCL_TRY(vote(status, limit, "split done"));
  if (!impl) return std::shared_ptr<Group>();
  return std::shared_ptr<Group>(new Group(std::move(impl)));
}

}  // namespace fccl
