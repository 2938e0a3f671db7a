// What is measured: fccl's call, or a peer that does the same work another way. One object per
// rank.
#pragma once

#include <fccl/fccl.h>

#include <memory>
#include <string>

#include "fccl_perf/case.h"
#include "fccl_perf/result.h"
#include "fccl_perf/team.h"
#include "fccl_perf/workbench.h"

namespace perf {

// What a contestant needs of its rank. All pointers outlive it.
struct Bench {
  const Options* options = nullptr;
  Device* device = nullptr;
  Team* team = nullptr;
  fcclComm_t comm = nullptr;
  int rank = 0;
  int ranks = 1;
  std::string folder;  // prefix of private paths of this run
};

class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual std::string name() const = 0;
  // One line: what runs, for the reader of the comparison.
  virtual std::string description() const = 0;
  // Before calls of this case; may allocate.
  virtual Outcome prepare(const Case& one) = 0;
  // Issues one call.
  virtual Outcome call(const Case& one, const Operands& operands) = 0;
  // Does it keep the residual in the owner's rows only (--row-sharded)?
  virtual bool shards() const { return false; }
  // Does it promise the one canonical NaN?
  virtual bool canonical_nan() const { return false; }
  Placement placement(bool in_place) const { return {in_place, shards(), canonical_nan()}; }
  virtual Plan plan(const Case& /*one*/, const Operands& /*operands*/) { return {}; }
};

// fccl itself, for the operation of the options.
std::unique_ptr<Contestant> make_contestant(const Bench& bench, Op op);
// A peer by its --vs name. Collective: all ranks make their peers in the same order. Null with
// `problem` if it cannot run here.
std::unique_ptr<Contestant> make_peer(const Bench& bench, const std::string& name,
                                      std::string& problem);
std::unique_ptr<Contestant> make_nccl_peer(const Bench& bench, std::string& problem);
std::unique_ptr<Contestant> make_plugin_peer(const Bench& bench, const std::string& name,
                                             std::string& problem);

Outcome fccl_outcome(fcclResult_t result, fcclComm_t comm, const char* what);

// Adds the residual and normalises what an engine's all_reduce left: the CPU's vectorised norm, or,
// on a GPU and for unusual epilogues, fccl's own kernel on a communicator of one rank.
class Norm {
 public:
  ~Norm();
  explicit Norm(const Bench& bench) : bench_(bench) {}
  Norm(const Norm&) = delete;
  Norm& operator=(const Norm&) = delete;
  Outcome prepare(const Case& one);
  // `sum_type`: datatype of the case, or float on the CPU.
  Outcome run(const Case& one, const Operands& operands, const void* sum, int sum_type);
  std::string description() const;

 private:
  bool local() const;
  Bench bench_;
  fcclComm_t alone_ = nullptr;
};

fcclFusedArgs fused_args(const Options& options, const Case& one, const Operands& operands);

}  // namespace perf
