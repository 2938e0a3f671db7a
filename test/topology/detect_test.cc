// Detection: hwloc and sysfs on this machine, made-up /sys and cgroup trees, topology files good
// and hostile, and what belongs to thread and process.
#include "topology/detect.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "harness/catch.h"
#include "topology/allowed_cpus.h"
#include "topology/hwloc_api.h"
#include "topology/machine_source.h"
#include "topology/text_file.h"

using namespace fccl;

namespace {

std::string data_file(const std::string& name) {
  return std::string(FCCL_TEST_SOURCE "/test/topology/data/") + name;
}

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A folder with files, gone at the end.
class Tree {
 public:
  Tree() {
    char name[] = "/tmp/fccl_topology_test_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    root_ = name;
  }
  ~Tree() { REQUIRE(std::system(("rm -rf " + root_).c_str()) == 0); }
  const std::string& root() const { return root_; }
  void folder(const std::string& path) const {
    for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
      ::mkdir((root_ + path.substr(0, at)).c_str(), 0700);
    }
    ::mkdir((root_ + path).c_str(), 0700);
  }
  void file(const std::string& path, const std::string& text) const {
    folder(path.substr(0, path.find_last_of('/')));
    std::ofstream(root_ + path) << text;
  }
  void link(const std::string& path, const std::string& target) const {
    folder(path.substr(0, path.find_last_of('/')));
    REQUIRE(::symlink((root_ + target).c_str(), (root_ + path).c_str()) == 0);
  }

 private:
  std::string root_;
};

Config with_topology(const std::string& path) {
  Config config;
  config.topo_file = path;
  return config;
}

}  // namespace

TEST_CASE("detect_this_machine_by_both_sources") {
  Result<MachineFacts> machine = detect_machine(Config());
  REQUIRE(machine.ok());
  CHECK(machine->this_host);
  CHECK(machine->cpus >= 1);
  CHECK(machine->cores >= 1);
  CHECK(machine->host_id != 0);
  CHECK(machine->allowed.count() >= 1);
  CHECK(machine->allowed_cpus() >= 1);
  CHECK(machine->allowed_cpus() <= machine->allowed.count());
  const MachineFacts plain = machine_from_sysfs("");
  CHECK(plain.cpus == machine->cpus);
  CHECK(plain.packages == machine->packages);
  CHECK(plain.gpus() == machine->gpus());
  if (!plain.nodes.empty()) CHECK(plain.nodes.size() == machine->nodes.size());
}

