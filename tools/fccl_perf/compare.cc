// --compare: each shape of this run against the same shape of an older JSON file. A change counts
// when it is larger than the threshold and than the noise of both medians.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fccl_perf/writers.h"

namespace perf {
namespace {

using Json = nlohmann::json;

struct Old {
  double p50 = 0;
  double noise = 0;
};

std::string key_of(const std::string& op, int64_t tokens, int64_t hidden, int64_t size,
                   const std::string& type, const std::string& redop, int64_t root, bool in_place) {
  return fmt::format("{} {}x{} {} B {} {} {}{}",
                     op,
                     tokens,
                     hidden,
                     size,
                     type,
                     redop,
                     root,
                     in_place ? " in-place" : "");
}

int64_t integer_or_zero(const Json& value) {
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

Outcome read_old(const std::string& file, std::map<std::string, Old>& old) {
  std::ifstream in(file);
  if (!in) return Outcome::failure(fmt::format("--compare {}: cannot be read", file));
  const Json json = Json::parse(in, nullptr, false);
  if (json.is_discarded() || !json.is_object() || json.value("schema", "") != "fccl_perf") {
    return Outcome::failure(fmt::format("--compare {}: not a JSON file of fccl_perf", file));
  }
  const int version = json.value("schema_version", 0);
  if (version != kJsonSchemaVersion) {
    return Outcome::failure(fmt::format("--compare {}: schema version {}, this program knows {}",
                                        file,
                                        version,
                                        kJsonSchemaVersion));
  }
  const Json& results = json.contains("results") ? json["results"] : Json::array();
  for (const Json& one : results) {
    if (!one.is_object() || !one.contains("time_us") || !one["time_us"].is_object()) continue;
    const std::string key = key_of(one.value("op", ""),
                                   integer_or_zero(one["tokens"]),
                                   integer_or_zero(one["hidden"]),
                                   one.value("size", int64_t{0}),
                                   one.value("type", ""),
                                   one.value("redop", ""),
                                   one.value("root", int64_t{-1}),
                                   one.value("in_place", false));
    old[key] = {one["time_us"].value("p50", 0.0), one.value("noise", 0.0)};
  }
  return {};
}

}  // namespace

Outcome compare_with_file(const Options& options, const Report& report, std::string& text,
                          bool& regression) {
  std::map<std::string, Old> old;
  PERF_TRY(read_old(options.compare_file, old));
  int slower = 0;
  int faster = 0;
  int same = 0;
  int unknown = 0;
  text += fmt::format("# Compared with {} (changes up to {:.1f} % or the noise do not count)\n",
                      options.compare_file,
                      options.compare_threshold * 100);
  for (const Result& result : report.results) {
    const Case& one = result.one;
    const bool fused = is_fused_shape(one.op);
    const std::string key = key_of(op_name(one.op),
                                   one.tokens,
                                   one.hidden,
                                   one.bytes,
                                   type_name(one.datatype),
                                   fused ? "sum" : redop_name(one.redop),
                                   one.root,
                                   result.in_place);
    const auto found = old.find(key);
    if (found == old.end()) {
      ++unknown;
      text += fmt::format("# {:<60} new\n", key);
      continue;
    }
    const int verdict = compare_medians(result.summary.p50,
                                        result.noise,
                                        found->second.p50,
                                        found->second.noise,
                                        options.compare_threshold);
    (verdict > 0 ? slower : verdict < 0 ? faster : same) += 1;
    const char* word = verdict > 0 ? "slower" : verdict < 0 ? "faster" : "same";
    text += fmt::format(
        "# {:<60} {:<6} {:.2f} us, was {:.2f} ({:+.1f} %)\n",
        key,
        word,
        result.summary.p50,
        found->second.p50,
        found->second.p50 > 0 ? (result.summary.p50 / found->second.p50 - 1) * 100 : 0.0);
  }
  text +=
      fmt::format("# {} slower, {} faster, {} the same, {} new\n", slower, faster, same, unknown);
  regression = slower > 0;
  return {};
}

}  // namespace perf
