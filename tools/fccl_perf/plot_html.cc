// A page that stands alone: the curves as data, a small script that draws them as SVG, and the
// figures as a table for those without a browser that runs scripts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fccl_perf/plot_data.h"
#include "fccl_perf/writers.h"

namespace perf {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>
body { font: 14px system-ui, sans-serif; margin: 1.5em; color: #222; }
svg { width: 520px; max-width: 100%; margin: 0 1em 1em 0; }
svg text { font-size: 11px; fill: #333; }
.grid { stroke: #ddd; } .axis { stroke: #666; }
table { border-collapse: collapse; } td, th { padding: 2px 10px; text-align: right; border-bottom: 1px solid #eee; }
</style>
)";

constexpr const char* kScript = R"js(
const colours = ["#1668b8", "#d1495b", "#2e933c", "#8f5bb5", "#d98324", "#2a9d8f", "#6c757d", "#b5179e"];
const ns = "http://www.w3.org/2000/svg";
function add(parent, tag, attributes, text) {
  const element = document.createElementNS(ns, tag);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}
function scale(low, high, from, to, log) {
  const f = log ? Math.log10 : (v) => v;
  const a = f(low), b = f(high);
  return (v) => from + (b > a ? (f(v) - a) / (b - a) : 0.5) * (to - from);
}
function ticks(low, high, log) {
  const out = [];
  if (log) {
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); ++p)
      for (const m of [1, 2, 5]) if (m * 10 ** p >= low * 0.999 && m * 10 ** p <= high * 1.001) out.push(m * 10 ** p);
    return out;
  }
  const raw = (high - low) / 5 || 1, unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= raw);
  for (let v = Math.ceil(low / step) * step; v <= high * 1.0001; v += step) out.push(Number(v.toPrecision(6)));
  return out;
}
function draw(panel) {
  const svg = add(document.getElementById("pictures"), "svg", { viewBox: "0 0 520 400", role: "img" });
  const points = panel.curves.flatMap((c) => c.points);
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  let xl = Math.min(...xs), xh = Math.max(...xs), yl = Math.min(...ys), yh = Math.max(...ys);
  if (panel.steps) { yl = 0; yh = 100; }
  if (!panel.log_x) { xl = Math.min(xl, 0.9); xh = Math.max(xh, 1.1); }
  const x = scale(xl, xh, 55, 505, panel.log_x), y = scale(yl, yh, 350, 30, panel.log_y);
  for (const v of ticks(xl, xh, panel.log_x)) {
    add(svg, "line", { class: "grid", x1: x(v), x2: x(v), y1: 30, y2: 350 });
    add(svg, "text", { x: x(v), y: 365, "text-anchor": "middle" }, v);
  }
  for (const v of ticks(yl, yh, panel.log_y)) {
    add(svg, "line", { class: "grid", x1: 55, x2: 505, y1: y(v), y2: y(v) });
    add(svg, "text", { x: 50, y: y(v) + 4, "text-anchor": "end" }, v);
  }
  add(svg, "path", { class: "axis", d: "M55 30V350H505", fill: "none" });
  add(svg, "text", { x: 280, y: 16, "text-anchor": "middle", "font-weight": "bold" }, panel.title);
  add(svg, "text", { x: 280, y: 385, "text-anchor": "middle" }, panel.x_label);
  add(svg, "text", { x: 12, y: 190, "text-anchor": "middle", transform: "rotate(-90 12 190)" }, panel.y_label);
  panel.curves.forEach((curve, i) => {
    const colour = colours[i % colours.length];
    let d = "";
    curve.points.forEach(([px, py], k) => {
      const before = k ? curve.points[k - 1][1] : 0;
      if (panel.steps) d += (k ? "L" : "M") + x(px) + " " + y(before) + "L" + x(px) + " " + y(py);
      else d += (k ? "L" : "M") + x(px) + " " + y(py);
    });
    add(svg, "path", { d, fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": curve.peer ? "5 4" : "none" });
    for (const [px, py] of curve.points) {
      const dot = add(svg, "circle", { cx: x(px), cy: y(py), r: 3, fill: colour });
      add(dot, "title", {}, curve.name + ": " + Number(px.toPrecision(4)) + ", " + Number(py.toPrecision(4)));
    }
    add(svg, "line", { x1: 65, x2: 85, y1: 42 + 15 * i, y2: 42 + 15 * i, stroke: colour, "stroke-width": 2, "stroke-dasharray": curve.peer ? "5 4" : "none" });
    add(svg, "text", { x: 90, y: 46 + 15 * i }, curve.name);
  });
}
JSON.parse(document.getElementById("panels").textContent).forEach(draw);
)js";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '<')
      out += "&lt;";
    else if (letter == '&')
      out += "&amp;";
    else
      out += letter;
  }
  return out;
}

std::string panels_json(const std::vector<Panel>& panels) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Panel& panel : panels) {
    nlohmann::ordered_json curves = nlohmann::ordered_json::array();
    for (const Curve& curve : panel.curves) {
      curves.push_back({{"name", curve.name}, {"peer", curve.peer}, {"points", curve.points}});
    }
    json.push_back({{"title", panel.title},
                    {"x_label", panel.x_label},
                    {"y_label", panel.y_label},
                    {"log_x", panel.log_x},
                    {"log_y", panel.log_y},
                    {"steps", panel.steps},
                    {"curves", curves}});
  }
  std::string text = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string figures(const Report& report) {
  std::string text =
      "<table><tr><th>op<th>tokens<th>hidden<th>bytes<th>type<th>in place<th>min us<th>p50 "
      "us<th>p90 us<th>max us<th>peers\n";
  for (const Result& result : report.results) {
    const Case& one = result.one;
    const Summary& s = result.summary;
    std::string peers;
    for (const PeerResult& peer : result.peers) {
      if (!peer.problem.empty()) continue;
      peers += fmt::format("{} {:.2f} us ({:.2f}x) ", peer.name, peer.us, peer.ratio.value);
    }
    text += fmt::format(
        "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{:.2f}<td>{:.2f}<td>{:.2f}<td>{:.2f}<td>{}\n",
        op_name(one.op),
        one.tokens,
        one.hidden,
        one.bytes,
        type_name(one.datatype),
        result.in_place ? "yes" : "no",
        s.min,
        s.p50,
        s.p90,
        s.max,
        escaped(peers));
  }
  return text + "</table>\n";
}

}  // namespace

Outcome write_html(const std::string& file, const std::string& title, const Report& report,
                   const std::vector<Panel>& panels) {
  std::string page = kHead;
  page += fmt::format(
      "<title>{0}</title></head><body><h1>{0}</h1><p>{1}</p><div id=\"pictures\"></div>\n",
      escaped(title),
      escaped(report.start_time));
  for (const std::string& note : report.notes) page += fmt::format("<p>{}</p>\n", escaped(note));
  page += figures(report);
  page += fmt::format(
      "<script type=\"application/json\" "
      "id=\"panels\">{}</script>\n<script>{}</script>\n</body></html>\n",
      panels_json(panels),
      kScript);
  return write_file(file, page);
}

}  // namespace perf
