// Every flag takes a good value and refuses a wrong one in one line that says what is allowed.
#include "fccl_perf/options.h"

#include <map>

#include "fccl_perf/numbers_list.h"
#include "harness/catch.h"

using namespace perf;

namespace {

Outcome parse(const std::vector<std::string>& words, Options& options) {
  std::vector<std::string> all = {"fccl_perf"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data(), options);
}

struct Values {
  const char* good;
  const char* bad;  // empty: any text is legal
};

const std::map<std::string, Values>& values() {
  static const std::map<std::string, Values> table = {
      {"--np", {"4", "17"}},
      {"-t", {"2", "0"}},
      {"-g", {"2", "x"}},
      {"--backend", {"cpu", "tpu"}},
      {"--id-file", {"/tmp/id", ""}},
      {"--algo", {"oneshot_flags", ""}},
      {"-p", {"1", "2"}},
      {"--op", {"all_reduce", "all_to_all"}},
      {"--tokens", {"1..8*2", "-1"}},
      {"--hidden", {"64,4096", "0"}},
      {"--model", {"llama3-8b", "llama9"}},
      {"-b", {"8", "8q"}},
      {"-e", {"64M", "huge"}},
      {"-i", {"1K", "0"}},
      {"-f", {"2", "0"}},
      {"-d", {"f16", "f8"}},
      {"-o", {"max", "mean"}},
      {"-r", {"1", "99"}},
      {"--weight-offset", {"1", "2"}},
      {"--numerics", {"as_unfused", "exact"}},
      {"--eps", {"1e-6", "-1"}},
      {"-n", {"100", "0"}},
      {"-w", {"0", "-1"}},
      {"-m", {"4", "0"}},
      {"-N", {"2", "-1"}},
      {"--seconds", {"0.5", "soon"}},
      {"-c", {"0", "yes"}},
      {"-G", {"20", "-2"}},
      {"-a", {"3", "4"}},
      {"-z", {"1", "on"}},
      {"-y", {"0", "null"}},
      {"-T", {"30", "-1"}},
      {"-R", {"2", "3"}},
      {"-u", {"1", "-1"}},
      {"--in-place", {"no", "maybe"}},
      {"--rotate", {"1", "0"}},
      {"--gap", {"10", "-1"}},
      {"--skew", {"0,50", "0,-1"}},
      {"--seed", {"7", "-7"}},
      {"--inject", {"flip:1", "break"}},
      {"--vs", {"unfused,gloo", "horovod"}},
      {"--rounds", {"5", "1"}},
      {"-J", {"x.json", "x.xml"}},
      {"--csv", {"x.csv", ""}},
      {"--plot", {"x.svg,x.html", "x.pdf"}},
      {"--compare", {"x.json", ""}},
      {"--compare-threshold", {"0.1", "-0.1"}},
      {"--tune", {"x.txt", ""}},
      {"-C", {"1", "2"}},
      {"-S", {"1", "2"}},
      {"-M", {"1", "2"}},
      {"--print", {"man", "html"}},
  };
  return table;
}

std::string first_flag(const OptionRow& row) {
  return split_list(row.flags)[0];
}

}  // namespace

TEST_CASE("every_flag_takes_a_good_value_and_refuses_a_wrong_one") {
  for (const OptionRow& row : option_table()) {
    const std::string flag = first_flag(row);
    INFO(flag);
    Options options;
    if (row.argument[0] == '\0') {
      CHECK(row.set(options, "").ok());
      continue;
    }
    REQUIRE(values().count(flag) == 1);
    const Values& value = values().at(flag);
    CHECK(row.set(options, value.good).ok());
    if (value.bad[0] == '\0') continue;
    Options untouched;
    const Outcome outcome = parse({flag, value.bad}, untouched);
    REQUIRE_FALSE(outcome.ok());
    CHECK(outcome.text().find(flag) != std::string::npos);
    CHECK(outcome.text().find(value.bad) != std::string::npos);
    CHECK(outcome.text().find('\n') == std::string::npos);
    CHECK(outcome.text().size() > flag.size() + 12);
  }
  for (const auto& entry : values()) {
    bool known = false;
    for (const OptionRow& row : option_table()) known = known || first_flag(row) == entry.first;
    CHECK(known);
  }
}

