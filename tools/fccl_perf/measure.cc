#include "fccl_perf/measure.h"

#include <algorithm>

namespace perf {
namespace {

struct Run {
  const Bench& bench;
  Contestant& contestant;
  Workbench& workbench;
  const Case& one;
  Placement place;
  int64_t& calls;

  // One iteration: -m calls, on the buffer set whose turn it is.
  Outcome iterate(int64_t iteration) {
    const int64_t aggregate = bench.options->aggregate;
    for (int64_t i = 0; i < aggregate; ++i) {
      const int which = static_cast<int>((iteration * aggregate + i) % workbench.sets());
      bench.team->note_started(++calls);
      PERF_TRY(contestant.call(one, workbench.operands(which, place)));
      bench.team->note_finished(calls);
    }
    return {};
  }
};

void wait_us(double us) {
  const double end = now_us() + us;
  while (us > 0 && now_us() < end) {
  }
}

Outcome measure_eager(Run run, Samples& samples) {
  const Bench& bench = run.bench;
  const int64_t iterations = bench.options->iterations;
  const auto per_iteration = static_cast<double>(bench.options->aggregate);
  Device::Timing timing;
  const auto enqueue = [&run](int64_t i) { return run.iterate(i); };
  PERF_TRY(bench.team->barrier());
  PERF_TRY(bench.device->time_calls(iterations, enqueue, bench.device->is_cpu(), timing));
  samples.mean_us = timing.total_us / static_cast<double>(iterations) / per_iteration;
  samples.host_us = timing.host_us / static_cast<double>(iterations) / per_iteration;
  if (!bench.device->is_cpu()) {
    // Events between the calls cost device time, so the whole was timed without them.
    Device::Timing apart;
    PERF_TRY(bench.team->barrier());
    PERF_TRY(bench.device->time_calls(iterations, enqueue, true, apart));
    timing.each_us = apart.each_us;
  }
  for (const double us : timing.each_us) samples.each_us.push_back(us / per_iteration);
  return {};
}

Outcome measure_graph(Run run, Samples& samples) {
  const Bench& bench = run.bench;
  const Options& options = *bench.options;
  const auto calls = static_cast<double>(options.iterations * options.aggregate);
  const double begin = now_us();
  PERF_TRY(bench.device->capture(options.iterations, [&run](int64_t i) { return run.iterate(i); }));
  samples.host_us = (now_us() - begin) / calls;
  double total = 0;
  for (int64_t replay = -1; replay < options.replays; ++replay) {  // the first one warms up
    double us = 0;
    PERF_TRY(bench.team->barrier());
    PERF_TRY(bench.device->replay(us));
    if (replay < 0) continue;
    samples.each_us.push_back(us / calls);
    total += us / calls;
  }
  samples.mean_us = total / static_cast<double>(options.replays);
  bench.device->drop_capture();
  return {};
}

Outcome measure_spaced(Run run, Samples& samples) {
  const Bench& bench = run.bench;
  const Options& options = *bench.options;
  const auto per_iteration = static_cast<double>(options.aggregate);
  const auto& skew = options.skew_us;
  double total = 0;
  double host = 0;
  for (int64_t i = 0; i < options.iterations; ++i) {
    if (options.cold) PERF_TRY(bench.device->flush_caches());
    PERF_TRY(bench.device->synchronize());
    PERF_TRY(bench.team->barrier());
    wait_us(options.gap_us);
    if (!skew.empty()) wait_us(skew[static_cast<std::size_t>(bench.rank) % skew.size()]);
    Device::Timing timing;
    PERF_TRY(bench.device->time_calls(
        1, [&](int64_t) { return run.iterate(i); }, false, timing));
    samples.each_us.push_back(timing.total_us / per_iteration);
    total += timing.total_us / per_iteration;
    host += timing.host_us / per_iteration;
  }
  samples.mean_us = total / static_cast<double>(options.iterations);
  samples.host_us = host / static_cast<double>(options.iterations);
  return {};
}

Outcome measure_once(const Run& run, Samples& samples) {
  switch (mode_of(*run.bench.options)) {
    case Mode::kGraph:
      return measure_graph(run, samples);
    case Mode::kSpaced:
      return measure_spaced(run, samples);
    case Mode::kEager:
      break;
  }
  return measure_eager(run, samples);
}

}  // namespace

Mode mode_of(const Options& options) {
  if (options.replays > 0) return Mode::kGraph;
  const bool spaced =
      options.cold || options.gap_us > 0 || !options.skew_us.empty() || options.blocking;
  return spaced ? Mode::kSpaced : Mode::kEager;
}

const char* mode_name(Mode mode, bool cpu) {
  if (mode == Mode::kGraph) return cpu ? "batch" : "graph";
  return mode == Mode::kSpaced ? "spaced" : "eager";
}

Outcome warm_up(const Bench& bench, Contestant& contestant, Workbench& workbench, const Case& one,
                const Placement& place, int64_t& calls) {
  Run run{bench, contestant, workbench, one, place, calls};
  for (int64_t i = 0; i < bench.options->warmup; ++i) PERF_TRY(run.iterate(i));
  return bench.device->synchronize();
}

Outcome measure(const Bench& bench, Contestant& contestant, Workbench& workbench, const Case& one,
                const Placement& place, int64_t& calls, Samples& samples) {
  const Run run{bench, contestant, workbench, one, place, calls};
  const double begin = now_us();
  int64_t cycles = 0;
  bool again = true;
  double mean = 0;
  double host = 0;
  while (again) {
    Samples part;
    part.each_us.swap(samples.each_us);
    PERF_TRY(measure_once(run, part));
    samples.each_us.swap(part.each_us);
    mean += part.mean_us;
    host += part.host_us;
    ++cycles;
    again = false;
    if (bench.options->seconds > 0) {
      PERF_TRY(bench.team->follow_rank0(now_us() - begin < bench.options->seconds * 1e6, again));
    }
  }
  samples.mean_us = mean / static_cast<double>(cycles);
  samples.host_us = host / static_cast<double>(cycles);
  return {};
}

}  // namespace perf
