// Pair classes and summaries, by table. Each row is a pair of ranks on paper.
#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/catch.h"
#include "topology/facts.h"

using namespace fccl;

namespace {

RankFacts cpu_rank(int rank) {
  RankFacts facts;
  facts.bytes = sizeof(RankFacts);
  facts.rank = rank;
  facts.pid = 100 + rank;
  facts.process_token = static_cast<uint64_t>(1000 + rank);
  facts.host_id = facts.boot_id_hash = 5;
  facts.backends = kBackendCpu;
  facts.memory_kinds = kMemoryPointer | kMemoryMemfd;
  facts.cpu_level = static_cast<int32_t>(CpuLevel::V3);
  facts.allowed[0] = 0xff;
  std::strcpy(facts.host_name, "host");
  return facts;
}

RankFacts gpu_rank(int rank) {
  RankFacts facts = cpu_rank(rank);
  facts.has_device = 1;
  facts.backends |= kBackendCuda;
  facts.memory_kinds |= kMemoryDeviceFd | kMemoryDeviceIpc;
  facts.device.uuid[0] = static_cast<uint8_t>(rank + 1);
  facts.device.pci = pci_address(0, static_cast<uint32_t>(0x10 + rank), 0, 0);
  facts.device.sm_count = 132;
  facts.device.arch = 900;
  return facts;
}

void link(RankFacts* from, const RankFacts& to, bool through_switch, uint32_t speed = 100) {
  DeviceLinkFacts& entry = from->device.links[from->device.link_count++];
  entry.peer = to.device.pci;
  entry.through_switch = through_switch ? 1 : 0;
  entry.megabytes_per_second = speed;
}

void set_path(RankFacts* facts, std::vector<PciAddress> path) {
  facts->device.pci_path_count = static_cast<uint32_t>(path.size());
  std::copy(path.begin(), path.end(), facts->device.pci_path);
}

void set_clique(RankFacts* facts, uint8_t cluster, uint32_t clique) {
  facts->device.fabric_cluster[0] = cluster;
  facts->device.fabric_clique = clique;
  facts->memory_kinds |= kMemoryDeviceFabric;
}

}  // namespace