TEST_CASE("long_names_of_nccl_tests_are_known") {
  for (const char* flag : {"--nthreads",
                           "--ngpus",
                           "--minbytes",
                           "--maxbytes",
                           "--stepbytes",
                           "--stepfactor",
                           "--iters",
                           "--agg_iters",
                           "--warmup_iters",
                           "--run_cycles",
                           "--parallel_init",
                           "--check",
                           "--op",
                           "--datatype",
                           "--root",
                           "--blocking",
                           "--stream_null",
                           "--timeout",
                           "--cudagraph",
                           "--report_cputime",
                           "--average",
                           "--local_register",
                           "--report_timestamps",
                           "--output_file",
                           "--memory_report",
                           "--unalign",
                           "--help"}) {
    bool known = false;
    for (const OptionRow& row : option_table()) {
      for (const std::string& name : split_list(row.flags)) known = known || name == flag;
    }
    INFO(flag);
    CHECK(known);
  }
}

TEST_CASE("values_reach_their_fields") {
  Options options;
  REQUIRE(parse({"--op", "all_reduce", "-b", "8", "-e", "128M", "-f", "2",   "-c", "1", "-g", "2",
                 "-n",   "50",         "-w", "3", "-d", "half", "-o", "max", "-a", "2", "-G", "7"},
                options)
              .ok());
  CHECK(options.op == Op::kAllReduce);
  CHECK(options.min_bytes == 8);
  CHECK(options.max_bytes == std::size_t{128} << 20);
  CHECK(options.step_factor == 2);
  CHECK(options.gpus == 2);
  CHECK(options.iterations == 50);
  CHECK(options.warmup == 3);
  CHECK(options.types == std::vector<int>{6});
  CHECK(options.redops == std::vector<int>{2});
  CHECK(options.average == 2);
  CHECK(options.replays == 7);
}

TEST_CASE("defaults_fit_the_operation") {
  Options fused;
  REQUIRE(parse({}, fused).ok());
  CHECK(fused.types == std::vector<int>{9});
  CHECK(fused.average == 3);
  Options plain;
  REQUIRE(parse({"--op", "broadcast"}, plain).ok());
  CHECK(plain.types == std::vector<int>{7});
  CHECK(plain.average == 1);
  CHECK(plain.min_bytes == std::size_t{32} << 20);
}

TEST_CASE("options_that_contradict_each_other_are_refused") {
  const std::vector<std::vector<std::string>> wrong = {
      {"-b", "2M", "-e", "1M"},
      {"--op", "all_reduce", "--tokens", "4"},
      {"--model", "llama3-8b", "--hidden", "64"},
      {"--tokens", "4", "-b", "8", "-e", "8"},
      {"--row-sharded", "--no-residual"},
      {"--op", "all_reduce", "--vs", "unfused"},
      {"--op", "broadcast", "--vs", "gloo"},
      {"-y", "1", "-G", "5"},
      {"--no-such-flag"},
      {"stray"},
      {"-n"},
  };
  for (const std::vector<std::string>& words : wrong) {
    Options options;
    const Outcome outcome = parse(words, options);
    INFO(words[0]);
    CHECK_FALSE(outcome.ok());
    CHECK(outcome.text().find('\n') == std::string::npos);
  }
}

TEST_CASE("help_manual_and_completion_have_every_flag") {
  const std::string help = help_text();
  const std::string completion = bash_completion();
  std::string manual = manual_page();
  std::erase(manual, '\\');
  for (const OptionRow& row : option_table()) {
    for (const std::string& flag : split_list(row.flags)) {
      INFO(flag);
      CHECK(help.find(flag) != std::string::npos);
      CHECK(manual.find(flag) != std::string::npos);
      CHECK(completion.find(flag) != std::string::npos);
    }
  }
}
