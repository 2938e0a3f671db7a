// What belongs to this process and thread rather than to the machine: identity, affinity, memory,
// level of the kernels.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "harness/catch.h"
#include "topology/allowed_cpus.h"
#include "topology/detect.h"
#include "topology/identity.h"
#include "topology/text_file.h"

using namespace fccl;

TEST_CASE("detect_quota_bounds_the_cpus_at_once") {
  MachineFacts machine;
  machine.allowed = parse_cpu_list("0-7");
  CHECK(machine.allowed_cpus() == 8);
  machine.quota_millicpus = 2500;
  CHECK(machine.allowed_cpus() == 2);
  machine.quota_millicpus = 100;
  CHECK(machine.allowed_cpus() == 1);
  machine.quota_millicpus = 64000;
  CHECK(machine.allowed_cpus() == 8);
}

TEST_CASE("detect_affinity_is_that_of_the_calling_thread") {
  const CpuMask all = current_affinity();
  int one = 0;
  while (!all.has(one)) ++one;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(one, &set);
    REQUIRE(::sched_setaffinity(0, sizeof set, &set) == 0);
    CHECK(current_affinity().count() == 1);
    Result<MachineFacts> machine = detect_machine(Config());
    REQUIRE(machine.ok());
    CHECK(machine->allowed_cpus() == 1);
    if (!machine->nodes.empty()) {
      CHECK(local_rank_facts(*machine, 0).numa_node == numa_node_of_current_thread());
      CHECK(numa_node_of_current_thread() >= 0);
    }
  }).join();
  CHECK(current_affinity() == all);
}

TEST_CASE("detect_process_token_is_one_per_process") {
  const uint64_t token = process_token();
  CHECK(token != 0);
  uint64_t of_thread = 0;
  std::thread([&] { of_thread = process_token(); }).join();
  CHECK(of_thread == token);
  int channel[2];
  REQUIRE(::pipe(channel) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const uint64_t mine = process_token();
    ::_exit(::write(channel[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
  }
  uint64_t of_child = 0;
  REQUIRE(::read(channel[0], &of_child, sizeof of_child) == sizeof of_child);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ::close(channel[0]);
  ::close(channel[1]);
  CHECK(of_child != token);
  CHECK(process_token() == token);
}

TEST_CASE("detect_hostid_makes_another_host_of_one_boot") {
  Config config;
  Result<MachineFacts> plain = detect_machine(config);
  config.hostid = "second";
  Result<MachineFacts> acting = detect_machine(config);
  REQUIRE((plain.ok() && acting.ok()));
  CHECK(plain->host_id != acting->host_id);
  CHECK(plain->boot_id_hash == acting->boot_id_hash);
  CHECK(classify({local_rank_facts(*plain, 0), local_rank_facts(*acting, 1)}).pair(0, 1).reach ==
        PairClass::Network);
  CHECK(classify({local_rank_facts(*plain, 0), local_rank_facts(*plain, 1)}).same_process);
}

TEST_CASE("detect_bind_memory") {
  const size_t bytes = 1 << 16;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  CHECK(bind_memory(memory, bytes, -1).ok());
  CHECK(bind_memory(memory, 0, 0).ok());
  const Status bound = bind_memory(memory, bytes, 0);
  INFO(bound.text());
  CHECK((bound.ok() || bound.code() == Code::Unsupported));
  CHECK(bind_memory(memory, bytes, 1023).ok() == false);
  CHECK(bind_memory(memory, bytes, 1 << 20).code() == Code::InvalidArgument);
  CHECK(bind_memory(static_cast<char*>(memory) + 1, bytes, 0).code() == Code::InvalidArgument);
  ::munmap(memory, bytes);
}

TEST_CASE("detect_cpu_level_can_only_be_lowered") {
  Config config;
  const CpuLevel found = detect_cpu_level();
  CHECK(*cpu_level_of(config) == found);
  config.cpu_level = "scalar";
  CHECK(*cpu_level_of(config) == CpuLevel::Scalar);
#if defined(__x86_64__)
  config.cpu_level = "v4";
  CHECK(*cpu_level_of(config) == found);
  config.cpu_level = "v2";
  CHECK(*cpu_level_of(config) == std::min(found, CpuLevel::V2));
  config.cpu_level = "neon";
  REQUIRE_FALSE(cpu_level_of(config).ok());
  CHECK(cpu_level_of(config).status().text().find("FCCL_CPU_LEVEL=neon") == 0);
  CHECK_FALSE(detect_machine(config).ok());
#endif
}

TEST_CASE("identity_of_hosts") {
  const HostIdentity plain = host_identity_of("", "node1", "boot-a", "machine-a");
  const HostIdentity renamed = host_identity_of("", "node1.example.org", "boot-a", "machine-b");
  const HostIdentity twin = host_identity_of("", "node1", "boot-b", "machine-a");
  const HostIdentity acting = host_identity_of("second", "node1", "boot-a", "machine-a");
  CHECK(plain.host_id == renamed.host_id);
  CHECK(plain.host_id != twin.host_id);
  CHECK(acting.host_id != plain.host_id);
  CHECK(acting.boot_id_hash == plain.boot_id_hash);
  CHECK(host_identity_of("second", "x", "boot-b", "").host_id == acting.host_id);
  CHECK(host_identity_of("second", "x", "boot-b", "").boot_id_hash != acting.boot_id_hash);
  // No boot id: names and machine ids stand for it.
  CHECK(host_identity_of("", "a", "", "m").host_id != host_identity_of("", "b", "", "m").host_id);
  CHECK(host_identity_of("", "a", "", "m").host_id != host_identity_of("", "a", "", "n").host_id);
  CHECK(hash_text("") != 0);
}
