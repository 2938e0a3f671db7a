// --plot: turns a report into curves and hands them to the writer for the file's ending.
#include <fmt/format.h>

#include <algorithm>

#include "fccl_perf/plot_data.h"
#include "fccl_perf/writers.h"

namespace perf {
namespace {

Curve& curve_named(std::vector<Curve>& curves, const std::string& name, bool peer) {
  for (Curve& curve : curves) {
    if (curve.name == name) return curve;
  }
  curves.push_back({name, peer, {}});
  return curves.back();
}

// Only one placement is drawn: the one that is compared with peers.
std::vector<const Result*> drawn_results(const Options& options, const Report& report) {
  std::vector<const Result*> drawn;
  for (const Result& result : report.results) {
    if (result.cycle == 0 && result.in_place == (options.in_place == 1)) drawn.push_back(&result);
  }
  return drawn;
}

void turn_into_distribution(Curve& curve) {
  std::vector<double> values;
  for (const auto& point : curve.points) values.push_back(point.first);
  std::sort(values.begin(), values.end());
  curve.points.assign(1, {values.front(), 0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    curve.points.emplace_back(
        values[i], 100.0 * static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
}

}  // namespace

std::vector<Panel> plot_panels(const Options& options, const Report& report) {
  const bool fused = is_fused_shape(options.op);
  const std::string own = op_name(options.op);
  Panel latency{"Latency (median)", fused ? "tokens" : "bytes", "us", true, true, false, {}};
  Panel times{"Time over all shapes", "us", "% of shapes", true, false, true, {}};
  Panel ratios{
      "Speed-up over all shapes", "peer time / fccl time", "% of shapes", false, false, true, {}};
  for (const Result* result : drawn_results(options, report)) {
    const Case& one = result->one;
    const auto x = static_cast<double>(fused ? one.tokens : one.bytes);
    const std::string shape =
        fused ? fmt::format("{} {}", one.hidden, type_name(one.datatype)) : type_name(one.datatype);
    if (x > 0)
      curve_named(latency.curves, own + " " + shape, false)
          .points.emplace_back(x, result->summary.p50);
    curve_named(times.curves, own, false).points.emplace_back(result->summary.p50, 0);
    for (const PeerResult& peer : result->peers) {
      if (!peer.problem.empty()) continue;
      if (x > 0)
        curve_named(latency.curves, peer.name + " " + shape, true).points.emplace_back(x, peer.us);
      curve_named(times.curves, peer.name, true).points.emplace_back(peer.us, 0);
      curve_named(ratios.curves, "vs " + peer.name, true).points.emplace_back(peer.ratio.value, 0);
    }
  }
  for (Curve& curve : times.curves) turn_into_distribution(curve);
  for (Curve& curve : ratios.curves) turn_into_distribution(curve);
  std::vector<Panel> panels = {latency, times};
  if (!ratios.curves.empty()) panels.push_back(ratios);
  return panels;
}

std::string plot_title(const Options& options, const Report& report) {
  const std::string device = report.devices.empty() ? "" : report.devices[0].name;
  return fmt::format(
      "fccl {}: {} ranks, {}, {}", op_name(options.op), report.ranks, device, report.mode);
}

Outcome write_plot(const std::string& file, const Options& options, const Report& report) {
  const std::vector<Panel> panels = plot_panels(options, report);
  const std::string title = plot_title(options, report);
  if (file.ends_with(".html")) return write_html(file, title, report, panels);
  return write_gnuplot(file, title, panels);
}

}  // namespace perf
