#include "fccl_perf/table.h"

#include <fccl/fccl.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace perf {
namespace {

constexpr const char* kTimeFormat = "%Y-%m-%d %H:%M:%S";

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  char text[64];
  localtime_r(&now, &parts);
  std::strftime(text, sizeof(text), kTimeFormat, &parts);
  return text;
}

std::string wrong_text(const Result& result) {
  return result.checks == 0 ? "N/A" : fmt::format("{:g}", static_cast<double>(result.wrong));
}

// The four columns of one placement; blank where that placement was not run.
std::string plain_columns(const Result* result) {
  if (result == nullptr)
    return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}",
                     fitted(result->time_us, 7),
                     fitted(result->algbw, 6),
                     fitted(result->busbw, 6),
                     wrong_text(*result));
}

std::string fused_columns(const Result* result) {
  if (result == nullptr)
    return fmt::format(" {:>8} {:>8} {:>8} {:>8} {:>8}  {:>6}  {:>6}", "", "", "", "", "", "", "");
  const Summary& s = result->summary;
  return fmt::format(" {:>8} {:>8} {:>8} {:>8} {:>8}  {:>6}  {:>6}",
                     fitted(s.min, 8),
                     fitted(s.p50, 8),
                     fitted(s.p90, 8),
                     s.p99 ? fitted(*s.p99, 8) : "-",
                     fitted(s.max, 8),
                     fitted(result->algbw, 6),
                     wrong_text(*result));
}

std::string peer_columns(const Options& options, const Result& result) {
  std::string text;
  for (std::size_t i = 0; i < options.peers.size(); ++i) {
    if (i >= result.peers.size() || !result.peers[i].problem.empty()) {
      text += fmt::format("  {:>8} {:>6} {:>13}", "-", "-", "-");
      continue;
    }
    const PeerResult& peer = result.peers[i];
    text += fmt::format("  {:>8} {:>6} {:>13}",
                        fitted(peer.us, 8),
                        fmt::format("{:.2f}", peer.ratio.value),
                        fmt::format("{:.2f}..{:.2f}", peer.ratio.low, peer.ratio.high));
  }
  return text;
}

std::string plain_header(const Options& options) {
  const char* time = options.report_cputime ? "cputime" : "time";
  const char* stamp = options.timestamps ? "timestamp" : "";
  const char* stamp_unit = options.timestamps ? kTimeFormat : "";
  const int stamp_width = options.timestamps ? 19 : 0;
  std::string text = "#\n";
  text += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place                       in-place "
      "         \n",
      "",
      "",
      "",
      "",
      "");
  text += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  "
      "{:>6} {:>{}}",
      "size",
      "count",
      "type",
      "redop",
      "root",
      time,
      "algbw",
      "busbw",
      "#wrong",
      time,
      "algbw",
      "busbw",
      "#wrong",
      stamp,
      stamp_width);
  std::string units = fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  "
      "{:>6} {:>{}}",
      "(B)",
      "(elements)",
      "",
      "",
      "",
      "(us)",
      "(GB/s)",
      "(GB/s)",
      "",
      "(us)",
      "(GB/s)",
      "(GB/s)",
      "",
      stamp_unit,
      stamp_width);
  for (const std::string& peer : options.peers) {
    text += fmt::format("  {:>8} {:>6} {:>13}", peer, "ratio", "95%");
    units += fmt::format("  {:>8} {:>6} {:>13}", "(us)", "", "");
  }
  return text + "\n" + units + "\n";
}

std::string fused_header(const Options& options) {
  std::string groups = fmt::format("# {:>8} {:>7} {:>10} {:>9} {:<18}", "", "", "", "", "");
  std::string names = fmt::format(
      "# {:>8} {:>7} {:>10} {:>9} {:<18}", "tokens", "hidden", "size", "type", "algorithm");
  std::string units = fmt::format("# {:>8} {:>7} {:>10} {:>9} {:<18}", "", "", "(B)", "", "");
  const auto add = [&](const char* group) {
    groups += fmt::format(" {:^60}", group);
    names += fmt::format(" {:>8} {:>8} {:>8} {:>8} {:>8}  {:>6}  {:>6}",
                         "min",
                         "p50",
                         "p90",
                         "p99",
                         "max",
                         "algbw",
                         "#wrong");
    units += fmt::format(" {:>8} {:>8} {:>8} {:>8} {:>8}  {:>6}  {:>6}",
                         "(us)",
                         "(us)",
                         "(us)",
                         "(us)",
                         "(us)",
                         "(GB/s)",
                         "");
  };
  if (options.in_place != 1) add("out-of-place");
  if (options.in_place != 0) add("in-place");
  for (const std::string& peer : options.peers) {
    groups += fmt::format("  {:>29}", "");
    names += fmt::format("  {:>8} {:>6} {:>13}", peer, "ratio", "95%");
    units += fmt::format("  {:>8} {:>6} {:>13}", "(us)", "", "");
  }
  return "#\n" + groups + "\n" + names + "\n" + units + "\n";
}

}  // namespace

