// What the user asked for, and the one table of options. The parser, --help, the manual page and
// the bash completion all come from that table (options_table.cc), so they cannot disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fccl_perf/outcome.h"

namespace perf {

enum class Op { kFused, kUnfused, kAllReduce, kReduceScatter, kAllGather, kBroadcast };

struct Options {
  // ranks
  int processes = 0;  // 0: one, or what the launcher of this process says
  int threads = 1;
  int gpus = 1;
  int backend = 0;  // fcclBackend_t
  bool shared_device = false;
  std::string id_file;
  std::string algo;  // becomes FCCL_ALGO of the ranks
  // what to run
  Op op = Op::kFused;
  std::vector<int64_t> hidden;
  std::vector<int64_t> tokens;
  std::vector<std::string> models;
  std::vector<int> types;  // fcclDataType_t; empty: bf16 for the fused call, float for the rest
  std::vector<int> redops = {0};
  bool all_roots = false;
  int root = 0;
  bool sizes_given = false;
  std::size_t min_bytes = std::size_t{32} << 20;
  std::size_t max_bytes = std::size_t{32} << 20;
  std::size_t step_bytes = std::size_t{1} << 20;
  std::size_t step_factor = 1;
  // epilogue of the fused call
  bool residual = true;
  bool residual_out = true;
  bool allreduce_out = false;
  bool bias = false;
  bool row_sharded = false;
  bool weight_f32 = false;
  int weight_offset = 0;
  int numerics = 0;
  bool stable_weight = false;
  bool stable_inputs = false;
  bool early_trigger = false;
  float eps = 1e-5f;
  // method
  int64_t iterations = 20;
  int64_t warmup = 5;
  int64_t aggregate = 1;
  int64_t cycles = 1;  // 0: until interrupted
  double seconds = 0;  // measure each shape at least this long
  int check = 1;
  int64_t replays = 0;  // -G: graph launches
  int average = -1;  // -1: slowest rank for the fused call, mean for the rest
  bool blocking = false;
  bool null_stream = false;
  bool parallel_init = true;
  int local_register = 0;
  bool cold = false;
  double gap_us = 0;
  std::vector<double> skew_us;  // by rank, repeated
  int rotate = 4;
  int64_t unalign = 0;
  int in_place = 2;  // 0: out-of-place only, 1: in-place only, 2: both
  int64_t timeout_s = 0;
  uint64_t seed = 1;
  // peers
  std::vector<std::string> peers;
  int rounds = 21;
  // output
  bool report_cputime = false;
  bool timestamps = false;
  bool memory_report = false;
  std::string json_file;
  std::string csv_file;
  std::vector<std::string> plot_files;
  std::string compare_file;
  double compare_threshold = 0.05;
  std::string tune_file;
  std::string inject;
  // answers that need no run
  bool help = false;
  bool version = false;
  bool list_models = false;
  std::string print;  // "man" or "completion"
  std::vector<std::string> command_line;
};

struct OptionRow {
  const char* flags;  // "-b,--minbytes"
  const char* argument;  // "SIZE"; empty for a switch
  const char* group;
  const char* fallback;
  const char* doc;
  const char* words;  // space-separated values for the completion; empty: none
  Outcome (*set)(Options& options, const std::string& value);
};

const std::vector<OptionRow>& option_table();

// Fills `options`. A failure's text is the one line that the user gets.
Outcome parse_options(int argc, char** argv, Options& options);

std::string help_text();
std::string manual_page();
std::string bash_completion();

const char* op_name(Op op);
// nccl-tests' name of a type ("float", "half", "bfloat16") or operation ("sum").
const char* type_name(int datatype);
const char* redop_name(int redop);
std::size_t type_bytes(int datatype);
inline bool is_fused_shape(Op op) {
  return op == Op::kFused || op == Op::kUnfused;
}

}  // namespace perf
