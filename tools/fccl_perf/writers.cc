#include "fccl_perf/writers.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace perf {
namespace {

std::string csv_number(double value) {
  return fmt::format("{:.6g}", value);
}

std::string csv_peer(const PeerResult& peer) {
  if (!peer.problem.empty()) return ",,,,";
  return fmt::format(",{},{},{},{}",
                     csv_number(peer.us),
                     csv_number(peer.ratio.value),
                     csv_number(peer.ratio.low),
                     csv_number(peer.ratio.high));
}

}  // namespace

Outcome write_file(const std::string& file, const std::string& content) {
  const std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(file.c_str(), "we"), std::fclose);
  const bool written =
      out && std::fwrite(content.data(), 1, content.size(), out.get()) == content.size() &&
      std::fflush(out.get()) == 0;
  if (!written)
    return Outcome::failure(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
  return {};
}

std::string csv_text(const Options& options, const Report& report) {
  std::string text =
      "op,cycle,tokens,hidden,size,count,type,redop,root,in_place,unalign,algorithm,method,ranks,"
      "samples,time_us,min_us,p50_us,"
      "p90_us,p99_us,max_us,host_us,algbw_gbs,busbw_gbs,wrong";
  for (const std::string& peer : options.peers)
    text += fmt::format(",{0}_us,{0}_ratio,{0}_low95,{0}_high95", peer);
  text += "\n";
  for (const Result& result : report.results) {
    const Case& one = result.one;
    const Summary& s = result.summary;
    const bool fused = is_fused_shape(one.op);
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                    op_name(one.op),
                    result.cycle,
                    fused ? std::to_string(one.tokens) : "",
                    fused ? std::to_string(one.hidden) : "",
                    one.bytes,
                    one.count,
                    type_name(one.datatype),
                    fused ? "sum" : redop_name(one.redop),
                    one.root,
                    result.in_place ? 1 : 0,
                    options.unalign,
                    result.plan.algorithm,
                    report.mode,
                    report.ranks,
                    s.samples,
                    csv_number(result.time_us),
                    csv_number(s.min),
                    csv_number(s.p50),
                    csv_number(s.p90),
                    s.p99 ? csv_number(*s.p99) : "",
                    csv_number(s.max),
                    csv_number(result.host_us),
                    csv_number(result.algbw),
                    csv_number(result.busbw),
                    result.checks > 0 ? std::to_string(result.wrong) : "");
    for (std::size_t i = 0; i < options.peers.size(); ++i) {
      text += i < result.peers.size() ? csv_peer(result.peers[i]) : ",,,,";
    }
    text += "\n";
  }
  return text;
}

Outcome write_report(const Options& options, const Report& report, std::string& text,
                     bool& regression) {
  if (options.json_file == "-") {
    const std::string json = json_text(options, report);
    std::fwrite(json.data(), 1, json.size(), stdout);
  } else if (!options.json_file.empty()) {
    PERF_TRY(write_file(options.json_file, json_text(options, report)));
  }
  if (!options.csv_file.empty()) PERF_TRY(write_file(options.csv_file, csv_text(options, report)));
  for (const std::string& file : options.plot_files) PERF_TRY(write_plot(file, options, report));
  if (!options.compare_file.empty()) PERF_TRY(compare_with_file(options, report, text, regression));
  return {};
}

}  // namespace perf
