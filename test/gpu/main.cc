// The GPU test program: gpu_test exact|collectives|failures|chaos|bench|quick|stages|timeline
// [...]. It needs no library of the project, only a driver; it ends by itself.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/checks.h"
#include "gpu/gpu_world.h"

int main(int argc, char** argv) {
  using namespace fccl::test;
  const auto word = [&](int i, const char* otherwise) { return argc > i ? argv[i] : otherwise; };
  const char* what = word(1, "exact");
  setenv("CUDA_MODULE_LOADING",
         "EAGER",
         1);  // a kernel loaded beside a spinning one would wait for it
  // Two GPUs unless told: more ranks than that share them, which is a test of its own.
  const char* most = std::getenv("FCCL_TEST_GPUS");
  const int devices = usable_devices(most == nullptr ? 2 : std::atoi(most));
  std::printf("%d GPU(s), %s\n", devices, what);
  int bad = 0;
  if (std::strcmp(what, "exact") == 0)
    bad = check_exact(devices,
                      std::atoi(word(2, "40")),
                      std::strtoull(word(3, "1"), nullptr, 10),
                      std::atoi(word(4, "8")));
  else if (std::strcmp(what, "collectives") == 0)
    bad = check_collectives(
        devices, std::atoi(word(2, "40")), std::strtoull(word(3, "1"), nullptr, 10));
  else if (std::strcmp(what, "failures") == 0)
    bad = check_failures(devices);
  else if (std::strcmp(what, "chaos") == 0)
    bad = check_chaos(devices,
                      std::atof(word(2, "20")),
                      std::strtoull(word(3, "1"), nullptr, 10),
                      std::strcmp(word(4, ""), "inline") != 0);
  else if (std::strcmp(what, "bench") == 0 || std::strcmp(what, "quick") == 0)
    bad = run_bench(devices, std::strcmp(what, "quick") == 0, argc > 2 ? argv[2] : nullptr);
  else if (std::strcmp(what, "stages") == 0)
    bad = run_stages(devices);
  else if (std::strcmp(what, "timeline") == 0)
    bad = run_timeline(devices);
  else
    bad = 1;
  std::printf("%s: %s\n", what, bad == 0 ? "all right" : "WRONG");
  return bad == 0 ? 0 : 1;
}
