#include "fccl_perf/option_values.h"

#include <fccl/fccl.h>
#include <fmt/format.h>

#include <array>

#include "fccl_perf/models.h"
#include "fccl_perf/numbers_list.h"
#include "fccl_perf/options.h"

namespace perf {

Outcome allowed(const std::string& what) {
  return Outcome::failure("allowed is " + what);
}

Outcome set_bool(const std::string& value, bool& field) {
  if (value != "0" && value != "1") return allowed("0 or 1");
  field = value == "1";
  return {};
}

Outcome set_size(const std::string& value, std::size_t low, std::size_t& field) {
  const auto size = parse_size(value);
  if (!size || *size < low)
    return allowed(fmt::format("a size of at least {}, such as 8, 64K, 1.5M or 2G", low));
  field = *size;
  return {};
}

Outcome set_real(const std::string& value, double low, double& field, const char* what) {
  const auto number = parse_real(value);
  if (!number || *number < low) return allowed(what);
  field = *number;
  return {};
}

Outcome set_numbers(const std::string& value, std::vector<int64_t>& field, int64_t low) {
  const auto numbers = parse_integers(value);
  const std::string what =
      fmt::format("a list of integers from {}, such as 1,4,16 or 1..256*2 or 128..1024+128", low);
  if (!numbers) return allowed(what);
  for (const int64_t number : *numbers) {
    if (number < low || number > int64_t{1} << 40) return allowed(what);
  }
  field = *numbers;
  return {};
}

Outcome set_types(Options& options, const std::string& value) {
  struct Name {
    const char* name;
    int type;
  };
  static constexpr std::array<Name, 9> kNames = {{{"f32", fcclFloat32},
                                                  {"float", fcclFloat32},
                                                  {"float32", fcclFloat32},
                                                  {"f16", fcclFloat16},
                                                  {"half", fcclFloat16},
                                                  {"float16", fcclFloat16},
                                                  {"bf16", fcclBfloat16},
                                                  {"bfloat16", fcclBfloat16},
                                                  {"bfloat", fcclBfloat16}}};
  options.types.clear();
  for (const std::string& word : split_list(value)) {
    if (word == "all") {
      options.types = {fcclFloat16, fcclFloat32, fcclBfloat16};
      return {};
    }
    bool found = false;
    for (const Name& name : kNames) {
      if (word != name.name) continue;
      options.types.push_back(name.type);
      found = true;
    }
    if (!found) return allowed("a list of f32 (float), f16 (half), bf16 (bfloat16), or all");
  }
  return {};
}

Outcome set_op(Options& options, const std::string& value) {
  static constexpr std::array<Op, 6> kOps = {
      Op::kFused, Op::kUnfused, Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kBroadcast};
  for (const Op op : kOps) {
    if (value != op_name(op)) continue;
    options.op = op;
    return {};
  }
  // nccl-tests' --op is the long name of -o.
  if (set_redop(options, value).ok()) return {};
  return allowed("fused, unfused, all_reduce, reduce_scatter, all_gather, broadcast");
}

Outcome set_redop(Options& options, const std::string& value) {
  if (value == "all") {
    options.redops = {fcclSum, fcclProd, fcclMax, fcclMin, fcclAvg};
    return {};
  }
  for (int redop = fcclSum; redop <= fcclAvg; ++redop) {
    if (value != redop_name(redop)) continue;
    options.redops = {redop};
    return {};
  }
  return allowed("sum, prod, max, min, avg, all");
}

Outcome set_root(Options& options, const std::string& value) {
  options.all_roots = value == "all";
  if (options.all_roots) return {};
  return set_integer(value, 0, 15, options.root, "a rank (0 to 15) or all");
}

Outcome set_backend(Options& options, const std::string& value) {
  if (value == "auto")
    options.backend = fcclBackendAuto;
  else if (value == "cpu")
    options.backend = fcclBackendCpu;
  else if (value == "cuda")
    options.backend = fcclBackendCuda;
  else if (value == "hip")
    options.backend = fcclBackendHip;
  else
    return allowed("auto, cpu, cuda, hip");
  return {};
}

Outcome set_models(Options& options, const std::string& value) {
  options.models = split_list(value);
  for (const std::string& name : options.models) {
    if (!find_model(name))
      return Outcome::failure("no model '" + name + "'; --list-models has them");
  }
  return {};
}

Outcome set_peers(Options& options, const std::string& value) {
  options.peers = split_list(value);
  for (const std::string& peer : options.peers) {
    if (peer != "fused" && peer != "unfused" && peer != "nccl" && peer != "gloo" && peer != "mpi") {
      return allowed("a list of unfused, nccl, gloo, mpi, fused");
    }
  }
  return {};
}

Outcome set_skew(Options& options, const std::string& value) {
  options.skew_us.clear();
  for (const std::string& word : split_list(value)) {
    const auto number = parse_real(word);
    if (!number || *number < 0 || *number > 1e7)
      return allowed("a list of microseconds by rank, such as 0,50");
    options.skew_us.push_back(*number);
  }
  return {};
}

Outcome set_plots(Options& options, const std::string& value) {
  options.plot_files = split_list(value);
  for (const std::string& file : options.plot_files) {
    if (!file.ends_with(".svg") && !file.ends_with(".png") && !file.ends_with(".html")) {
      return allowed("a file name that ends in .svg, .png or .html");
    }
  }
  return {};
}

Outcome set_json(Options& options, const std::string& value) {
  if (!value.ends_with(".json") && value != "-") return allowed("a file name that ends in .json");
  options.json_file = value;
  return {};
}

Outcome set_eps(Options& options, const std::string& value) {
  double eps = 0;
  PERF_TRY(set_real(value, 0, eps, "a number >= 0"));
  options.eps = static_cast<float>(eps);
  return {};
}

Outcome set_choice(const std::string& value, const char* zero, const char* one, int& field) {
  if (value != zero && value != one) return allowed(fmt::format("{} or {}", zero, one));
  field = value == one ? 1 : 0;
  return {};
}

Outcome set_in_place(Options& options, const std::string& value) {
  if (value == "both")
    options.in_place = 2;
  else if (value == "yes")
    options.in_place = 1;
  else if (value == "no")
    options.in_place = 0;
  else
    return allowed("both, yes, no");
  return {};
}

Outcome set_inject(Options& options, const std::string& value) {
  const std::string word = value.substr(0, value.find(':'));
  if (word != "flip" && word != "nan" && word != "unwritten" && word != "canary" &&
      word != "input" && word != "skip") {
    return allowed("flip, nan, unwritten, canary, input, skip, each with :RANK if not for rank 0");
  }
  options.inject = value;
  return {};
}

Outcome set_print(Options& options, const std::string& value) {
  if (value != "man" && value != "completion") return allowed("man or completion");
  options.print = value;
  return {};
}

}  // namespace perf
