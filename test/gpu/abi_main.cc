// The GPU tests of the C ABI: gpu_abi all, or names of parts (gpu_abi list). It needs libfccl.so
// beside it and a driver.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "gpu/abi_checks.h"
#include "gpu/abi_world.h"

namespace {

using namespace fccl::test;

struct Part {
  const char* name;
  std::function<std::string()> run;
  bool only_by_name = false;  // long
};

const Part kParts[] = {
    {"memory", abi_memory_and_init},
    {"exact", [] { return abi_exact(1, 2); }},
    {"algorithms", [] { return abi_algorithms(1, 2); }},
    {"collectives", [] { return abi_collectives(1); }},
    {"long", abi_long_rows},
    {"streams", abi_streams},
    {"capture_steps", abi_capture_steps},
    {"graph", abi_graph},
    {"two_streams", abi_graph_of_two_streams},
    {"mixing", abi_graph_mixing},
    {"outlives", abi_graph_outlives},
    {"several", abi_several_communicators},
    {"share4", [] { return abi_shared_devices(4); }},
    {"share8", [] { return abi_shared_devices(8); }},
    {"refused", abi_shared_refused},
    {"default_stream", abi_default_stream_refused},
    {"missing", abi_missing_rank},
    {"mismatch", abi_mismatch},
    {"abort", abi_abort},
    {"rounds", [] { return abi_many_rounds(30); }},
    {"processes", [] { return abi_processes_exact(2, false); }},
    {"hidden_gpus", [] { return abi_processes_exact(2, true); }},
    {"process_share", abi_processes_share},
    {"killed", abi_process_killed},
    {"enqueue", abi_enqueue},
    {"speed", abi_speed},
    {"process_speed", abi_process_speed},
    {"soak", [] { return abi_soak(100000, 1); }, true},
    // A rank on each GPU of FCCL_TEST_GPUS.
    {"all_exact", [] { return abi_exact(1, devices_to_use()); }, true},
    {"all_algorithms", [] { return abi_algorithms(1, devices_to_use()); }, true},
    {"all_processes", [] { return abi_processes_exact(devices_to_use(), false); }, true},
};

bool wanted(const Part& part, int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "all") == 0) return !part.only_by_name;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], part.name) == 0) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  // Ranks that share a GPU must not meet in one queue of the hardware.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (argc > 1 && std::strcmp(argv[1], "child") == 0) return abi_child(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "list") == 0) {
    for (const Part& part : kParts)
      if (!part.only_by_name) std::printf("%s\n", part.name);
    return 0;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int bad = 0;
  for (const Part& part : kParts) {
    if (!wanted(part, argc, argv)) continue;
    const auto start = std::chrono::steady_clock::now();
    const std::string wrong = part.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%s %s, %.1f s%s%s\n",
                wrong.empty() ? "ok:" : "WRONG:",
                part.name,
                took.count(),
                wrong.empty() ? "" : ": ",
                wrong.c_str());
    std::fflush(stdout);
    bad += wrong.empty() ? 0 : 1;
  }
  std::printf("abi: %d wrong\n", bad);
  return bad == 0 ? 0 : 1;
}