std::string fitted(double value, int width) {
  int digits = 0;
  for (double power = 1; value >= power && digits < 20; power *= 10) ++digits;
  if (digits < width - 2) return fmt::format("{:{}.2f}", value, width);
  if (digits < width - 1) return fmt::format("{:{}.1f}", value, width);
  if (digits < width + 1) return fmt::format("{:{}.0f}", value, width);
  return fmt::format("{:{}.{}e}", value, width, width >= 8 ? 2 : width >= 7 ? 1 : 0);
}

std::string table_preamble(const Options& options, const Report& report) {
  int version = 0;
  static_cast<void>(fcclGetVersion(&version));
  std::string text = fmt::format("# fccl_perf version {}.{}.{} fccl-headers={} fccl-library={}\n",
                                 FCCL_MAJOR,
                                 FCCL_MINOR,
                                 FCCL_PATCH,
                                 FCCL_VERSION_CODE,
                                 version);
  text += fmt::format("# Collective test starting: {}_perf\n", op_name(options.op));
  text += fmt::format(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: {} "
      "validation: {} graph: {}\n",
      options.threads,
      options.gpus,
      options.min_bytes,
      options.max_bytes,
      options.step_factor > 1 ? options.step_factor : options.step_bytes,
      options.step_factor > 1 ? "factor" : "bytes",
      options.warmup,
      options.iterations,
      options.aggregate,
      options.check,
      options.replays);
  static constexpr const char* kAverage[] = {"rank 0", "mean", "minimum", "maximum"};
  text += fmt::format(
      "# method: {} over ranks: {} buffer sets: {}{}{}{}\n",
      report.mode,
      kAverage[options.average],
      options.rotate,
      options.cold ? " cold caches" : "",
      options.unalign > 0 ? fmt::format(" unaligned by {} elements", options.unalign) : "",
      options.algo.empty() ? "" : " FCCL_ALGO=" + options.algo);
  text += "#\n# Using devices\n";
  for (const RankInfo& rank : report.devices) {
    text += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{}] {}\n",
                        rank.rank,
                        0,
                        rank.pid,
                        rank.host,
                        rank.device,
                        rank.bus_id,
                        rank.name);
  }
  for (const std::string& note : report.notes) text += "# " + note + "\n";
  return text;
}

std::string table_header(const Options& options) {
  return is_fused_shape(options.op) ? fused_header(options) : plain_header(options);
}

std::string table_line(const Options& options, const Result* out_of_place, const Result* in_place) {
  const Result& any = out_of_place != nullptr ? *out_of_place : *in_place;
  const Case& one = any.one;
  std::string text;
  if (is_fused_shape(options.op)) {
    text = fmt::format("{:>10} {:>7} {:>10} {:>9} {:<18}",
                       one.tokens,
                       one.hidden,
                       one.bytes,
                       type_name(one.datatype),
                       any.plan.algorithm);
    if (options.in_place != 1) text += fused_columns(out_of_place);
    if (options.in_place != 0) text += fused_columns(in_place);
  } else {
    text = fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}",
                       one.bytes,
                       one.count,
                       type_name(one.datatype),
                       redop_name(one.redop),
                       one.root);
    text += plain_columns(out_of_place) + plain_columns(in_place);
  }
  if (options.timestamps) text += fmt::format("{:>21}", time_now());
  text += peer_columns(options, any);
  if (options.unalign > 0) text += "  unaligned";
  return text + "\n";
}

std::string table_footer(const Options& options, const Report& report) {
  std::string text = fmt::format(
      "# {:<20} : {} {}\n", "Out of bounds values", report.wrong, report.wrong ? "FAILED" : "OK");
  text += fmt::format("# {:<20} : {:g} \n", "Avg bus bandwidth", report.bus_bandwidth);
  if (!report.memory.empty()) text += fmt::format("# {:<20} : {}\n", "Memory", report.memory);
  text += fmt::format("#\n# Collective test concluded: {}_perf\n#\n", op_name(options.op));
  return text;
}

}  // namespace perf
