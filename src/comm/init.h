// The phases of init, one small function each. Every phase ends in an exchange or a vote, so that
// all ranks go on together or stop together with one error that names the rank and the cause. A
// failure of this rank alone never returns early: it is carried into the next exchange.
#pragma once
#include "comm/communicator.h"

namespace fccl {

class Init {
 public:
  Init(Communicator& comm, const Limit& limit) : comm_(comm), limit_(limit) {}
  Status run(const Communicator::Join& join);

 private:
  Status find_local_facts();
  Status describe_backends();
  Status join_group(const Communicator::Join& join);
  Status exchange_facts(const Status& local);
  Status choose_backend();
  Status refuse_shared_device();
  Status refuse_other_hosts();
  Status open_device();
  Status make_workspace();
  Status test_paths();
  Status share_costs();

  Group& group() { return *comm_.group_; }
  const Settings& settings() const { return comm_.settings_; }
  CommFacts& facts() { return comm_.situation_.facts; }

  Communicator& comm_;
  const Limit& limit_;
  MachineFacts machine_;
  RankFacts mine_;
  std::vector<RankFacts> all_;
};

}  // namespace fccl
