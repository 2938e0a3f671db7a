// What becomes of a report after the table: JSON, CSV, pictures, the comparison with an older run.
#pragma once

#include <string>

#include "fccl_perf/options.h"
#include "fccl_perf/result.h"

namespace perf {

constexpr int kJsonSchemaVersion = 1;

std::string json_text(const Options& options, const Report& report);
std::string csv_text(const Options& options, const Report& report);

// A picture by the ending of the file's name.
Outcome write_plot(const std::string& file, const Options& options, const Report& report);

// Compares with the JSON file; `text` gets a line for each shape.
Outcome compare_with_file(const Options& options, const Report& report, std::string& text,
                          bool& regression);

// Everything that the options ask for. `text` is for standard output.
Outcome write_report(const Options& options, const Report& report, std::string& text,
                     bool& regression);

Outcome write_file(const std::string& file, const std::string& content);

}  // namespace perf
