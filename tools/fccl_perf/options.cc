#include "fccl_perf/options.h"

#include <fccl/fccl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "fccl_perf/models.h"
#include "fccl_perf/numbers_list.h"

namespace perf {
namespace {

struct Given {
  const OptionRow* row;
  std::string value;
};

Outcome check_together(Options& options) {
  if (options.sizes_given && options.min_bytes > options.max_bytes) {
    return Outcome::failure(
        fmt::format("-b {} is larger than -e {}", options.min_bytes, options.max_bytes));
  }
  const bool shapes = !options.tokens.empty() || !options.hidden.empty() || !options.models.empty();
  if (!is_fused_shape(options.op) && shapes) {
    return Outcome::failure(fmt::format(
        "--tokens, --hidden and --model belong to the fused call; --op {} takes -b and -e",
        op_name(options.op)));
  }
  if (!options.models.empty() && (!options.tokens.empty() || !options.hidden.empty())) {
    return Outcome::failure("--model brings its own --hidden and --tokens");
  }
  if (!options.tokens.empty() && options.sizes_given) {
    return Outcome::failure("--tokens and -b, -e say the same thing: give one of them");
  }
  if (options.row_sharded && !options.residual) {
    return Outcome::failure("--row-sharded needs a residual: leave out --no-residual");
  }
  if (options.null_stream && options.replays > 0) {
    return Outcome::failure(
        "-y 1 and -G do not go together: the default stream cannot be captured");
  }
  if (!options.peers.empty() && options.report_cputime) {
    return Outcome::failure("-C 1 and --vs do not go together");
  }
  for (const std::string& peer : options.peers) {
    const bool norm = peer == "fused" || peer == "unfused";
    if (norm && !is_fused_shape(options.op)) {
      return Outcome::failure(
          fmt::format("--vs {} compares fused calls; --op {} takes nccl, gloo, mpi",
                      peer,
                      op_name(options.op)));
    }
    if (!norm && options.op != Op::kAllReduce && !is_fused_shape(options.op)) {
      return Outcome::failure(fmt::format(
          "--vs {} compares fused calls and all_reduce, not {}", peer, op_name(options.op)));
    }
  }
  return {};
}

// A link named all_reduce_perf runs all_reduce, as nccl-tests' program of that name does.
Op op_of_program(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const Op op : {Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kBroadcast}) {
    if (name == fmt::format("{}_perf", op_name(op))) return op;
  }
  return Op::kFused;
}

void fill_defaults(Options& options) {
  const bool fused = is_fused_shape(options.op);
  if (options.types.empty()) options.types = {fused ? fcclBfloat16 : fcclFloat32};
  if (options.average < 0) options.average = fused ? 3 : 1;
  if (!fused) return;
  if (options.hidden.empty()) options.hidden = {4096};
  if (options.tokens.empty() && !options.sizes_given) options.tokens = {1, 4, 16, 64, 256};
}

}  // namespace

const char* op_name(Op op) {
  switch (op) {
    case Op::kFused:
      return "fused";
    case Op::kUnfused:
      return "unfused";
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kReduceScatter:
      return "reduce_scatter";
    case Op::kAllGather:
      return "all_gather";
    case Op::kBroadcast:
      return "broadcast";
  }
  return "?";
}

const char* type_name(int datatype) {
  if (datatype == fcclFloat32) return "float";
  return datatype == fcclFloat16 ? "half" : "bfloat16";
}

const char* redop_name(int redop) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg"};
  return redop < 0 || redop > 4 ? "none" : kNames[redop];
}

std::size_t type_bytes(int datatype) {
  return datatype == fcclFloat32 ? 4 : 2;
}

Outcome parse_options(int argc, char** argv, Options& options) {
  options.command_line.assign(argv, argv + argc);
  options.op = op_of_program(argv[0]);
  CLI::App app;
  app.set_help_flag();
  std::vector<Given> given;
  for (const OptionRow& row : option_table()) {
    if (row.argument[0] == '\0') {
      app.add_flag_callback(row.flags, [&given, &row] { given.push_back({&row, ""}); });
      continue;
    }
    app.add_option_function<std::string>(row.flags,
                                         [&given, &row](const std::string& value) {
                                           given.push_back({&row, value});
                                         })
        ->take_last();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    for (char& letter : text) letter = letter == '\n' ? ' ' : letter;
    return Outcome::failure(text + " (--help lists the options)");
  }
  for (const Given& one : given) {
    const Outcome outcome = one.row->set(options, one.value);
    if (outcome.ok()) continue;
    const std::string flags = one.row->flags;
    return Outcome::failure(
        fmt::format("{} {}: {}", flags.substr(0, flags.find(',')), one.value, outcome.text()));
  }
  PERF_TRY(check_together(options));
  fill_defaults(options);
  return {};
}

}  // namespace perf
