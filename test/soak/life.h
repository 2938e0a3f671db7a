// One communicator on one rank, from init to destroy, as its round's plan says. Every answer of the
// library is judged: a success must have the reference's bits, a failure must be one that the
// round's fault explains and must name who failed.
#pragma once
#include <fccl/fccl.h>

#include <string>
#include <thread>

#include "plan.h"

namespace fccl::test {

class Life {
 public:
  Life(const RoundPlan& plan, int rank, int communicator, const fcclUniqueId& id);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // Each answers what is wrong, or "".
  std::string begin();
  std::string step(int call);  // nothing once the communicator has failed or this rank has left
  std::string end();
  int calls() const { return static_cast<int>(mine().calls.size()); }

 private:
  const CommunicatorPlan& mine() const {
    return plan_.communicators[static_cast<size_t>(communicator_)];
  }
  bool is_hit() const;
  bool is_victim() const { return is_hit() && rank_ == plan_.victim; }
  void start_fault(int call);
  int first_call_that_may_fail() const;
  std::string judge(fcclComm_t comm, fcclResult_t code, const char* what, int call);
  std::string make_call(fcclComm_t comm, int rank, int ranks, const SoakCall& call, int number);
  std::string split();
  std::string destroy(fcclComm_t comm);

  const RoundPlan& plan_;
  const int rank_;
  const int communicator_;
  const fcclUniqueId id_;
  fcclComm_t comm_ = nullptr;
  bool is_over_ = false;  // failed, or left
  std::thread saboteur_;
};

// The whole of a rank's round: the errors, one a line, or "".
std::string run_rank(const RoundPlan& plan, int rank, const std::vector<fcclUniqueId>& ids);

}  // namespace fccl::test
