// The table of options: flags, argument, default, doc and the function that understands the value.
// nccl-tests' flags keep their letters and meaning.
#include "fccl_perf/option_values.h"

namespace perf {
namespace {

// A row whose value goes through `statement`, with the options as `o` and the text as `v`.
#define PERF_SET(statement) [](Options& o, const std::string& v) -> Outcome { return statement; }
// A row that cannot fail: a switch (v is empty) or a free text.
#define PERF_TAKE(statement)                                         \
  [](Options& o, [[maybe_unused]] const std::string& v) -> Outcome { \
    statement;                                                       \
    return {};                                                       \
  }

using Table = std::vector<OptionRow>;

void add_ranks(Table& t) {
  constexpr const char* kGroup = "Ranks";
  t.push_back({"--np",
               "N",
               kGroup,
               "1",
               "start N processes; under mpirun, srun or torchrun theirs are used",
               "",
               PERF_SET(set_integer(v, 1, 16, o.processes, "1 to 16"))});
  t.push_back({"-t,--nthreads",
               "N",
               kGroup,
               "1",
               "threads in each process",
               "",
               PERF_SET(set_integer(v, 1, 16, o.threads, "1 to 16"))});
  t.push_back({"-g,--ngpus",
               "N",
               kGroup,
               "1",
               "GPUs of each thread, one rank each (on the CPU: more ranks); every rank has a host "
               "thread of its own",
               "",
               PERF_SET(set_integer(v, 1, 16, o.gpus, "1 to 16"))});
  t.push_back({"--backend",
               "NAME",
               kGroup,
               "auto",
               "auto, cpu, cuda or hip",
               "auto cpu cuda hip",
               set_backend});
  t.push_back({"--shared-device",
               "",
               kGroup,
               "",
               "let several ranks share one GPU",
               "",
               PERF_TAKE(o.shared_device = true)});
  t.push_back({"--id-file",
               "FILE",
               kGroup,
               "",
               "file (mode 0600, removed after use) in which rank 0 leaves the unique id for ranks "
               "that mpirun, srun or "
               "torchrun started; needed over several nodes unless FCCL_COMM_ID and "
               "FCCL_COMM_SECRET_FILE are set",
               "",
               PERF_TAKE(o.id_file = v)});
  t.push_back({"--algo",
               "RULES",
               kGroup,
               "",
               "force algorithms: FCCL_ALGO of the ranks, e.g. oneshot_lamport:64K,twoshot_rows",
               "oneshot_lamport oneshot_ll oneshot_flags twoshot_rows twoshot_cols",
               PERF_TAKE(o.algo = v)});
  t.push_back({"-p,--parallel_init",
               "0/1",
               kGroup,
               "1",
               "accepted for nccl-tests' sake: ranks always start in parallel",
               "0 1",
               PERF_SET(set_bool(v, o.parallel_init))});
}

void add_what(Table& t) {
  constexpr const char* kGroup = "What to run";
  t.push_back({"--op",
               "NAME",
               kGroup,
               "fused",
               "fused (all_reduce + residual + RMSNorm in one call), unfused (the same by "
               "fcclAllReduce and a norm), "
               "all_reduce, reduce_scatter, all_gather, broadcast",
               "fused unfused all_reduce reduce_scatter all_gather broadcast",
               set_op});
  t.push_back({"--tokens",
               "LIST",
               kGroup,
               "1,4,16,64,256",
               "rows: lists and ranges, 1,4,16 or 1..256*2 or 128..1024+128",
               "",
               PERF_SET(set_numbers(v, o.tokens, 0))});
  t.push_back({"--hidden",
               "LIST",
               kGroup,
               "4096",
               "elements of a row, likewise",
               "",
               PERF_SET(set_numbers(v, o.hidden, 1))});
  t.push_back({"--model",
               "NAMES",
               kGroup,
               "",
               "hidden size, tokens and ranks of well-known models (--list-models)",
               "",
               set_models});
  t.push_back({"-b,--minbytes",
               "SIZE",
               kGroup,
               "32M",
               "smallest size; for the fused call: bytes of the [tokens, hidden] tensor",
               "",
               PERF_SET((o.sizes_given = true, set_size(v, 0, o.min_bytes)))});
  t.push_back({"-e,--maxbytes",
               "SIZE",
               kGroup,
               "32M",
               "largest size",
               "",
               PERF_SET((o.sizes_given = true, set_size(v, 0, o.max_bytes)))});
  t.push_back({"-i,--stepbytes",
               "SIZE",
               kGroup,
               "1M",
               "fixed step between sizes",
               "",
               PERF_SET(set_size(v, 1, o.step_bytes))});
  t.push_back({"-f,--stepfactor",
               "N",
               kGroup,
               "1",
               "factor between sizes; 1: the fixed step",
               "",
               PERF_SET(set_integer(v, 1, 1 << 20, o.step_factor, "an integer from 1"))});
  t.push_back({"-d,--datatype",
               "TYPES",
               kGroup,
               "bf16 fused, else float",
               "f32 (float), f16 (half), bf16 (bfloat16), a list, or all",
               "f32 f16 bf16 float half bfloat16 all",
               set_types});
  t.push_back({"-o,--redop",
               "OP",
               kGroup,
               "sum",
               "sum, prod, max, min, avg or all (--op takes these words too)",
               "sum prod max min avg all",
               set_redop});
  t.push_back({"-r,--root", "RANK", kGroup, "0", "root of broadcast, or all", "", set_root});
}

void add_epilogue(Table& t) {
  constexpr const char* kGroup = "Epilogue of the fused call";
  t.push_back(
      {"--no-residual", "", kGroup, "", "nothing is added", "", PERF_TAKE(o.residual = false)});
  t.push_back({"--no-residual-out",
               "",
               kGroup,
               "",
               "residual_out is not stored",
               "",
               PERF_TAKE(o.residual_out = false)});
  t.push_back({"--allreduce-out",
               "",
               kGroup,
               "",
               "store the rounded sum too",
               "",
               PERF_TAKE(o.allreduce_out = true)});
  t.push_back(
      {"--bias", "", kGroup, "", "add a bias after the residual", "", PERF_TAKE(o.bias = true)});
  t.push_back({"--row-sharded",
               "",
               kGroup,
               "",
               "each rank holds the residual of its own rows only",
               "",
               PERF_TAKE(o.row_sharded = true)});
  t.push_back({"--weight-f32",
               "",
               kGroup,
               "",
               "the weight is float whatever the datatype",
               "",
               PERF_TAKE(o.weight_f32 = true)});
  t.push_back({"--weight-offset",
               "0/1",
               kGroup,
               "0",
               "1: norm * (1 + weight)",
               "0 1",
               PERF_SET(set_integer(v, 0, 1, o.weight_offset, "0 or 1"))});
  t.push_back({"--numerics",
               "MODE",
               kGroup,
               "fused",
               "fused: one rounding; as_unfused: one more after the sum",
               "fused as_unfused",
               PERF_SET(set_choice(v, "fused", "as_unfused", o.numerics))});
  t.push_back({"--eps", "X", kGroup, "1e-5", "epsilon of the norm", "", set_eps});
  t.push_back({"--weight-stable",
               "",
               kGroup,
               "",
               "FCCL_WEIGHT_STABLE",
               "",
               PERF_TAKE(o.stable_weight = true)});
  t.push_back({"--inputs-stable",
               "",
               kGroup,
               "",
               "FCCL_INPUTS_STABLE",
               "",
               PERF_TAKE(o.stable_inputs = true)});
  t.push_back({"--early-trigger",
               "",
               kGroup,
               "",
               "FCCL_EARLY_TRIGGER",
               "",
               PERF_TAKE(o.early_trigger = true)});
}

void add_method(Table& t) {
  constexpr const char* kGroup = "Method";
  t.push_back({"-n,--iters",
               "N",
               kGroup,
               "20",
               "timed iterations",
               "",
               PERF_SET(set_integer(v, 1, 100000000, o.iterations, "an integer from 1"))});
  t.push_back({"-w,--warmup_iters",
               "N",
               kGroup,
               "5",
               "iterations before, not timed",
               "",
               PERF_SET(set_integer(v, 0, 100000000, o.warmup, "an integer from 0"))});
  t.push_back({"-m,--agg_iters",
               "N",
               kGroup,
               "1",
               "calls in each iteration",
               "",
               PERF_SET(set_integer(v, 1, 1000000, o.aggregate, "an integer from 1"))});
  t.push_back({"-N,--run_cycles",
               "N",
               kGroup,
               "1",
               "run and print the sweep N times; 0: until interrupted",
               "",
               PERF_SET(set_integer(v, 0, 1000000000, o.cycles, "an integer from 0"))});
  t.push_back({"--seconds",
               "X",
               kGroup,
               "0",
               "repeat the iterations of each shape for at least X seconds",
               "",
               PERF_SET(set_real(v, 0, o.seconds, "a number of seconds >= 0"))});
  t.push_back({"-c,--check",
               "N",
               kGroup,
               "1",
               "checked iterations; 0: none",
               "",
               PERF_SET(set_integer(v, 0, 1000000, o.check, "an integer from 0"))});
  t.push_back({"-G,--cudagraph",
               "N",
               kGroup,
               "0",
               "graph mode: the iterations in one graph, N replays (CPU ranks: N batches under one "
               "clock reading)",
               "",
               PERF_SET(set_integer(v, 0, 1000000, o.replays, "an integer from 0"))});
  t.push_back({"-a,--average",
               "0/1/2/3",
               kGroup,
               "3 fused, else 1",
               "over ranks: 0 rank 0, 1 mean, 2 minimum, 3 maximum",
               "0 1 2 3",
               PERF_SET(set_integer(
                   v, 0, 3, o.average, "0 (rank 0), 1 (mean), 2 (minimum) or 3 (maximum)"))});
  t.push_back({"-z,--blocking",
               "0/1",
               kGroup,
               "0",
               "wait and meet after each call",
               "0 1",
               PERF_SET(set_bool(v, o.blocking))});
  t.push_back({"-y,--stream_null",
               "0/1",
               kGroup,
               "0",
               "use the default stream",
               "0 1",
               PERF_SET(set_bool(v, o.null_stream))});
  t.push_back({"-T,--timeout",
               "SECONDS",
               kGroup,
               "0",
               "deadline of each call; 0: the library's",
               "",
               PERF_SET(set_integer(v, 0, 86400, o.timeout_s, "0 to 86400 seconds"))});
  t.push_back({"-R,--local_register",
               "0/1/2",
               kGroup,
               "0",
               "1: buffers from fcclMemAlloc; 2: registered as windows too",
               "0 1 2",
               PERF_SET(set_integer(v, 0, 2, o.local_register, "0, 1 or 2"))});
  t.push_back({"-u,--unalign",
               "N",
               kGroup,
               "0",
               "shift every buffer by N elements; such rows are marked",
               "",
               PERF_SET(set_integer(v, 0, 4096, o.unalign, "0 to 4096 elements"))});
  t.push_back(
      {"--in-place", "WHICH", kGroup, "both", "both, yes or no", "both yes no", set_in_place});
  t.push_back({"--rotate",
               "N",
               kGroup,
               "4",
               "sets of buffers used in turn",
               "",
               PERF_SET(set_integer(v, 1, 64, o.rotate, "1 to 64"))});
  t.push_back({"--cold",
               "",
               kGroup,
               "",
               "empty the caches before each timed call",
               "",
               PERF_TAKE(o.cold = true)});
  t.push_back({"--gap",
               "US",
               kGroup,
               "0",
               "wait before each timed call",
               "",
               PERF_SET(set_real(v, 0, o.gap_us, "microseconds >= 0"))});
  t.push_back({"--skew",
               "LIST",
               kGroup,
               "",
               "delay each rank by so many microseconds before each timed call, by rank, e.g. 0,50",
               "",
               set_skew});
  t.push_back({"--seed",
               "N",
               kGroup,
               "1",
               "seed of the data",
               "",
               PERF_SET(set_integer(v, 0, int64_t{1} << 62, o.seed, "an integer from 0"))});
  t.push_back({"--inject",
               "FAULT",
               kGroup,
               "",
               "spoil a result before it is checked, to see the check at work: flip, nan, "
               "unwritten, canary, "
               "input; or skip: leave out a call; :RANK behind it picks the rank",
               "flip nan unwritten canary input skip",
               set_inject});
}

void add_peers(Table& t) {
  constexpr const char* kGroup = "Peers";
  t.push_back({"--vs",
               "LIST",
               kGroup,
               "",
               "compare in the same run, interleaved: unfused (fcclAllReduce, then a norm), nccl "
               "(the same by NCCL), gloo, mpi, fused",
               "unfused nccl gloo mpi fused",
               set_peers});
  t.push_back({"--rounds",
               "N",
               kGroup,
               "21",
               "rounds of the comparison: each runs every contestant once",
               "",
               PERF_SET(set_integer(v, 3, 10001, o.rounds, "3 to 10001"))});
}

void add_output(Table& t) {
  constexpr const char* kGroup = "Output";
  t.push_back(
      {"-J,--json,--output_file",
       "FILE",
       kGroup,
       "",
       "write JSON (schema: fccl_perf.schema.json); - is standard output, without the table",
       "",
       set_json});
  t.push_back({"--csv",
               "FILE",
               kGroup,
               "",
               "write CSV, one row for each measurement",
               "",
               PERF_TAKE(o.csv_file = v)});
  t.push_back({"--plot",
               "FILES",
               kGroup,
               "",
               "draw latency and distributions: .svg and .png need gnuplot, .html stands alone",
               "",
               set_plots});
  t.push_back({"--compare",
               "FILE",
               kGroup,
               "",
               "compare with an older JSON file; exit status 1 on a regression",
               "",
               PERF_TAKE(o.compare_file = v)});
  t.push_back({"--compare-threshold",
               "X",
               kGroup,
               "0.05",
               "relative change that counts, beside the noise",
               "",
               PERF_SET(set_real(v, 0, o.compare_threshold, "a number >= 0, such as 0.05"))});
  t.push_back(
      {"--tune",
       "FILE",
       kGroup,
       "",
       "measure each algorithm over the shapes and write the file that FCCL_TUNER_FILE loads",
       "",
       PERF_TAKE(o.tune_file = v)});
  t.push_back({"-C,--report_cputime",
               "0/1",
               kGroup,
               "0",
               "report the host's time for the call instead of the latency",
               "0 1",
               PERF_SET(set_bool(v, o.report_cputime))});
  t.push_back({"-S,--report_timestamps",
               "0/1",
               kGroup,
               "0",
               "add the date and time to each line",
               "0 1",
               PERF_SET(set_bool(v, o.timestamps))});
  t.push_back({"-M,--memory_report",
               "0/1",
               kGroup,
               "0",
               "report the memory of the communicator",
               "0 1",
               PERF_SET(set_bool(v, o.memory_report))});
}

void add_answers(Table& t) {
  constexpr const char* kGroup = "Answers without a run";
  t.push_back({"-h,--help", "", kGroup, "", "this text", "", PERF_TAKE(o.help = true)});
  t.push_back(
      {"--version", "", kGroup, "", "version of the library", "", PERF_TAKE(o.version = true)});
  t.push_back({"--list-models",
               "",
               kGroup,
               "",
               "the presets of --model",
               "",
               PERF_TAKE(o.list_models = true)});
  t.push_back({"--print",
               "WHAT",
               kGroup,
               "",
               "man (the manual page) or completion (for bash)",
               "man completion",
               set_print});
}

#undef PERF_SET
#undef PERF_TAKE

}  // namespace

const std::vector<OptionRow>& option_table() {
  static const Table table = [] {
    Table rows;
    add_ranks(rows);
    add_what(rows);
    add_epilogue(rows);
    add_method(rows);
    add_peers(rows);
    add_output(rows);
    add_answers(rows);
    return rows;
  }();
  return table;
}

}  // namespace perf
