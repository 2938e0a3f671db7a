// The plain data: PCI addresses, masks, and the check of what a peer sent.
#include "topology/facts.h"

#include <cstring>
#include <random>

#include "harness/catch.h"
#include "topology/detect.h"

using namespace fccl;

namespace {

RankFacts good_facts(int rank) {
  RankFacts facts;
  facts.bytes = sizeof(RankFacts);
  facts.rank = rank;
  facts.pid = 100 + rank;
  facts.process_token = 7;
  facts.host_id = 11;
  facts.boot_id_hash = 13;
  facts.allowed[0] = 3;
  facts.has_device = 1;
  facts.device.uuid[0] = 1;
  return facts;
}

}  // namespace

TEST_CASE("facts_pci_addresses") {
  struct Row {
    const char* text;
    PciAddress address;
    bool legal;
  };
  const Row rows[] = {
      {"0000:3b:00.0", pci_address(0, 0x3b, 0, 0), true},
      {"3b:1f.7", pci_address(0, 0x3b, 0x1f, 7), true},
      {"10000:01:00.1", pci_address(0x10000, 1, 0, 1), true},
      {"ffffffff:ff:1f.7", pci_address(0xffffffff, 0xff, 0x1f, 7), true},
      {"", 0, false},
      {".", 0, false},
      {":", 0, false},
      {"3b", 0, false},
      {"3b:00", 0, false},
      {"3b:20.0", 0, false},
      {"3b:00.8", 0, false},
      {"100:00.0", 0, false},
      {"0000:3b:00.0x", 0, false},
      {"0000:3b:00.", 0, false},
      {":3b:00.0", 0, false},
      {"0:0:3b:00.0", 0, false},
      {"-1:3b:00.0", 0, false},
      {"0000:3b:00.0 ", 0, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    Result<PciAddress> parsed = parse_pci(row.text);
    REQUIRE(parsed.ok() == row.legal);
    if (row.legal) CHECK(*parsed == row.address);
  }
  CHECK(parse_pci("a\nb").status().text() == "'a?b' is no PCI address");
  CHECK(pci_text(pci_address(0, 0x3b, 0x1f, 7)) == "0000:3b:1f.7");
  CHECK(pci_text(pci_address(0x10000, 1, 0, 1)) == "10000:01:00.1");
  CHECK(pci_text(kNoPci) == "none");
}

TEST_CASE("facts_masks_ignore_cpus_out_of_range") {
  CpuMask mask;
  for (int cpu : {-1, 0, 63, 64, kMaxCpus - 1, kMaxCpus, 1 << 30}) mask.add(cpu);
  CHECK(mask.count() == 4);
  CHECK(mask.has(kMaxCpus - 1));
  CHECK_FALSE(mask.has(kMaxCpus));
  CHECK_FALSE(mask.has(-1));
  CpuMask wider = mask;
  wider.add(5);
  CHECK(mask.inside(wider));
  CHECK_FALSE(wider.inside(mask));
}

TEST_CASE("facts_of_this_process_are_valid_for_a_peer") {
  Result<MachineFacts> machine = detect_machine(Config());
  REQUIRE(machine.ok());
  CHECK(validate(local_rank_facts(*machine, 3), 3, 4).ok());
}

TEST_CASE("facts_of_a_peer_are_checked_field_by_field") {
  using Spoil = void (*)(RankFacts*);
  struct Row {
    const char* what;
    Spoil spoil;
  };
  const Row rows[] = {
      {"layout", [](RankFacts* f) { f->magic ^= 1; }},
      {"layout", [](RankFacts* f) { f->bytes -= 8; }},
      {"say rank 3", [](RankFacts* f) { f->rank = 3; }},
      {"say rank -1", [](RankFacts* f) { f->rank = -1; }},
      {"process id", [](RankFacts* f) { f->pid = 0; }},
      {"process token", [](RankFacts* f) { f->process_token = 0; }},
      {"host id", [](RankFacts* f) { f->host_id = 0; }},
      {"host id", [](RankFacts* f) { f->boot_id_hash = 0; }},
      {"NUMA node", [](RankFacts* f) { f->numa_node = -2; }},
      {"NUMA node", [](RankFacts* f) { f->numa_node = INT32_MAX; }},
      {"CPU level", [](RankFacts* f) { f->cpu_level = 5; }},
      {"CPU level", [](RankFacts* f) { f->cpu_level = -1; }},
      {"backends", [](RankFacts* f) { f->backends = 1; }},
      {"memory kinds", [](RankFacts* f) { f->memory_kinds = 1u << 31; }},
      {"device mark", [](RankFacts* f) { f->has_device = 2; }},
      {"set of CPUs", [](RankFacts* f) { f->allowed[0] = 0; }},
      {"host name", [](RankFacts* f) { std::memset(f->host_name, 'x', sizeof f->host_name); }},
      {"host name", [](RankFacts* f) { f->host_name[0] = '\n'; }},
      {"device uuid", [](RankFacts* f) { f->device.uuid[0] = 0; }},
      {"device PCI", [](RankFacts* f) { f->device.pci = uint64_t{1} << 48; }},
      {"PCI path", [](RankFacts* f) { f->device.pci_path_count = kMaxPciPath + 1; }},
      {"PCI path", [](RankFacts* f) { f->device.pci_path_count = UINT32_MAX; }},
      {"device links", [](RankFacts* f) { f->device.link_count = kMaxDeviceLinks + 1; }},
      {"device link",
       [](RankFacts* f) {
         f->device.link_count = 1;
         f->device.links[0].through_switch = 2;
       }},
      {"SMs", [](RankFacts* f) { f->device.sm_count = UINT32_MAX; }},
      {"NUMA node of the device", [](RankFacts* f) { f->device.numa_node = -7; }},
      {"device name", [](RankFacts* f) { std::memset(f->device.name, 1, 64); }},
  };
  REQUIRE(validate(good_facts(2), 2, 4).ok());
  for (const Row& row : rows) {
    CAPTURE(row.what);
    RankFacts facts = good_facts(2);
    row.spoil(&facts);
    const Status status = validate(facts, 2, 4);
    REQUIRE_FALSE(status.ok());
    CHECK(status.rank() == 2);
    INFO(status.text());
    CHECK(status.text().find("rank 2") != std::string::npos);
    CHECK(status.text().find(row.what) != std::string::npos);
  }
  CHECK_FALSE(validate(good_facts(4), 4, 4).ok());
}

TEST_CASE("facts_a_device_that_is_not_there_is_not_looked_at") {
  RankFacts facts = good_facts(0);
  facts.has_device = 0;
  std::memset(static_cast<void*>(&facts.device), 0xff, sizeof facts.device);
  REQUIRE(validate(facts, 0, 1).ok());
  const CommFacts comm = classify({facts});
  CHECK_FALSE(comm.of_devices);
  CHECK(comm_json(comm).find("uuid") == std::string::npos);
}

// Whatever passes the check can be classified and written: run it under a sanitizer.
TEST_CASE("facts_random_bytes_never_break_classify") {
  std::mt19937_64 random(20261129);
  int passed = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<RankFacts> all;
    for (int rank = 0; rank < 3; ++rank) {
      RankFacts facts = good_facts(rank);
      for (int flips = 0; flips < 3; ++flips) {
        auto* bytes = reinterpret_cast<unsigned char*>(&facts);
        bytes[random() % sizeof facts] = static_cast<unsigned char>(random());
      }
      if (validate(facts, rank, 3).ok()) all.push_back(facts);
    }
    if (all.size() != 3) continue;
    ++passed;
    const CommFacts comm = classify(all);
    CHECK_FALSE(comm_text(comm).empty());
    CHECK_FALSE(comm_json(comm).empty());
  }
  CHECK(passed > 100);
}

TEST_CASE("facts_pci_distance_by_common_ancestor") {
  MachineFacts machine;
  for (int id = 0; id < 4; ++id) {
    NumaNode node;
    node.id = id;
    node.package = id / 2;
    machine.nodes.push_back(node);
  }
  const auto device = [](uint32_t bus, int node, std::vector<PciAddress> path) {
    PciDevice made;
    made.address = pci_address(0, bus, 0, 0);
    made.numa_node = node;
    made.path = std::move(path);
    return made;
  };
  const PciDevice a = device(1, 0, {10, 20});
  CHECK(pci_distance(machine, a, a) == PciDistance::Same);
  CHECK(pci_distance(machine, a, device(2, 0, {10, 20, 30})) == PciDistance::Bridge);
  CHECK(pci_distance(machine, a, device(2, 0, {10, 21})) == PciDistance::NumaNode);
  CHECK(pci_distance(machine, a, device(2, 0, {11, 20})) == PciDistance::NumaNode);
  CHECK(pci_distance(machine, a, device(2, 1, {11})) == PciDistance::Package);
  CHECK(pci_distance(machine, a, device(2, 2, {12})) == PciDistance::System);
  CHECK(pci_distance(machine, a, device(2, -1, {})) == PciDistance::System);
}
