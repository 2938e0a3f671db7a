// fccl_info: what the library knows, for people and (--json) for programs: its version, which
// backends it can use and why not, a picture of this machine, its variables with value and source,
// and the plan of a shape. It sees what any user of the library sees: only include/fccl/fccl.h.
#include <fccl/fccl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace {

using nlohmann::ordered_json;

struct Shape {
  int64_t tokens = 0, hidden = 0;
  std::string type;
  int ranks = 0;
};

struct Options {
  bool json = false, markdown = false, machine = false, backends = false, variables = false;
  std::vector<std::string> plans;
};

int datatype_of(const std::string& name) {
  if (name == "f32" || name == "float") return fcclFloat32;
  if (name == "f16" || name == "half") return fcclFloat16;
  if (name == "bf16" || name == "bfloat16") return fcclBfloat16;
  return -1;
}

// "128,4096,bf16,8"; CLI11 shows the exception's text as the error of that option.
Shape parse_shape(const std::string& text) {
  Shape shape;
  char type[16] = {};
  int used = -1;
  long long tokens = 0, hidden = 0;
  if (std::sscanf(text.c_str(),
                  "%lld,%lld,%15[a-z0-9],%d%n",
                  &tokens,
                  &hidden,
                  type,
                  &shape.ranks,
                  &used) != 4 ||
      used != static_cast<int>(text.size()) || datatype_of(type) < 0) {
    throw CLI::ValidationError(
        "--plan", text + ": wanted TOKENS,HIDDEN,TYPE,RANKS, TYPE one of f32, f16, bf16");
  }
  shape.tokens = tokens;
  shape.hidden = hidden;
  shape.type = type;
  return shape;
}

// ------------------------------------------------------------------ asking the library

std::string why(fcclResult_t result) {
  const std::string text = fcclGetLastError(nullptr);
  return text.empty() ? fcclGetErrorString(result) : text;
}
bool failed(const ordered_json& answer) {
  return answer.is_object() && answer.contains("error");
}