TEST_CASE("classify_pairs_of_cpu_ranks") {
  using Change = void (*)(RankFacts*, RankFacts*);
  struct Row {
    const char* name;
    Change change;
    PairClass reach;
    bool same_host, same_process;
  };
  const Row rows[] = {
      {"two processes", [](RankFacts*, RankFacts*) {}, PairClass::SameNode, true, false},
      {"two threads",
       [](RankFacts* a, RankFacts* b) {
         b->pid = a->pid;
         b->process_token = a->process_token;
       },
       PairClass::SameProcess,
       true,
       true},
      {"equal pids of two pid namespaces",
       [](RankFacts* a, RankFacts* b) { b->pid = a->pid; },
       PairClass::SameNode,
       true,
       false},
      {"two NUMA nodes",
       [](RankFacts* a, RankFacts* b) {
         a->numa_node = 0;
         b->numa_node = 1;
       },
       PairClass::NumaHop,
       true,
       false},
      {"one NUMA node known",
       [](RankFacts* a, RankFacts*) { a->numa_node = 0; },
       PairClass::SameNode,
       true,
       false},
      {"two threads on two NUMA nodes",
       [](RankFacts* a, RankFacts* b) {
         b->pid = a->pid;
         b->process_token = a->process_token;
         a->numa_node = 0;
         b->numa_node = 1;
       },
       PairClass::NumaHop,
       true,
       true},
      {"equal boot id, other FCCL_HOSTID",
       [](RankFacts*, RankFacts* b) { b->host_id = 6; },
       PairClass::Network,
       false,
       false},
      {"equal FCCL_HOSTID and host name, other boot id",
       [](RankFacts*, RankFacts* b) { b->boot_id_hash = 6; },
       PairClass::Network,
       false,
       false},
      {"other host name, equal boot id",
       [](RankFacts*, RankFacts* b) { std::strcpy(b->host_name, "container"); },
       PairClass::SameNode,
       true,
       false},
      {"equal process token on two hosts",
       [](RankFacts* a, RankFacts* b) {
         b->pid = a->pid;
         b->process_token = a->process_token;
         b->host_id = b->boot_id_hash = 6;
       },
       PairClass::Network,
       false,
       false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    RankFacts a = cpu_rank(0), b = cpu_rank(1);
    row.change(&a, &b);
    const CommFacts comm = classify({a, b});
    CHECK(pair_class_name(comm.pair(0, 1).reach) == std::string(pair_class_name(row.reach)));
    CHECK(comm.pair(0, 1) == comm.pair(1, 0));
    CHECK(comm.pair(0, 0).reach == PairClass::Self);
    CHECK(comm.same_host == row.same_host);
    CHECK(comm.same_process == row.same_process);
    CHECK(comm.hosts.size() == (row.same_host ? 1u : 2u));
    CHECK_FALSE(comm.full_mesh);
    CHECK(comm.farthest == row.reach);
  }
}

TEST_CASE("classify_pairs_of_devices") {
  using Change = void (*)(RankFacts*, RankFacts*);
  struct Row {
    const char* name;
    Change change;
    PairClass reach;
    bool full_mesh;
  };
  const Row rows[] = {
      {"nothing known", [](RankFacts*, RankFacts*) {}, PairClass::PciHost, false},
      {"a link, one end reports it",
       [](RankFacts* a, RankFacts* b) { link(a, *b, false); },
       PairClass::DirectLink,
       true},
      {"a link, the other end reports it",
       [](RankFacts* a, RankFacts* b) { link(b, *a, false); },
       PairClass::DirectLink,
       true},
      {"over a switch",
       [](RankFacts* a, RankFacts* b) {
         link(a, *b, true);
         link(b, *a, true);
       },
       PairClass::Switch,
       true},
      {"one PCI switch",
       [](RankFacts* a, RankFacts* b) {
         set_path(a, {1, 2, 3});
         set_path(b, {1, 2, 4});
       },
       PairClass::Pci,
       false},
      {"one host bridge only",
       [](RankFacts* a, RankFacts* b) {
         set_path(a, {1, 2});
         set_path(b, {1, 3});
       },
       PairClass::PciHost,
       false},
      {"two NUMA nodes",
       [](RankFacts* a, RankFacts* b) {
         a->device.numa_node = 0;
         b->device.numa_node = 1;
       },
       PairClass::PciNuma,
       false},
      {"one device for two ranks",
       [](RankFacts* a, RankFacts* b) { b->device = a->device; },
       PairClass::DirectLink,
       true},
      {"two parts of one device",
       [](RankFacts* a, RankFacts* b) { b->device.pci = a->device.pci; },
       PairClass::PciHost,
       false},
      {"two hosts",
       [](RankFacts*, RankFacts* b) { b->host_id = b->boot_id_hash = 6; },
       PairClass::Network,
       false},
      {"two hosts, a link to an equal address there",
       [](RankFacts* a, RankFacts* b) {
         link(a, *b, false);
         b->host_id = b->boot_id_hash = 6;
       },
       PairClass::Network,
       false},
      {"two hosts, one fabric clique",
       [](RankFacts* a, RankFacts* b) {
         b->host_id = b->boot_id_hash = 6;
         set_clique(a, 9, 1);
         set_clique(b, 9, 1);
       },
       PairClass::Switch,
       true},
      {"two hosts, two cliques of one fabric",
       [](RankFacts* a, RankFacts* b) {
         b->host_id = b->boot_id_hash = 6;
         set_clique(a, 9, 1);
         set_clique(b, 9, 2);
       },
       PairClass::Network,
       false},
      {"two hosts, no fabric and equal clique numbers",
       [](RankFacts* a, RankFacts* b) {
         b->host_id = b->boot_id_hash = 6;
         set_clique(a, 0, 1);
         set_clique(b, 0, 1);
       },
       PairClass::Network,
       false},
      {"one clique, but one rank has no fabric memory",
       [](RankFacts* a, RankFacts* b) {
         b->host_id = b->boot_id_hash = 6;
         set_clique(a, 9, 1);
         set_clique(b, 9, 1);
         b->memory_kinds &= ~uint32_t{kMemoryDeviceFabric};
       },
       PairClass::Network,
       false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    RankFacts a = gpu_rank(0), b = gpu_rank(1);
    row.change(&a, &b);
    const CommFacts comm = classify({a, b});
    REQUIRE(comm.of_devices);
    CHECK(pair_class_name(comm.pair(0, 1).reach) == std::string(pair_class_name(row.reach)));
    CHECK(comm.pair(0, 1) == comm.pair(1, 0));
    CHECK(comm.full_mesh == row.full_mesh);
  }
}

TEST_CASE("classify_one_missing_link_breaks_the_full_mesh") {
  std::vector<RankFacts> ranks = {gpu_rank(0), gpu_rank(1), gpu_rank(2), gpu_rank(3)};
  for (RankFacts& a : ranks) {
    for (const RankFacts& b : ranks) {
      if (a.rank != b.rank) link(&a, b, false);
    }
  }
  CHECK(classify(ranks).full_mesh);
  CHECK_FALSE(classify(ranks).switched);
  const auto forget = [&](int from, int to) {
    DeviceFacts& device = ranks[static_cast<size_t>(from)].device;
    for (DeviceLinkFacts& entry : device.links) {
      if (entry.peer == ranks[static_cast<size_t>(to)].device.pci) entry.peer = kNoPci;
    }
  };
  forget(1, 3);
  CHECK(classify(ranks).full_mesh);  // the other end still reports it
  forget(3, 1);
  const CommFacts comm = classify(ranks);
  CHECK_FALSE(comm.full_mesh);
  CHECK(comm.pair(1, 3).reach == PairClass::PciHost);
  CHECK(comm.pair(0, 3).reach == PairClass::DirectLink);
}

TEST_CASE("classify_one_clique_only_if_all_ranks_share_it") {
  std::vector<RankFacts> ranks;
  for (int rank = 0; rank < 16; ++rank) {
    ranks.push_back(gpu_rank(rank));
    ranks.back().host_id = ranks.back().boot_id_hash = static_cast<uint64_t>(1 + rank / 8);
    set_clique(&ranks.back(), 3, 0);
  }
  CHECK(classify(ranks).one_clique);
  CHECK(classify(ranks).full_mesh == false);  // within a host nothing is known but the clique
  ranks[15].device.fabric_clique = 1;
  CHECK_FALSE(classify(ranks).one_clique);
}

TEST_CASE("classify_names_the_first_two_ranks_on_one_device") {
  std::vector<RankFacts> ranks = {gpu_rank(0), gpu_rank(1), gpu_rank(2), gpu_rank(3)};
  CHECK(classify(ranks).shared_device_rank[0] == -1);
  ranks[3].device = ranks[1].device;
  const CommFacts comm = classify(ranks);
  CHECK(comm.shared_device_rank[0] == 1);
  CHECK(comm.shared_device_rank[1] == 3);
}

TEST_CASE("classify_may_be_asked_for_hosts_in_spite_of_devices") {
  const std::vector<RankFacts> ranks = {gpu_rank(0), gpu_rank(1)};
  CHECK(classify(ranks, Between::Hosts).pair(0, 1).reach == PairClass::SameNode);
  CHECK_FALSE(classify(ranks, Between::Hosts).of_devices);
  CHECK_FALSE(classify({gpu_rank(0), cpu_rank(1)}, Between::Devices).of_devices);
}

TEST_CASE("classify_takes_what_all_ranks_have") {
  std::vector<RankFacts> ranks = {gpu_rank(0), gpu_rank(1), gpu_rank(2)};
  ranks[1].backends = kBackendCpu;
  ranks[2].memory_kinds = kMemoryMemfd | kMemoryDeviceIpc;
  ranks[2].cpu_level = static_cast<int32_t>(CpuLevel::V2);
  ranks[1].device.sm_count = 114;
  ranks[2].device.arch = 1000;
  const CommFacts comm = classify(ranks);
  CHECK(comm.backends == kBackendCpu);
  CHECK(comm.memory_kinds == (kMemoryMemfd | kMemoryDeviceIpc));
  CHECK(comm.cpu_level == CpuLevel::V2);
  CHECK(comm.min_sm_count == 114);
  CHECK(comm.min_arch == 900);
  CHECK(comm.max_arch == 1000);
}

TEST_CASE("classify_oversubscription") {
  struct Row {
    const char* name;
    int ranks;
    uint64_t masks[4];
    uint32_t quotas[4];
    uint64_t groups[4];
    bool oversubscribed;
    int cpus;
  };
  const Row rows[] = {
      {"as many CPUs as ranks", 4, {0xf, 0xf, 0xf, 0xf}, {}, {}, false, 4},
      {"more ranks than CPUs", 4, {7, 7, 7, 7}, {}, {}, true, 3},
      {"each bound to its own CPU", 4, {1, 2, 4, 8}, {}, {}, false, 4},
      {"two bound to one CPU", 4, {1, 1, 4, 0xf0}, {}, {}, true, 6},
      {"one quota for all", 2, {0xff, 0xff}, {1500, 1500}, {9, 9}, true, 1},
      {"a quota of two CPUs", 2, {0xff, 0xff}, {2000, 2000}, {9, 9}, false, 2},
      {"two quotas", 2, {0xff, 0xff}, {1000, 1000}, {8, 9}, false, 2},
      {"a quota wider than the mask", 2, {1, 1}, {64000, 64000}, {9, 9}, true, 1},
      {"only one rank under a quota", 2, {3, 3}, {100, 0}, {9, 0}, false, 2},
      {"a tiny quota", 1, {3}, {100}, {9}, false, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<RankFacts> ranks;
    for (int rank = 0; rank < row.ranks; ++rank) {
      ranks.push_back(cpu_rank(rank));
      ranks.back().allowed[0] = row.masks[rank];
      ranks.back().quota_millicpus = row.quotas[rank];
      ranks.back().quota_group = row.groups[rank];
    }
    const CommFacts comm = classify(ranks);
    CHECK(comm.oversubscribed == row.oversubscribed);
    CHECK(comm.hosts[0].cpus == row.cpus);
  }
}

TEST_CASE("classify_hosts_in_order_of_their_lowest_rank") {
  std::vector<RankFacts> ranks;
  for (int rank = 0; rank < 6; ++rank) {
    ranks.push_back(cpu_rank(rank));
    ranks.back().host_id = ranks.back().boot_id_hash = static_cast<uint64_t>(9 - rank % 2);
    ranks.back().numa_node = rank < 4 ? 0 : 1;
  }
  const CommFacts comm = classify(ranks);
  REQUIRE(comm.hosts.size() == 2);
  CHECK(comm.hosts[0].ranks == std::vector<int>{0, 2, 4});
  CHECK(comm.hosts[1].ranks == std::vector<int>{1, 3, 5});
  CHECK(comm.host_of == std::vector<int>{0, 1, 0, 1, 0, 1});
  CHECK(comm.max_ranks_per_host == 3);
  CHECK(comm.numa_nodes == 2);
}

TEST_CASE("classify_is_the_same_on_every_rank") {
  std::vector<RankFacts> ranks = {gpu_rank(0), gpu_rank(1), gpu_rank(2)};
  link(&ranks[0], ranks[1], false);
  // What a rank has after it received bytes.
  std::vector<RankFacts> received(ranks.size());
  std::memcpy(static_cast<void*>(received.data()), ranks.data(), sizeof(RankFacts) * ranks.size());
  const CommFacts here = classify(ranks), there = classify(received);
  CHECK(here.pairs == there.pairs);
  CHECK(here.hosts == there.hosts);
  CHECK(comm_json(here) == comm_json(there));
  CHECK(comm_text(here) == comm_text(there));
}

TEST_CASE("classify_survives_no_ranks_and_one_rank") {
  CHECK(classify({}).ranks == 0);
  const CommFacts one = classify({gpu_rank(0)});
  CHECK(one.farthest == PairClass::Self);
  CHECK_FALSE(one.full_mesh);
  CHECK(one.same_host);
}
