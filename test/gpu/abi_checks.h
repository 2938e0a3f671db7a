// The parts of gpu_abi. Each answers what is wrong, or "".
#pragma once
#include <cstdint>
#include <string>

namespace fccl::test {

// abi_calls.cc
std::string abi_exact(uint64_t seed, int ranks);
std::string abi_algorithms(uint64_t seed, int ranks);
std::string abi_collectives(uint64_t seed);
std::string abi_streams();
std::string abi_long_rows();

// abi_soak.cc
std::string abi_soak(int64_t calls, uint64_t seed);

// abi_graphs.cc
std::string abi_capture_steps();
std::string abi_graph();
std::string abi_graph_of_two_streams();
std::string abi_graph_mixing();
std::string abi_graph_outlives();

// abi_sharing.cc
std::string abi_several_communicators();
std::string abi_shared_devices(int ranks);
std::string abi_shared_refused();
std::string abi_default_stream_refused();

// abi_failures.cc
std::string abi_missing_rank();
std::string abi_mismatch();
std::string abi_abort();
std::string abi_many_rounds(int rounds);

// abi_processes.cc
std::string abi_processes_exact(int ranks, bool hide_other_gpus);
std::string abi_processes_share();
std::string abi_process_killed();
std::string abi_process_speed();
// What a process does that this program started; its exit status.
int abi_child(int argc, char** argv);

// abi_costs.cc
std::string abi_memory_and_init();
std::string abi_enqueue();
std::string abi_speed();

}  // namespace fccl::test