ordered_json ask_version() {
  int version = 0;
  fcclGetVersion(&version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

fcclFusedArgs args_of(const Shape& shape) {
  // A query looks at pointers for NULL only: anything stands for a tensor.
  static char tensor[16];
  fcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;
  args.tokens = shape.tokens;
  args.hidden = shape.hidden;
  args.datatype = datatype_of(shape.type);
  args.eps = 1e-5f;
  args.input = args.residual = args.weight = tensor;
  args.residual_out.ptr = args.norm_out.ptr = tensor;
  return args;
}

ordered_json ask_backends() {
  constexpr std::pair<const char*, int> kBackends[] = {
      {"cpu", fcclBackendCpu}, {"cuda", fcclBackendCuda}, {"hip", fcclBackendHip}};
  const fcclFusedArgs args = args_of({1, 4096, "bf16", 2});
  ordered_json rows = ordered_json::array();
  for (const auto& [name, number] : kBackends) {
    fcclConfig config = FCCL_CONFIG_INITIALIZER;
    config.backend = number;
    fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
    const fcclResult_t result = fcclQuerySupport(2, &config, &args, &info);
    const bool found = result == fcclSuccess && info.supported == 1;
    ordered_json row = {{"name", name}, {"usable", found}};
    if (!found) row["why_not"] = result == fcclSuccess ? std::string(info.reason) : why(result);
    rows.push_back(row);
  }
  return rows;
}

ordered_json ask_machine() {
  size_t needed = 0;
  fcclResult_t result = fcclDescribe(nullptr, nullptr, 0, &needed);
  std::string text(needed + 1, '\0');
  if (needed > 0) result = fcclDescribe(nullptr, text.data(), text.size(), &needed);
  if (result != fcclSuccess) return {{"error", why(result)}};
  const ordered_json told = ordered_json::parse(text.c_str(), nullptr, false);
  if (told.is_discarded()) return {{"error", "the library's description is no JSON"}};
  return told.contains("machine") ? told["machine"] : told;
}

ordered_json ask_variables() {
  ordered_json rows = ordered_json::array();
  for (int index = 0;; ++index) {
    fcclVariableInfo info = FCCL_VARIABLE_INFO_INITIALIZER;
    const fcclResult_t result = fcclVariable(index, &info);
    // The end of the table, unless the environment as a whole is refused.
    if (result != fcclSuccess && index == 0) return {{"error", why(result)}};
    if (result != fcclSuccess) break;
    rows.push_back({{"name", info.name},
                    {"type", info.type},
                    {"value", info.value},
                    {"default", info.fallback},
                    {"source", info.from_environment != 0 ? "environment" : "default"},
                    {"agreed", info.agreed != 0},
                    {"doc", info.doc}});
  }
  return rows;
}

// FCCL_... in the environment that the library does not know: most often a misspelling.
ordered_json find_strangers(const ordered_json& variables) {
  std::set<std::string> known;
  for (const ordered_json& row : variables) known.insert(row["name"].get<std::string>());
  ordered_json strangers = ordered_json::array();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (name.rfind("FCCL_", 0) == 0 && known.count(name) == 0) strangers.push_back(name);
  }
  return strangers;
}

ordered_json ask_plan(const Shape& shape) {
  ordered_json row = {{"tokens", shape.tokens},
                      {"hidden", shape.hidden},
                      {"type", shape.type},
                      {"ranks", shape.ranks}};
  const fcclConfig config = FCCL_CONFIG_INITIALIZER;
  const fcclFusedArgs args = args_of(shape);
  fcclPlanInfo info = FCCL_PLAN_INFO_INITIALIZER;
  const fcclResult_t result = fcclQuerySupport(shape.ranks, &config, &args, &info);
  if (result != fcclSuccess) {
    row["supported"] = false;
    row["reason"] = why(result);
    return row;
  }
  row["supported"] = info.supported == 1;
  row["algorithm"] = info.algorithm_name;
  row["blocks"] = info.blocks;
  row["threads"] = info.threads;
  row["launches"] = info.launches;
  row["chunk_tokens"] = info.chunk_tokens;
  row["capacity_bytes"] = info.capacity_bytes;
  row["wire_bytes"] = info.wire_bytes;
  row["reason"] = info.reason;
  int64_t bytes = 0;
  if (fcclWorkspaceBytes(shape.ranks, &config, &bytes) == fcclSuccess) {
    row["workspace_bytes"] = bytes;
  }
  return row;
}

ordered_json ask(const Options& options, const std::vector<Shape>& shapes) {
  ordered_json all = {{"version", ask_version()}};
  if (options.backends) all["backends"] = ask_backends();
  if (options.machine) all["machine"] = ask_machine();
  if (options.variables) {
    all["variables"] = ask_variables();
    if (!failed(all["variables"])) all["unknown_variables"] = find_strangers(all["variables"]);
  }
  if (!shapes.empty()) all["plans"] = ordered_json::array();
  for (const Shape& shape : shapes) all["plans"].push_back(ask_plan(shape));
  return all;
}

// ------------------------------------------------------------------ for people

std::string text_of(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

uint64_t number_of(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<uint64_t>() : 0;
}

std::string bytes_text(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  auto amount = static_cast<double>(bytes);
  for (; amount >= 1024 && unit < 4; ++unit) amount /= 1024;
  return fmt::format("{:.4g} {}", amount, units[unit]);
}

// A node of the picture: its line, and what hangs below it.
struct Branch {
  std::string line;
  std::vector<Branch> below;
};

void draw(const Branch& branch, const std::string& indent, std::string* out) {
  for (size_t i = 0; i < branch.below.size(); ++i) {
    const bool last = i + 1 == branch.below.size();
    *out += indent + (last ? "`-- " : "|-- ") + branch.below[i].line + '\n';
    draw(branch.below[i], indent + (last ? "    " : "|   "), out);
  }
}

std::string device_line(const ordered_json& machine, size_t index) {
  const ordered_json& device = machine["devices"][index];
  std::string line = fmt::format("{} {}", text_of(device, "kind"), text_of(device, "pci"));
  if (const std::string name = text_of(device, "name"); !name.empty()) line += ", " + name;
  int links = 0;
  uint64_t speed = 0;
  for (const ordered_json& link : machine.value("links", ordered_json::array())) {
    if (number_of(link, "from") != index) continue;
    ++links;
    speed += number_of(link, "megabytes_per_second");
  }
  if (links > 0) line += fmt::format(", {} links, {} GB/s", links, speed / 1000);
  return line;
}

void hang_devices(const ordered_json& machine, int node, Branch* branch) {
  const ordered_json devices = machine.value("devices", ordered_json::array());
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].value("numa_node", -1) == node) {
      branch->below.push_back({device_line(machine, i), {}});
    }
  }
}

std::string picture_of(const ordered_json& machine) {
  if (failed(machine)) return "machine: " + text_of(machine, "error") + '\n';
  Branch host{fmt::format("host {} (seen by {}{})",
                          text_of(machine, "host_name"),
                          text_of(machine, "source"),
                          text_of(machine, "why_source").empty()
                              ? ""
                              : ", because " + text_of(machine, "why_source")),
              {}};
  host.below.push_back({fmt::format("CPU {}, kernels of level {}, last-level cache {}",
                                    text_of(machine, "cpu_model"),
                                    text_of(machine, "cpu_level"),
                                    bytes_text(number_of(machine, "llc_bytes"))),
                        {}});
  std::string allowed = fmt::format("this process may use CPUs {}: {} at once",
                                    text_of(machine, "allowed"),
                                    text_of(machine, "allowed_cpus"));
  if (number_of(machine, "quota_millicpus") > 0) {
    allowed += fmt::format(", by a quota of {} CPU",
                           static_cast<double>(number_of(machine, "quota_millicpus")) / 1000);
  }
  host.below.push_back({allowed, {}});
  for (const ordered_json& node : machine.value("numa_nodes", ordered_json::array())) {
    Branch branch{fmt::format("NUMA node {} of package {}: CPUs {}, {}",
                              text_of(node, "id"),
                              text_of(node, "package"),
                              text_of(node, "cpus"),
                              bytes_text(number_of(node, "memory_bytes"))),
                  {}};
    hang_devices(machine, node.value("id", 0), &branch);
    host.below.push_back(std::move(branch));
  }
  hang_devices(machine, -1, &host);
  std::string text = host.line + '\n';
  draw(host, "", &text);
  return text;
}

