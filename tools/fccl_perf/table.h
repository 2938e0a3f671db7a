// The table on standard output. Plain collectives have nccl-tests' header, columns and footer, so
// that what parses those parses these; the fused call has columns of its own in the same manner.
#pragma once

#include <string>

#include "fccl_perf/options.h"
#include "fccl_perf/result.h"

namespace perf {

std::string table_preamble(const Options& options, const Report& report);
std::string table_header(const Options& options);
// A line for the measurements of one case: out-of-place, in-place or both.
std::string table_line(const Options& options, const Result* out_of_place, const Result* in_place);
std::string table_footer(const Options& options, const Report& report);

// Numbers as nccl-tests writes them: `width` characters, as many decimals as fit.
std::string fitted(double value, int width);

}  // namespace perf
