// Pictures by gnuplot: one script through a pipe, data inside.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>

#include "fccl_perf/plot_data.h"

namespace perf {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "\"";
}

std::string panel_script(const Panel& panel, int number) {
  std::string script;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    script += fmt::format("$p{}c{} << EOD\n", number, i);
    for (const auto& [x, y] : panel.curves[i].points) script += fmt::format("{} {}\n", x, y);
    script += "EOD\n";
  }
  script += fmt::format("set title {}\nset xlabel {}\nset ylabel {}\n",
                        quoted(panel.title),
                        quoted(panel.x_label),
                        quoted(panel.y_label));
  script += panel.log_x ? "set logscale x 2\n" : "unset logscale x\n";
  script += panel.log_y ? "set logscale y 10\n" : "unset logscale y\nset yrange [0:100]\n";
  script += "plot";
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const Curve& curve = panel.curves[i];
    script += fmt::format("{} $p{}c{} using 1:2 with {} lw 2 dt {} title {}",
                          i ? "," : "",
                          number,
                          i,
                          panel.steps ? "steps" : "linespoints pt 7 ps 0.5",
                          curve.peer ? 2 : 1,
                          quoted(curve.name));
  }
  return script + "\nset autoscale\n";
}

}  // namespace

Outcome write_gnuplot(const std::string& file, const std::string& title,
                      const std::vector<Panel>& panels) {
  for (const Panel& panel : panels) {
    if (panel.curves.empty())
      return Outcome::failure(fmt::format("--plot {}: there is nothing to draw", file));
  }
  const int width = 560 * static_cast<int>(panels.size());
  std::string script =
      file.ends_with(".svg")
          ? fmt::format(
                "set terminal svg size {},460 dynamic background rgb 'white' font 'sans,12'\n",
                width)
          : fmt::format("set terminal pngcairo size {},460 font 'sans,10'\n", width);
  script += fmt::format(
      "set output {}\nset encoding utf8\nset grid\nset key left top\nset termoption noenhanced\n",
      quoted(file));
  script += fmt::format("set multiplot layout 1,{} title {}\n", panels.size(), quoted(title));
  int number = 0;
  for (const Panel& panel : panels) script += panel_script(panel, number++);
  script += "unset multiplot\n";

  void (*before)(int) = signal(SIGPIPE, SIG_IGN);
  FILE* pipe = popen("gnuplot >/dev/null 2>&1", "w");
  const bool wrote =
      pipe != nullptr && std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  const int status = pipe != nullptr ? pclose(pipe) : -1;
  signal(SIGPIPE, before);
  if (wrote && status == 0) return {};
  return Outcome::failure(fmt::format(
      "--plot {}: gnuplot failed or is not installed (an .html file needs no gnuplot)", file));
}

}  // namespace perf
