// What --help, --print man and --print completion say, all from the table of options.
#include <fccl/fccl.h>
#include <fmt/format.h>

#include "fccl_perf/numbers_list.h"
#include "fccl_perf/options.h"

namespace perf {
namespace {

constexpr const char* kSummary = "measure and check the collectives of fccl";
constexpr const char* kExamples[][2] = {
    {"fccl_perf --backend cpu --np 4 --hidden 4096,7168 --tokens 1,4,16,64,256",
     "The fused operation on four CPU ranks."},
    {"fccl_perf -g 8 --model llama3-70b -G 20 -n 500 --vs unfused,nccl --plot run.svg",
     "Eight GPUs of this host in graph mode, against NCCL and a norm kernel, with a picture."},
    {"fccl_perf --op all_reduce -b 8 -e 128M -f 2 -c 1",
     "As nccl-tests' all_reduce_perf, with its columns."},
    {"mpirun -np 16 fccl_perf --id-file /shared/id --op all_reduce -b 1K -e 1M -f 4",
     "Ranks that mpirun starts, over several nodes."},
    {"fccl_perf --np 2 -J now.json --compare before.json",
     "Exit status 1 if a shape became slower than the noise explains."},
};
constexpr const char* kMethod =
    "Each sample is combined over ranks (-a). min, p50, p90, p99 and max are nearest-rank "
    "percentiles of the samples; "
    "p99 is left out below 100 samples. Comparisons (--vs) run in rounds; each round runs every "
    "contestant once, in an "
    "order that alternates; the peer's time is the median of its rounds, the ratio the geometric "
    "mean over rounds of peer time / fccl time, "
    "with its 95 % interval.";
constexpr const char* kCheck =
    "Inputs are small multiples of 1/32, so that every sum is exact in any order. residual_out, "
    "allreduce_out and the "
    "plain collectives must be exact; norm_out may differ from a float64 reference by 1 ulp (f16, "
    "bf16) or 4 ulp (f32). "
    "Rows with NaN and Inf, guard bytes around every buffer, outputs never written and inputs that "
    "were changed count too.";
constexpr const char* kStatus =
    "0: all results right. 1: a wrong result, a failed run or a regression. 2: a wrong option; "
    "nothing was run.";

std::string flags_and_argument(const OptionRow& row) {
  std::string flags;
  for (const std::string& flag : split_list(row.flags)) flags += (flags.empty() ? "" : ", ") + flag;
  return row.argument[0] != '\0' ? flags + " " + row.argument : flags;
}

std::string wrap(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  for (const std::string& word : split_list(text, ' ')) {
    if (column > 0 && indent + column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    out += (column > 0 ? " " : "") + word;
    column += word.size() + (column > 0 ? 1 : 0);
  }
  return out;
}

std::string escape_roff(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '-' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

}  // namespace

std::string help_text() {
  std::string text = fmt::format("fccl_perf: {}\n\nUsage: fccl_perf [options]\n", kSummary);
  std::string group;
  for (const OptionRow& row : option_table()) {
    if (group != row.group) text += fmt::format("\n{}:\n", row.group);
    group = row.group;
    std::string doc = row.doc;
    if (row.fallback[0] != '\0') doc += fmt::format(" [{}]", row.fallback);
    text += fmt::format("  {:<30} {}\n", flags_and_argument(row), wrap(doc, 33, 110));
  }
  text += "\nExamples:\n";
  for (const auto& example : kExamples)
    text += fmt::format("  {}\n      {}\n", example[0], example[1]);
  text += fmt::format("\nMethod: {}\n\nCheck: {}\n\nExit status: {}\n",
                      wrap(kMethod, 0, 110),
                      wrap(kCheck, 0, 110),
                      wrap(kStatus, 0, 110));
  return text;
}

std::string manual_page() {
  std::string text = fmt::format(
      ".TH FCCL_PERF 1 \"\" \"fccl {}.{}.{}\" \"User Commands\"\n.SH NAME\nfccl_perf \\- {}\n",
      FCCL_MAJOR,
      FCCL_MINOR,
      FCCL_PATCH,
      kSummary);
  text += ".SH SYNOPSIS\n.B fccl_perf\n[\\fIoption\\fR]...\n.SH OPTIONS\n";
  std::string group;
  for (const OptionRow& row : option_table()) {
    if (group != row.group) text += fmt::format(".SS {}\n", escape_roff(row.group));
    group = row.group;
    text += fmt::format(
        ".TP\n\\fB{}\\fR\n{}", escape_roff(flags_and_argument(row)), escape_roff(row.doc));
    text +=
        row.fallback[0] != '\0' ? fmt::format(" Default: {}.\n", escape_roff(row.fallback)) : ".\n";
  }
  text += ".SH EXAMPLES\n";
  for (const auto& example : kExamples) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escape_roff(example[0]), escape_roff(example[1]));
  }
  text += fmt::format(".SH METHOD\n{}\n.SH CHECK\n{}\n.SH EXIT STATUS\n{}\n",
                      escape_roff(kMethod),
                      escape_roff(kCheck),
                      escape_roff(kStatus));
  return text;
}

std::string bash_completion() {
  std::string all;
  std::string cases;
  for (const OptionRow& row : option_table()) {
    std::string pattern;
    for (const std::string& flag : split_list(row.flags)) {
      all += (all.empty() ? "" : " ") + flag;
      pattern += (pattern.empty() ? "" : "|") + flag;
    }
    if (row.argument[0] == '\0') continue;
    const bool file = std::string(row.argument).starts_with("FILE");
    const std::string words = file ? "$(compgen -f -- \"$word\")" : row.words;
    cases += fmt::format(
        "    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n", pattern, words);
  }
  return fmt::format(
      "_fccl_perf() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}}\n  case "
      "${{COMP_WORDS[COMP_CWORD-1]}} in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n}}\ncomplete -F _fccl_perf fccl_perf\n",
      cases,
      all);
}

}  // namespace perf
