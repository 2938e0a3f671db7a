// Makes the rows of options.def into the table that the rest of the program reads.
#include "fccl_perf/option_values.h"

namespace perf {

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> table = [] {
    std::vector<OptionRow> rows;
    const char* group = "";
#define PERF_SET(expression) [](Options& o, const std::string& v) -> Outcome { return expression; }
#define PERF_TAKE(statement)                                         \
  [](Options& o, [[maybe_unused]] const std::string& v) -> Outcome { \
    statement;                                                       \
    return {};                                                       \
  }
#define PERF_GROUP(name) group = name;
#define PERF_OPTION(flags, argument, fallback, doc, words, ...) \
  rows.push_back({flags, argument, group, fallback, doc, words, __VA_ARGS__});
#include "fccl_perf/options.def"
#undef PERF_OPTION
#undef PERF_GROUP
#undef PERF_TAKE
#undef PERF_SET
    return rows;
  }();
  return table;
}

}  // namespace perf
