#include "fccl_perf/tune.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

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

// What one algorithm took, in launches of at most `max_blocks` blocks (0: the library's choice).
struct Trial {
  int max_blocks = 0;
  int ranks = 2;
  int most_used = 0;  // blocks, over the shapes
  std::vector<CostSample> samples;  // none: it cannot serve the shapes

  double mean_log() const {
    double sum = 0;
    for (const CostSample& sample : samples) sum += std::log(sample.us);
    return samples.empty() ? HUGE_VAL : sum / static_cast<double>(samples.size());
  }
};

// A variable that is what it was when this ends.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* set = std::getenv(name);
    if (set != nullptr) before_ = set;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

Trial measure(Options options, const char* algorithm, int max_blocks, const std::string& file) {
  Trial trial;
  trial.max_blocks = max_blocks;
  options.algo = algorithm;
  std::optional<Variable> blocks;
  if (max_blocks != 0) blocks.emplace("FCCL_MAX_BLOCKS", std::to_string(max_blocks));
  options.json_file = file;
  options.csv_file.clear();
  options.plot_files.clear();
  options.compare_file.clear();
  options.peers.clear();
  options.in_place = 0;
  const int status = launch(options, true);
  if (status != 0) return trial;
  std::ifstream in(file);
  const Json json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) return trial;
  trial.ranks = json["config"].value("ranks", 2);
  trial.samples = samples_of(json, algorithm, trial.ranks);
  for (const Json& one : json["results"])
    trial.most_used = std::max(trial.most_used, one.value("blocks", 0));
  return trial;
}

// The best of the library's own launch shape and of a half and a quarter of its blocks, by the
// geometric mean over the shapes. CPU ranks have one block.
Trial best_trial(const Options& options, const char* algorithm, const std::string& file) {
  Trial best = measure(options, algorithm, 0, file);
  const int used = best.most_used;
  for (const int part : {2, 4}) {
    if (best.samples.empty() || used < 2 * part) break;
    Trial trial = measure(options, algorithm, used / part, file);
    if (trial.samples.size() == best.samples.size() && trial.mean_log() < best.mean_log())
      best = std::move(trial);
  }
  return best;
}

}  // namespace

int tune(const Options& options) {
  char file[] = "/tmp/fccl_perf_tune.XXXXXX.json";
  const int handle = mkstemps(file, 5);
  if (handle < 0) return 1;
  close(handle);
  std::string text =
      "fccl-tuner 1\n# algorithm            min_ranks  fixed_us  us_per_mib_pushed  "
      "us_per_mib_local  max_blocks\n";
  int fitted = 0;
  for (const char* algorithm : kAlgorithms) {
    const Trial trial = best_trial(options, algorithm, file);
    if (trial.samples.empty()) {
      text += fmt::format("# {} does not serve these shapes here\n", algorithm);
      continue;
    }
    const CostFit fit = fit_costs(trial.samples);
    text += fmt::format("{:<22} {:>10} {:>9.3f} {:>18.3f} {:>17.3f} {:>11}\n",
                        algorithm,
                        trial.ranks,
                        fit.fixed_us,
                        fit.us_per_mib_pushed,
                        fit.us_per_mib_local,
                        trial.max_blocks);
    text += fmt::format("#   {} shapes, model off by {:.0f} % (root mean square)\n",
                        trial.samples.size(),
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
