// The curves of a picture, the same for gnuplot and for HTML: latency against tokens (or bytes) for
// each hidden size and peer, and over all shapes the distributions of the time and of the speed-up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fccl_perf/options.h"
#include "fccl_perf/result.h"

namespace perf {

struct Curve {
  std::string name;
  bool peer = false;  // drawn dashed
  std::vector<std::pair<double, double>> points;
};

struct Panel {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = true;
  bool log_y = true;
  bool steps = false;
  std::vector<Curve> curves;
};

std::vector<Panel> plot_panels(const Options& options, const Report& report);
std::string plot_title(const Options& options, const Report& report);

// By gnuplot (svg, png) and by nothing but a browser (html).
Outcome write_gnuplot(const std::string& file, const std::string& title,
                      const std::vector<Panel>& panels);
Outcome write_html(const std::string& file, const std::string& title, const Report& report,
                   const std::vector<Panel>& panels);

}  // namespace perf
