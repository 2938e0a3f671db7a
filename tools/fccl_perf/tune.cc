#include "fccl_perf/tune.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fccl_perf/cost_fit.h"
#include "fccl_perf/launcher.h"
#include "fccl_perf/writers.h"

namespace perf {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 7> kAlgorithms = {"oneshot_lamport",
                                                    "oneshot_ll",
                                                    "oneshot_flags",
                                                    "twoshot_rows",
                                                    "twoshot_cols",
                                                    "twoshot_rows_lamport",
                                                    "twoshot_cols_lamport"};
constexpr double kMiB = 1048576.0;

std::vector<CostSample> samples_of(const Json& json, const std::string& algorithm, int ranks) {
  std::vector<CostSample> samples;
  for (const Json& one : json["results"]) {
    if (one.value("algorithm", "") != algorithm) continue;
    const double mib = one.value("size", 0.0) / kMiB;
    CostSample sample;
    sample.launches = one.value("launches", 1.0);
    sample.pushed_mib = one.value("wire_bytes", 0.0) / kMiB;
    // What the cost model calls local: a one-shot rank reads all ranks' rows, a two-shot rank its
    // share of them twice.
    sample.local_mib = algorithm.starts_with("oneshot") ? mib * ranks : mib * 2;
    sample.us = one["time_us"].value("p50", 0.0);
    samples.push_back(sample);
  }
  return samples;
}

// Measures with one algorithm forced; no samples if it cannot serve the shapes.
std::vector<CostSample> measure_algorithm(Options options, const char* algorithm,
                                          const std::string& file, int& ranks) {
  options.algo = algorithm;
  options.json_file = file;
  options.csv_file.clear();
  options.plot_files.clear();
  options.compare_file.clear();
  options.peers.clear();
  options.in_place = 0;
  if (launch(options, true) != 0) return {};
  std::ifstream in(file);
  const Json json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) return {};
  ranks = json["config"].value("ranks", 2);
  return samples_of(json, algorithm, ranks);
}

}  // namespace

int tune(const Options& options) {
  char file[] = "/tmp/fccl_perf_tune.XXXXXX.json";
  const int handle = mkstemps(file, 5);
  if (handle < 0) return 1;
  close(handle);
  std::string text =
      "fccl-tuner 1\n# algorithm            min_ranks  fixed_us  us_per_mib_pushed  "
      "us_per_mib_local\n";
  int fitted = 0;
  for (const char* algorithm : kAlgorithms) {
    int ranks = 2;
    const std::vector<CostSample> samples = measure_algorithm(options, algorithm, file, ranks);
    if (samples.empty()) {
      text += fmt::format("# {} does not serve these shapes here\n", algorithm);
      continue;
    }
    const CostFit fit = fit_costs(samples);
    text += fmt::format("{:<22} {:>10} {:>9.3f} {:>18.3f} {:>17.3f}\n",
                        algorithm,
                        ranks,
                        fit.fixed_us,
                        fit.us_per_mib_pushed,
                        fit.us_per_mib_local);
    text += fmt::format("#   {} shapes, model off by {:.0f} % (root mean square)\n",
                        samples.size(),
                        fit.relative_error * 100);
    ++fitted;
  }
  unlink(file);
  if (fitted == 0) {
    std::fprintf(stderr, "fccl_perf: --tune: no algorithm could be measured\n");
    return 1;
  }
  const Outcome written = write_file(options.tune_file, text);
  if (!written.ok()) std::fprintf(stderr, "fccl_perf: %s\n", written.text().c_str());
  return written.ok() ? 0 : 1;
}

}  // namespace perf