std::string variables_text(const ordered_json& variables, bool markdown) {
  if (failed(variables)) return "variables: " + text_of(variables, "error") + '\n';
  std::string text = markdown ? "| variable | default | meaning |\n|---|---|---|\n" : "variables\n";
  for (const ordered_json& row : variables) {
    const std::string fallback = text_of(row, "default");
    const std::string doc =
        text_of(row, "doc") + (row.value("agreed", false) ? "; must be equal on all ranks" : "");
    if (markdown) {
      text += fmt::format("| `{}` | {} | {} |\n",
                          text_of(row, "name"),
                          fallback.empty() ? "" : '`' + fallback + '`',
                          doc);
      continue;
    }
    const bool set = text_of(row, "source") == "environment";
    const std::string value = text_of(row, "value");
    text += fmt::format("{} {:<24} {:<12} {}\n",
                        set ? '*' : ' ',
                        text_of(row, "name"),
                        value.empty() ? "-" : value,
                        doc);
  }
  return markdown ? text : text + "  (* set by the environment)\n";
}

std::string plan_text(const ordered_json& plan) {
  std::string text = fmt::format("plan for {} tokens of {} {} on {} ranks\n",
                                 text_of(plan, "tokens"),
                                 text_of(plan, "hidden"),
                                 text_of(plan, "type"),
                                 text_of(plan, "ranks"));
  if (!plan.value("supported", false)) {
    return text + "  not supported: " + text_of(plan, "reason") + '\n';
  }
  text += fmt::format("  {}: {} blocks of {} threads, {} launches of at most {} tokens\n",
                      text_of(plan, "algorithm"),
                      text_of(plan, "blocks"),
                      text_of(plan, "threads"),
                      text_of(plan, "launches"),
                      text_of(plan, "chunk_tokens"));
  text += fmt::format("  pushes {} to its peers; capacity {}, workspace {} a rank\n",
                      bytes_text(number_of(plan, "wire_bytes")),
                      bytes_text(number_of(plan, "capacity_bytes")),
                      bytes_text(number_of(plan, "workspace_bytes")));
  return text + "  " + text_of(plan, "reason") + '\n';
}

std::string all_text(const ordered_json& all, bool markdown) {
  if (markdown) return variables_text(all["variables"], true);
  std::string text = "fccl " + text_of(all, "version") + '\n';
  if (all.contains("backends")) {
    text += "\nbackends\n";
    for (const ordered_json& row : all["backends"]) {
      const bool usable = row.value("usable", false);
      text += fmt::format("  {:<5} {}\n",
                          text_of(row, "name"),
                          usable ? "usable" : "no: " + text_of(row, "why_not"));
    }
  }
  if (all.contains("machine")) text += '\n' + picture_of(all["machine"]);
  if (all.contains("variables")) text += '\n' + variables_text(all["variables"], false);
  for (const ordered_json& name : all.value("unknown_variables", ordered_json::array())) {
    text += fmt::format("  {} is set, but fccl has no such variable\n", name.get<std::string>());
  }
  for (const ordered_json& plan : all.value("plans", ordered_json::array())) {
    text += '\n' + plan_text(plan);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<Shape> shapes;
  CLI::App app(
      "What fccl knows: version, backends, machine, variables, plans.\n"
      "Without an option: all but plans.",
      "fccl_info");
  app.add_flag("-j,--json", options.json, "print JSON");
  app.add_flag("-b,--backends", options.backends, "which backends can be used, and why not");
  app.add_flag("-m,--machine", options.machine, "packages, NUMA nodes, devices, what is allowed");
  app.add_flag(
      "-e,--variables", options.variables, "environment variables: value, source, meaning");
  app.add_flag("--markdown", options.markdown, "the variables as a table for a document");
  app.add_option("-p,--plan",
                 options.plans,
                 "TOKENS,HIDDEN,TYPE,RANKS: how the fused call would run; TYPE is f32, f16 or bf16")
      ->expected(1)
      ->take_all();
  try {
    app.parse(argc, argv);
    for (const std::string& text : options.plans) shapes.push_back(parse_shape(text));
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? 0 : 2;
  }
  if (options.markdown) options.variables = true;
  if (!options.machine && !options.backends && !options.variables && shapes.empty()) {
    options.machine = options.backends = options.variables = true;
  }
  const ordered_json all = ask(options, shapes);
  fmt::print("{}{}",
             options.json ? all.dump(2, ' ', false, ordered_json::error_handler_t::replace)
                          : all_text(all, options.markdown),
             options.json ? "\n" : "");
  const ordered_json none;
  return failed(all.value("machine", none)) || failed(all.value("variables", none)) ? 1 : 0;
}
