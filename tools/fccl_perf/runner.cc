#include "fccl_perf/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

#include "fccl_perf/contestant.h"
#include "fccl_perf/join.h"
#include "fccl_perf/measure.h"
#include "fccl_perf/numbers_list.h"
#include "fccl_perf/table.h"
#include "fccl_perf/writers.h"

namespace perf {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  char text[64];
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// The run of one rank. Everything collective happens in the same order on all ranks.
class Runner {
 public:
  Runner(const RankSetup& setup, Joined& joined)
      : options_(*setup.options),
        setup_(setup),
        joined_(joined),
        workbench_(options_, joined.device.get(), joined.comm, setup.rank, setup.ranks) {
    bench_ = {&options_,
              joined.device.get(),
              joined.team.get(),
              joined.comm,
              setup.rank,
              setup.ranks,
              setup.folder};
  }
  ~Runner() { workbench_.release(); }

  Outcome run(int& status);

 private:
  struct Entry {
    std::unique_ptr<Contestant> contestant;
    std::string problem;
  };

  bool leads() const { return setup_.rank == 0; }
  bool quiet() const { return options_.json_file == "-"; }
  void print(const std::string& text) const {
    if (!leads() || quiet()) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  void progress(const std::string& text) const;
  Outcome make_contestants();
  Outcome describe();
  Outcome run_case(const Case& one, int64_t cycle);
  Outcome run_placement(const Case& one, bool in_place, int64_t cycle, Result& result);
  Outcome check_contestant(Contestant& contestant, const Case& one, bool in_place, bool inject,
                           CheckResult& verdict);
  Outcome check_once(Contestant& contestant, const Case& one, const Pattern& pattern, int which,
                     bool in_place, const std::string& inject, CheckResult& verdict);
  Outcome sample(Contestant& contestant, const Case& one, bool in_place,
                 std::vector<double>& combined, double& time_us, double& host_us);
  Outcome compare_with_peers(const Case& one, bool in_place, Result& result);
  void fill_bandwidth(Result& result) const;
  Outcome finish(int& status);

  const Options& options_;
  const RankSetup& setup_;
  Joined& joined_;
  Workbench workbench_;
  Bench bench_;
  std::unique_ptr<Contestant> own_;
  std::vector<Entry> peers_;
  Report report_;
  int64_t calls_ = 0;
  double bus_sum_ = 0;
  int64_t bus_count_ = 0;
};

void Runner::progress(const std::string& text) const {
  if (!leads() || isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

Outcome Runner::make_contestants() {
  own_ = make_contestant(bench_, options_.op);
  for (const std::string& name : options_.peers) {
    Entry entry;
    entry.contestant = make_peer(bench_, name, entry.problem);
    // All ranks go on with a peer or none does.
    int64_t failed = 0;
    PERF_TRY(joined_.team->sum(entry.contestant ? 0 : 1, failed));
    if (failed > 0) {
      entry.contestant.reset();
      if (entry.problem.empty()) entry.problem = "another rank could not start it";
      report_.notes.push_back(fmt::format("vs {}: not compared: {}", name, entry.problem));
    } else {
      report_.notes.push_back(fmt::format("vs {}: {} against {}; {} rounds, alternating",
                                          name,
                                          own_->description(),
                                          entry.contestant->description(),
                                          options_.rounds));
    }
    peers_.push_back(std::move(entry));
  }
  return {};
}

Outcome Runner::describe() {
  RankInfo mine;
  mine.rank = setup_.rank;
  mine.pid = static_cast<int>(getpid());
  mine.device = joined_.device->ordinal();
  gethostname(mine.host, sizeof(mine.host) - 1);
  std::snprintf(mine.bus_id, sizeof(mine.bus_id), "%s", joined_.device->bus_id().c_str());
  std::snprintf(mine.name, sizeof(mine.name), "%s", joined_.device->name().c_str());
  report_.devices.resize(static_cast<std::size_t>(setup_.ranks));
  PERF_TRY(joined_.team->allgather(&mine, report_.devices.data(), sizeof(mine)));
  report_.start_time = utc_now();
  report_.ranks = setup_.ranks;
  report_.cpu = joined_.device->is_cpu();
  report_.mode = mode_name(mode_of(options_), report_.cpu);
  if (!report_.cpu && mode_of(options_) == Mode::kEager) {
    report_.notes.emplace_back(
        "eager: the percentiles are from events between the calls, which cost device time; -G is "
        "exact");
  }
  fcclMemoryInfo memory = FCCL_MEMORY_INFO_INITIALIZER;
  if (options_.memory_report && fcclCommMemory(joined_.comm, &memory) == fcclSuccess) {
    report_.memory = fmt::format("workspace {} B, mapped {} B, windows {} B, capacity {} B",
                                 memory.workspace_bytes,
                                 memory.mapped_bytes,
                                 memory.user_window_bytes,
                                 memory.capacity_bytes);
  }
  return {};
}

// `verdict` is the same on all ranks: the sum of what is wrong anywhere, the first text by rank.
Outcome Runner::check_once(Contestant& contestant, const Case& one, const Pattern& pattern,
                           int which, bool in_place, const std::string& inject,
                           CheckResult& verdict) {
  const Placement place = contestant.placement(in_place);
  PERF_TRY(workbench_.fill(which, pattern, place));
  if (inject != "skip") {
    bench_.team->note_started(++calls_);
    PERF_TRY(contestant.call(one, workbench_.operands(which, place)));
    PERF_TRY(bench_.device->synchronize());
    bench_.team->note_finished(calls_);
  }
  CheckResult result;
  PERF_TRY(workbench_.check(which, pattern, place, inject, result));
  int64_t total = 0;
  PERF_TRY(bench_.team->sum(result.wrong, total));
  verdict.wrong += total;
  if (total == 0) return {};
  std::vector<char> texts(kTextBytes * static_cast<std::size_t>(setup_.ranks));
  char mine[kTextBytes] = {};
  std::snprintf(mine, sizeof(mine), "%s", result.first.c_str());
  PERF_TRY(bench_.team->allgather(mine, texts.data(), sizeof(mine)));
  for (int rank = 0; rank < setup_.ranks && verdict.first.empty(); ++rank) {
    verdict.first = &texts[static_cast<std::size_t>(rank) * kTextBytes];
    if (!verdict.first.empty()) verdict.first = contestant.name() + ": " + verdict.first;
  }
  return {};
}

Outcome Runner::check_contestant(Contestant& contestant, const Case& one, bool in_place,
                                 bool inject, CheckResult& verdict) {
  std::string fault;
  if (inject && !options_.inject.empty()) {
    const std::vector<std::string> parts = split_list(options_.inject, ':');
    const int64_t victim = parts.size() > 1 ? parse_integer(parts[1]).value_or(0) : 0;
    if (victim == setup_.rank) fault = parts[0];
  }
  for (int i = 0; i < options_.check; ++i) {
    const Pattern pattern{options_.seed + static_cast<uint64_t>(i), setup_.ranks, false};
    PERF_TRY(check_once(
        contestant, one, pattern, i % workbench_.sets(), in_place, i == 0 ? fault : "", verdict));
  }
  const bool picks = one.redop == fcclMax || one.redop == fcclMin;
  if (options_.check == 0 || (picks && !is_fused_shape(one.op))) return {};
  const Pattern special{options_.seed, setup_.ranks, true};
  return check_once(contestant, one, special, 0, in_place, "", verdict);
}

Outcome Runner::sample(Contestant& contestant, const Case& one, bool in_place,
                       std::vector<double>& combined, double& time_us, double& host_us) {
  Samples samples;
  PERF_TRY(measure(
      bench_, contestant, workbench_, one, contestant.placement(in_place), calls_, samples));
  std::vector<std::vector<double>> all;
  PERF_TRY(bench_.team->gather(samples.each_us, all));
  const std::vector<double> part = combine_ranks(all, options_.average);
  combined.insert(combined.end(), part.begin(), part.end());
  PERF_TRY(bench_.team->gather({samples.mean_us, samples.host_us}, all));
  const std::vector<double> figures = combine_ranks(all, options_.average);
  time_us = figures[0];
  host_us = figures[1];
  return {};
}

// Rounds A B C, C B A, ...: what drifts meets all alike.
Outcome Runner::compare_with_peers(const Case& one, bool in_place, Result& result) {
  struct Track {
    Contestant* contestant;
    std::vector<double> samples;
    std::vector<double> rounds;
  };
  std::vector<Track> tracks = {{own_.get(), {}, {}}};
  for (const Entry& peer : peers_) {
    if (peer.contestant) tracks.push_back({peer.contestant.get(), {}, {}});
  }
  // Events between eager calls of a GPU cost device time; the whole run was timed without them.
  const bool events_between = !report_.cpu && mode_of(options_) == Mode::kEager;
  for (int round = 0; round < options_.rounds; ++round) {
    progress(fmt::format("round {} of {}", round + 1, options_.rounds));
    for (std::size_t i = 0; i < tracks.size(); ++i) {
      Track& track = tracks[round % 2 == 0 ? i : tracks.size() - 1 - i];
      std::vector<double> part;
      double whole_us = 0;
      double host_us = 0;
      PERF_TRY(warm_up(bench_,
                       *track.contestant,
                       workbench_,
                       one,
                       track.contestant->placement(in_place),
                       calls_));
      PERF_TRY(sample(*track.contestant, one, in_place, part, whole_us, host_us));
      track.rounds.push_back(events_between ? whole_us : median(part));
      track.samples.insert(track.samples.end(), part.begin(), part.end());
    }
  }
  result.samples = tracks[0].samples;
  std::size_t next = 1;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].contestant) continue;
    const Track& track = tracks[next++];
    result.peers[i].summary = summarise(track.samples);
    result.peers[i].us = median(track.rounds);
    result.peers[i].own_us = median(tracks[0].rounds);
    result.peers[i].ratio = paired_ratio(tracks[0].rounds, track.rounds);
  }
  return {};
}

void Runner::fill_bandwidth(Result& result) const {
  if (options_.report_cputime) result.time_us = result.host_us;
  if (result.time_us <= 0) return;
  result.algbw = static_cast<double>(result.one.bytes) / result.time_us * 1e-3;
  result.busbw = result.algbw * bus_factor(result.one.op, setup_.ranks);
}

Outcome Runner::run_placement(const Case& one, bool in_place, int64_t cycle, Result& result) {
  result.one = one;
  result.in_place = in_place;
  result.cycle = cycle;
  result.checks = options_.check;
  result.plan = own_->plan(one, workbench_.operands(0, own_->placement(in_place)));
  CheckResult verdict;
  PERF_TRY(check_contestant(*own_, one, in_place, true, verdict));
  result.wrong = verdict.wrong;
  const bool compares = !peers_.empty() && in_place == (options_.in_place == 1);
  for (const Entry& peer : peers_) {
    if (!compares) break;
    result.peers.emplace_back();
    result.peers.back().name = options_.peers[result.peers.size() - 1];
    result.peers.back().problem = peer.problem;
    if (!peer.contestant) continue;
    result.peers.back().description = peer.contestant->description();
    PERF_TRY(peer.contestant->prepare(one));
    CheckResult peer_verdict;
    PERF_TRY(check_contestant(*peer.contestant, one, in_place, false, peer_verdict));
    result.peers.back().wrong = peer_verdict.wrong;
    if (verdict.first.empty()) verdict.first = peer_verdict.first;
  }
  result.first_wrong = verdict.first;
  const Pattern pattern{options_.seed, setup_.ranks, false};
  for (int set = 0; set < workbench_.sets(); ++set)
    PERF_TRY(workbench_.fill(set, pattern, own_->placement(in_place)));
  PERF_TRY(warm_up(bench_, *own_, workbench_, one, own_->placement(in_place), calls_));
  PERF_TRY(sample(*own_, one, in_place, result.samples, result.time_us, result.host_us));
  if (compares) PERF_TRY(compare_with_peers(one, in_place, result));
  result.summary = summarise(result.samples);
  result.noise = median_noise(result.samples);
  if (is_fused_shape(one.op)) result.time_us = result.summary.p50;
  fill_bandwidth(result);
  return {};
}

Outcome Runner::run_case(const Case& one, int64_t cycle) {
  PERF_TRY(workbench_.prepare(one));
  PERF_TRY(own_->prepare(one));
  Result results[2];
  const Result* shown[2] = {nullptr, nullptr};
  for (int in_place = 0; in_place < 2; ++in_place) {
    if (options_.in_place == 1 - in_place) continue;
    Result& result = results[in_place];
    PERF_TRY(run_placement(one, in_place == 1, cycle, result));
    shown[in_place] = &result;
    bus_sum_ += result.busbw;
    ++bus_count_;
    report_.wrong += result.wrong;
    for (const PeerResult& peer : result.peers) report_.wrong += peer.wrong;
  }
  progress("");
  print(table_line(options_, shown[0], shown[1]));
  for (const Result* result : shown) {
    if (result == nullptr) continue;
    if (!result->first_wrong.empty()) print("# wrong: " + result->first_wrong + "\n");
    if (leads()) report_.results.push_back(*result);
  }
  return {};
}

Outcome Runner::finish(int& status) {
  report_.end_time = utc_now();
  report_.bus_bandwidth = bus_count_ > 0 ? bus_sum_ / static_cast<double>(bus_count_) : 0;
  print(table_footer(options_, report_));
  status = report_.wrong > 0 ? 1 : 0;
  if (!leads()) return {};
  bool regression = false;
  std::string text;
  PERF_TRY(write_report(options_, report_, text, regression));
  print(text);
  if (regression) status = 1;
  return {};
}

Outcome Runner::run(int& status) {
  PERF_TRY(make_contestants());
  PERF_TRY(describe());
  print(table_preamble(options_, report_) + table_header(options_));
  const std::vector<Case> cases = sweep(options_, setup_.ranks);
  for (int64_t cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      progress(fmt::format("case {} of {}", i + 1, cases.size()));
      PERF_TRY(run_case(cases[i], cycle));
    }
  }
  return finish(status);
}

}  // namespace

Outcome run_rank(const RankSetup& setup, int& status) {
  Joined joined;
  PERF_TRY(join(setup, joined));
  Outcome outcome;
  {
    Runner runner(setup, joined);
    outcome = runner.run(status);
  }
  joined.team.reset();
  if (!outcome.ok()) static_cast<void>(fcclCommAbort(joined.comm));
  const fcclResult_t destroyed = fcclCommDestroy(joined.comm);
  PERF_TRY(outcome);
  return fccl_outcome(destroyed, nullptr, "fcclCommDestroy");
}

}  // namespace perf