TEST_CASE("detect_sysfs_of_a_made_up_machine") {
  const Tree tree;
  tree.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Big CPU\n\nprocessor : 1\n");
  tree.file("/proc/meminfo", "MemTotal:       2048 kB\nMemFree:  1 kB\n");
  tree.file("/sys/devices/system/cpu/online", "0-3\n");
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    tree.file(folder + "physical_package_id", std::to_string(cpu / 2));
    tree.file(folder + "thread_siblings_list", cpu < 2 ? "0-1" : std::to_string(cpu));
  }
  tree.file("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K");
  tree.file("/sys/devices/system/cpu/cpu0/cache/index0/type", "Data");
  tree.file("/sys/devices/system/cpu/cpu0/cache/index1/size", "64M");
  tree.file("/sys/devices/system/cpu/cpu0/cache/index1/type", "Instruction");
  tree.file("/sys/devices/system/cpu/cpu0/cache/index2/size", "16M");
  tree.file("/sys/devices/system/cpu/cpu0/cache/index2/type", "Unified");
  tree.file("/sys/devices/system/node/online", "0-1");
  for (int node = 0; node < 2; ++node) {
    const std::string folder = "/sys/devices/system/node/node" + std::to_string(node) + "/";
    tree.file(folder + "cpulist", node == 0 ? "0-1" : "2-3");
    tree.file(folder + "meminfo", "Node 0 MemTotal:  1024 kB\n");
    tree.file(folder + "distance", node == 0 ? "10 21" : "21 10");
  }
  const auto device = [&](const std::string& path,
                          const std::string& name,
                          const char* type,
                          const char* vendor,
                          const char* node) {
    tree.file(path + "/class", type);
    tree.file(path + "/vendor", vendor);
    tree.file(path + "/device", "0x1234");
    tree.file(path + "/numa_node", node);
    tree.link("/sys/bus/pci/devices/" + name, path);
  };
  const std::string port = "/sys/devices/pci0000:80/0000:80:01.0";
  device(port + "/0000:81:00.0", "0000:81:00.0", "0x030200", "0x10de", "1");
  device(port + "/0000:82:00.0", "0000:82:00.0", "0x120000", "0x1002", "1");
  device("/sys/devices/pci0000:00/0000:00:03.0", "0000:00:03.0", "0x020000", "0x1af4", "-1");
  device("/sys/devices/pci0000:00/0000:00:02.0", "0000:00:02.0", "0x030000", "0x1a03", "0");
  device("/sys/devices/pci0000:00/0000:00:04.0", "0000:00:04.0", "0x010802", "0x144d", "0");

  const MachineFacts machine = machine_from_sysfs(tree.root());
  CHECK(machine.cpu_model == "Big CPU");
  CHECK(machine.memory_bytes == 2048 * 1024);
  CHECK(machine.cpus == 4);
  CHECK(machine.cores == 3);
  CHECK(machine.packages == 2);
  CHECK(machine.llc_bytes == 16 << 20);
  REQUIRE(machine.nodes.size() == 2);
  CHECK(machine.nodes[1].package == 1);
  CHECK(machine.nodes[1].cpus == parse_cpu_list("2-3"));
  CHECK(machine.nodes[1].memory_bytes == 1024 * 1024);
  CHECK(machine.node_distance == std::vector<uint32_t>{10, 21, 21, 10});
  REQUIRE(machine.devices.size() == 3);  // no disk, no display of the board
  CHECK(machine.gpus() == 2);
  CHECK(machine.devices[0].address == pci_address(0, 0x81, 0, 0));
  CHECK(machine.devices[0].numa_node == 1);
  CHECK(machine.devices[0].path ==
        std::vector<PciAddress>{pci_address(0, 0x80, 0, 0), pci_address(0, 0x80, 1, 0)});
  CHECK(pci_distance(machine, machine.devices[0], machine.devices[1]) == PciDistance::Bridge);
  CHECK(machine.devices[2].kind == PciKind::Network);
  CHECK(machine.devices[2].numa_node == -1);
}

TEST_CASE("detect_sysfs_of_an_empty_or_broken_tree_is_empty") {
  const Tree tree;
  CHECK(machine_from_sysfs(tree.root()).cpus == 0);
  tree.file("/sys/devices/system/cpu/online", "0-99999999999,x,-4,7-");
  tree.file("/sys/devices/system/node/online", "0-2000000000");
  tree.file("/sys/bus/pci/devices/nonsense/class", "0x030000");
  const MachineFacts machine = machine_from_sysfs(tree.root());
  CHECK(machine.cpus == 0);
  CHECK(machine.nodes.size() == 1024);
  CHECK(machine.node_distance.empty());
  CHECK(machine.devices.empty());
}

