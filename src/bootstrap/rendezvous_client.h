// Rendezvous client: one rank's side of the conversation that rendezvous_service.h describes. Its
// stream stays open while the mesh is built, so that the service sees this rank's death and this
// rank hears of the others'.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/connector.h"
#include "bootstrap/mesh.h"
#include "bootstrap/messages.h"

namespace fccl {

struct RendezvousArgs {
  Secret secret;
  Hello mine;
  std::vector<Endpoint> endpoints;
  RendezvousHello hello;
  bool fixed = false;  // the service may come later than we do
  uint32_t creator_pid = 0;
};

class RendezvousClient : public MeshWatch {
 public:
  // Connects, introduces this rank and waits for the table of all ranks.
  static Result<std::unique_ptr<RendezvousClient>> meet(const RendezvousArgs& args,
                                                        const Limit& limit);
  // Of the table.
  const Secret& mesh_secret() const { return table_.secret; }
  const std::vector<RankCard>& cards() const { return table_.cards; }

  int fd() const override { return stream_.fd(); }
  Status check() override;
  // Reports how this rank fared and waits for the verdict of all.
  Status conclude(const Status& mine, const Limit& limit);

 private:
  RendezvousClient(const RendezvousArgs& args, Stream stream)
      : stream_(std::move(stream)), creator_pid_(args.creator_pid), rank_(args.mine.rank) {}
  // Reads what is there; sets table_ or verdict_.
  Status take_messages();
  Status wait_for(RendezvousKind kind, const Limit& limit);
  Status closed() const;

  Stream stream_;
  uint32_t creator_pid_;
  int rank_;
  RendezvousMessage table_;
  bool have_table_ = false;
  Status verdict_;
  bool have_verdict_ = false;
};

}  // namespace fccl
