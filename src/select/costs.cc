// The built-in cost tables. Each line: fixed cost of a launch, cost of a MiB pushed to peers, cost
// of a MiB read or written locally. Where they come from stands beside them.
#include <algorithm>

#include "select/plan.h"

namespace fccl {
namespace {

constexpr double kMiB = 1048576.0;

// CPU ranks: measured on 2 cores of a server, 2 ranks, bf16, hidden 4096, 1 to 128 tokens, warm
// caches. Flags win at every size: a mailbox line changes its owner three times (push, read,
// re-arm), a staged line twice. Over two sockets a line costs about twice as much to move. With
// more ranks than CPUs the ranks of a CPU do their work one after the other, and each hop waits
// until all had their turn: whatever leaves ranks less to do wins.
std::vector<CostRow> cpu_costs(const CommFacts& facts) {
  constexpr double kTurnUs = 0.7;  // to give a CPU to another rank
  double crowding = 1;  // ranks of a CPU
  for (const HostFacts& host : facts.hosts)
    crowding = std::max(crowding, static_cast<double>(host.ranks.size()) / std::max(host.cpus, 1));
  std::vector<CostRow> rows = {
      {AlgoKind::Oneshot, ProtocolKind::Flags, 0, 0.8, 80, 112},
      {AlgoKind::TwoshotCols, ProtocolKind::Flags, 0, 2.5, 80, 160},
      {AlgoKind::TwoshotRows, ProtocolKind::Flags, 0, 2.5, 80, 80},
      {AlgoKind::Oneshot, ProtocolKind::Lamport, 0, 2.5, 300, 220},
      {AlgoKind::Oneshot, ProtocolKind::LL, 0, 4.0, 500, 300},
      {AlgoKind::TwoshotCols, ProtocolKind::Lamport, 0, 5.0, 300, 200},
      {AlgoKind::TwoshotRows, ProtocolKind::Lamport, 0, 7.0, 300, 180},
  };
  for (CostRow& row : rows) {
    const int hops = row.algo == AlgoKind::Oneshot ? 1 : 2;
    if (facts.farthest == PairClass::NumaHop) {
      row.fixed_us *= hops == 1 ? 1.5 : 2.0;
      row.us_per_mib_pushed *= 2.0;
    }
    if (!facts.oversubscribed) continue;
    row.fixed_us = crowding * (row.fixed_us + hops * kTurnUs);
    row.us_per_mib_pushed *= crowding;
    row.us_per_mib_local *= crowding;
  }
  return rows;
}

// Hopper over NVLink: 360 GB/s pushed (2.9 us per MiB). Measured with two ranks of 2 x H200, bf16,
// 1 to 1024 tokens of hidden 4096, each algorithm within 15 %; for more ranks this is the model.
std::vector<CostRow> nvlink_costs() {
  return {
      {AlgoKind::Oneshot, ProtocolKind::Lamport, 0, 2.6, 2.9, 0.12},
      {AlgoKind::Oneshot, ProtocolKind::LL, 0, 4.2, 5.8, 0.3},
      {AlgoKind::Oneshot, ProtocolKind::Flags, 0, 5.3, 2.9, 0.64},
      {AlgoKind::TwoshotRows, ProtocolKind::Lamport, 0, 6.0, 2.9, 0.16},
      {AlgoKind::TwoshotCols, ProtocolKind::Lamport, 0, 6.8, 2.9, 0.6},
      {AlgoKind::TwoshotRows, ProtocolKind::Flags, 0, 8.3, 2.9, 0.18},
      {AlgoKind::TwoshotCols, ProtocolKind::Flags, 0, 9.4, 2.9, 0.69},
  };
}

// PCI: about 22 GB/s each way and slow to reach; fewer bytes win early.
std::vector<CostRow> pci_costs() {
  std::vector<CostRow> rows = nvlink_costs();
  for (CostRow& row : rows) {
    row.fixed_us += row.algo == AlgoKind::Oneshot ? 2.0 : 3.0;
    row.us_per_mib_pushed = row.protocol == ProtocolKind::LL ? 96 : 48;
  }
  return rows;
}

}  // namespace

std::vector<CostRow> builtin_costs(BackendKind backend, const CommFacts& facts) {
  if (backend == BackendKind::Cpu) return cpu_costs(facts);
  return facts.full_mesh ? nvlink_costs() : pci_costs();
}

Volume volume_of(AlgoKind algo, ProtocolKind protocol, int ranks, uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / kMiB;
  const double others = ranks - 1;
  const double lines = protocol == ProtocolKind::LL ? 2.0 : 1.0;
  if (algo == AlgoKind::Oneshot) return {mib * others * lines, mib * ranks};
  return {mib * 2.0 * others / ranks * lines, mib * 2.0};
}

}  // namespace fccl
