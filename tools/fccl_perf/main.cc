// fccl_perf: measures and checks the collectives of fccl, with the flags and columns of nccl-tests.
// It uses include/fccl/fccl.h only. options -> launcher -> runner (one for each rank) -> writers.
#include <fccl/fccl.h>

#include <cstdio>
#include <string>

#include "fccl_perf/launcher.h"
#include "fccl_perf/models.h"
#include "fccl_perf/options.h"
#include "fccl_perf/team.h"
#include "fccl_perf/tune.h"

namespace {

constexpr int kUsage = 2;

int say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int version() {
  int number = 0;
  if (fcclGetVersion(&number) != fcclSuccess) return 1;
  std::printf("fccl_perf %d.%d.%d, library %d.%d.%d\n",
              FCCL_MAJOR,
              FCCL_MINOR,
              FCCL_PATCH,
              number / 10000,
              number / 100 % 100,
              number % 100);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  perf::Options options;
  const perf::Outcome parsed = perf::parse_options(argc, argv, options);
  if (!parsed.ok()) {
    std::fprintf(stderr, "fccl_perf: %s\n", parsed.text().c_str());
    return kUsage;
  }
  if (options.help) return say(perf::help_text());
  if (options.version) return version();
  if (options.list_models) return say(perf::model_list());
  if (options.print == "man") return say(perf::manual_page());
  if (options.print == "completion") return say(perf::bash_completion());
  if (!options.tune_file.empty()) return perf::tune(options);
  return perf::launch(options);
}