TEST_CASE("detect_cgroup_quota") {
  struct Row {
    const char* name;
    const char *cgroup, *mountinfo;
    std::vector<std::pair<const char*, const char*>> files;
    uint32_t millicpus;
  };
  const char* v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct";
  const char* v2 =
      "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate";
  const char* inside = "41 31 0:38 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw";
  const Row rows[] = {
      {"none", "0::/", v2, {}, 0},
      {"max", "0::/a", v2, {{"/sys/fs/cgroup/a/cpu.max", "max 100000"}}, 0},
      {"half a CPU", "0::/a", v2, {{"/sys/fs/cgroup/a/cpu.max", "50000 100000"}}, 500},
      {"the parent is tighter",
       "0::/a/b",
       v2,
       {{"/sys/fs/cgroup/a/b/cpu.max", "400000 100000"},
        {"/sys/fs/cgroup/a/cpu.max", "150000 100000"}},
       1500},
      {"container, no cgroup namespace",
       "0::/docker/abc/x",
       inside,
       {{"/sys/fs/cgroup/x/cpu.max", "max 100000"}, {"/sys/fs/cgroup/cpu.max", "200000 100000"}},
       2000},
      {"version 1",
       "3:cpuset:/\n2:cpu,cpuacct:/job",
       v1,
       {{"/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000"},
        {"/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000"}},
       3000},
      {"version 1, no limit",
       "2:cpu:/job",
       v1,
       {{"/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1"},
        {"/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000"}},
       0},
      {"nonsense", "0::/a", v2, {{"/sys/fs/cgroup/a/cpu.max", "10 0"}}, 0},
      {"overflow", "0::/a", v2, {{"/sys/fs/cgroup/a/cpu.max", "99999999999999999999 1"}}, 0},
      {"a path that climbs", "0::/../a", v2, {{"/sys/fs/a/cpu.max", "1000 100000"}}, 0},
      {"no cgroup files at all", "", "", {}, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Tree tree;
    tree.file("/proc/self/cgroup", row.cgroup);
    tree.file("/proc/self/mountinfo", std::string("1 0 0:1 / / rw - ext4 x rw\n") + row.mountinfo);
    for (const auto& [path, text] : row.files) tree.file(path, text);
    const CpuQuota quota = read_cpu_quota(tree.root());
    CHECK(quota.millicpus == row.millicpus);
    CHECK((quota.group != 0) == (row.millicpus != 0));
  }
}

TEST_CASE("detect_topology_file_nvlink_mesh_over_a_switch") {
  Result<MachineFacts> machine =
      detect_machine(with_topology(data_file("nvlink_mesh_switch_8gpu.xml")));
  INFO(machine.status().text());
  REQUIRE(machine.ok());
  CHECK_FALSE(machine->this_host);
  CHECK(machine->packages == 2);
  CHECK(machine->cpus == 64);
  CHECK(machine->gpus() == 8);
  CHECK(machine->devices.size() == 8 + 8 + 4);
  CHECK(machine->links.size() == 2 * 8 * 4);
  CHECK(machine->node_distance == std::vector<uint32_t>{10, 21, 21, 10});
  Result<std::vector<RankFacts>> ranks = facts_from_machine(*machine, 8);
  REQUIRE(ranks.ok());
  const CommFacts comm = classify(*ranks);
  CHECK(comm.of_devices);
  CHECK(comm.full_mesh);
  CHECK(comm.switched);
  CHECK(comm.farthest == PairClass::Switch);
  CHECK(comm.pair(0, 7).megabytes_per_second == 4 * 112500);
  CHECK(comm.numa_nodes == 2);
  CHECK(classify(*ranks, Between::Hosts).pair(0, 7).reach == PairClass::NumaHop);
}

TEST_CASE("detect_topology_file_pci_islands") {
  Result<MachineFacts> machine = detect_machine(with_topology(data_file("pci_islands_4gpu.xml")));
  INFO(machine.status().text());
  REQUIRE(machine.ok());
  const CommFacts comm = classify(*facts_from_machine(*machine, 4));
  CHECK(comm.of_devices);
  CHECK_FALSE(comm.full_mesh);
  CHECK(comm.pair(0, 1).reach == PairClass::Pci);
  CHECK(comm.pair(2, 3).reach == PairClass::Pci);
  CHECK(comm.pair(0, 2).reach == PairClass::PciHost);
  CHECK(comm.pair(1, 3).reach == PairClass::PciHost);
  CHECK(comm.farthest == PairClass::PciHost);
  // More ranks than GPUs share them, and that is named.
  const CommFacts shared = classify(*facts_from_machine(*machine, 6));
  CHECK(shared.shared_device_rank[0] == 0);
  CHECK(shared.shared_device_rank[1] == 4);
}

TEST_CASE("detect_topology_file_two_sockets_without_gpu") {
  Result<MachineFacts> machine = detect_machine(with_topology(data_file("two_sockets_no_gpu.xml")));
  INFO(machine.status().text());
  REQUIRE(machine.ok());
  CHECK(machine->gpus() == 0);
  REQUIRE(machine->nodes.size() == 4);
  CHECK(machine->nodes[3].package == 1);
  CHECK(machine->llc_bytes == 32 << 20);
  const CommFacts comm = classify(*facts_from_machine(*machine, 8));
  CHECK_FALSE(comm.of_devices);
  CHECK(comm.pair(0, 1).reach == PairClass::NumaHop);
  CHECK(comm.pair(0, 4).reach == PairClass::SameNode);
  CHECK(comm.numa_nodes == 4);
  CHECK_FALSE(comm.oversubscribed);
  CHECK(classify(*facts_from_machine(*machine, 33)).oversubscribed);
}

TEST_CASE("detect_facts_from_machine_refuses_absurd_ranks") {
  MachineFacts machine;
  machine.host_id = machine.boot_id_hash = 1;
  machine.allowed.add(0);
  CHECK_FALSE(facts_from_machine(machine, 0).ok());
  CHECK_FALSE(facts_from_machine(machine, -1).ok());
  CHECK_FALSE(facts_from_machine(machine, kMaxFactRanks + 1).ok());
  CHECK(facts_from_machine(machine, 3).ok());
}

TEST_CASE("detect_topology_dump_can_be_read_again") {
  if (!hwloc_api().ok()) return;
  const Tree tree;
  Config config;
  config.topo_dump_file = tree.root() + "/machine.xml";
  Result<MachineFacts> first = detect_machine(config);
  REQUIRE(first.ok());
  Result<MachineFacts> again = detect_machine(with_topology(config.topo_dump_file));
  INFO(again.status().text());
  REQUIRE(again.ok());
  CHECK(again->cpus == first->cpus);
  CHECK(again->nodes.size() == first->nodes.size());
  CHECK(again->devices.size() == first->devices.size());
  CHECK(again->host_id == first->host_id);
  CHECK(list_folder(tree.root()) == std::vector<std::string>{"machine.xml"});

  config.topo_dump_file = tree.root() + "/no/such/folder/machine.xml";
  const Status status = detect_machine(config).status();
  CHECK(status.text().find("FCCL_TOPO_DUMP_FILE") == 0);
}

TEST_CASE("detect_topology_dump_keeps_links_of_a_file") {
  const Tree tree;
  Config config = with_topology(data_file("nvlink_mesh_switch_8gpu.xml"));
  config.topo_dump_file = tree.root() + "/copy.xml";
  REQUIRE(detect_machine(config).ok());
  CHECK(slurp(config.topo_dump_file) == slurp(config.topo_file));
  Result<MachineFacts> copy = detect_machine(with_topology(config.topo_dump_file));
  REQUIRE(copy.ok());
  CHECK(copy->links.size() == 2 * 8 * 4);
}

TEST_CASE("detect_topology_file_that_is_no_file_is_named") {
  const Tree tree;
  for (const std::string& path :
       {tree.root() + "/absent.xml", tree.root(), std::string("/dev/zero")}) {
    CAPTURE(path);
    const Status status = detect_machine(with_topology(path)).status();
    REQUIRE_FALSE(status.ok());
    CHECK(status.text().find("FCCL_TOPO_FILE") == 0);
    CHECK(status.text().find(path) != std::string::npos);
  }
}

TEST_CASE("detect_lists_of_numbers") {
  CHECK(parse_list("0-3,8", 100) == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(parse_list("", 100).empty());
  CHECK(parse_list("5-3,x,1-,-2,7x", 100).empty());
  CHECK(parse_list("98-2000000000", 100) == std::vector<int>{98, 99});
}
