// The charts. Labels are data, not markup: what Plotly would take for tags is escaped.
/* global Plotly */
import { plain } from "./common.js";

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
// Names often differ at the end, so the middle goes.
const segments = new Intl.Segmenter();
const cut = (text, most) => {
  const letters = [...segments.segment(text)].map((each) => each.segment); // an emoji of many parts is one
  const short = letters.length > most ? `${letters.slice(0, most - 4).join("")}…${letters.slice(-3).join("")}` : text;
  return `\u2068${plain(short)}\u2069`; // isolated, as <bdi> does it elsewhere
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const PHONE = { nticks: 4, tickangle: 0 };
const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false };

function layout(more) {
  const ink = colour("ink"), edge = colour("edge");
  const axis = { gridcolor: edge, zerolinecolor: edge, linecolor: edge, tickfont: { size: 11 } };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
    font: { color: ink, family: "system-ui, sans-serif", size: 12 },
    margin: { l: 60, r: 16, t: 10, b: 50 }, showlegend: false,
    hoverlabel: { font: { family: "system-ui, sans-serif" } }, ...more,
    xaxis: { ...axis, ...more.xaxis }, yaxis: { ...axis, ...more.yaxis },
  };
}

// A level that is behind may still be shown, because the verdict needs more of it, or by a policy.
const lost = (line) => (line.why === "dropped" || (line.why === "refuted" && line.share > 0) ? "behind" : "dropped");

// As many ticks as can be read.
function ticks(lines, most, length) {
  const step = Math.ceil(lines.length / most);
  const places = lines.map((_, k) => k).filter((k) => k % step === 0);
  const note = (line) => (line.retired || line.out ? ` (${lost(line)})` : "");
  return { tickvals: places, ticktext: places.map((k) => escaped(cut(lines[k].label, length) + note(lines[k]))) };
}

// Strokes through each cell that is dropped: seen whatever its colour is.
function hatched(out, wide, high) {
  const cells = out.flatMap((line, i) => line.flatMap((gone, j) => (gone ? [[j, i]] : [])));
  const count = Math.max(1, Math.min(12, Math.floor(wide / 16)));
  const offsets = Array.from({ length: count }, (_, k) => (k + 0.5) / count - 0.5);
  return { type: "scatter", mode: "markers", hoverinfo: "skip",
    x: cells.flatMap((c) => offsets.map((o) => c[0] + o)), y: cells.flatMap((c) => offsets.map(() => c[1])),
    marker: { symbol: "line-ne-open", size: Math.max(4, Math.min(0.7 * high, 30)), color: colour("hatch"), line: { width: 1.5 } } };
}

export function drawGrid(element, view, quantity) {
  const [rows, columns] = view.sides.map((side) => side.levels);
  const narrow = element.clientWidth < 500;
  const values = view[quantity].map((line, i) =>
    line.map((value, j) => (quantity === "means" && view.counts[i][j] === 0 ? null : value)));
  const out = rows.map((r, i) => columns.map((c, j) => r.retired || c.retired || Boolean(view.out[i][j])));
  const hover = rows.map((r, i) => columns.map((c, j) => {
    const low = view.lower?.[i][j] ?? null, ends = low === null ? "" : ` (${low} to ${view.upper[i][j]})`;
    const mean = view.counts[i][j] ? `${view.means[i][j]}${ends}` : "none yet";
    return `${escaped(cut(r.label, 40))} × ${escaped(cut(c.label, 40))}<br>average ${mean}<br>${view.counts[i][j]} results, `
      + `${(100 * view.share[i][j]).toPrecision(3)}% of what was shown${out[i][j] ? `<br>${[r, c].some((line) => line.why !== null && lost(line) === "dropped") ? "dropped" : "behind"}` : ""}`;
  }));
  const few = rows.length * columns.length <= 2500 ? { xgap: 1, ygap: 1 } : {};
  const size = Math.min(760, Math.max(220, rows.length * 30 + 90));
  const traces = [
    { type: "heatmap", z: values, text: hover, hoverinfo: "text", ...few,
      colorscale: [[0, colour("low")], [1, colour("high")]],
      colorbar: { thickness: 10, outlinewidth: 0, len: 1, tickfont: { size: 11 } }, showscale: !narrow },
    hatched(out, (element.clientWidth - 150) / columns.length, (size - 50) / rows.length),
  ];
  if (view.leader) {
    // Of a side that comes with the visitor, every level has its leader.
    const [down, across] = view.sides.map((side) => side.levels.flatMap((level, k) => (level.leads || side.given ? [k] : [])));
    const stars = down.flatMap((i) => across.map((j) => [j, i]));
    traces.push({ type: "scatter", mode: "markers", x: stars.map((at) => at[0]), y: stars.map((at) => at[1]), hoverinfo: "skip",
      marker: { symbol: "star", size: 13, color: colour("second"), line: { width: 1, color: colour("card") } } });
  }
  const length = narrow ? 9 : 18;
  const longest = Math.max(...rows.map((r) => Math.min(r.label.length, length) + (r.retired || r.out ? 10 : 0)));
  const below = Math.max(...columns.map((c) => Math.min(c.label.length, length) + (c.retired || c.out ? 10 : 0)));
  return Plotly.react(element, traces, layout({
    height: size, plot_bgcolor: colour("ground"), margin: { l: 14 + 6.6 * longest, r: narrow ? 8 : 16, t: 6, b: columns.length > 6 || narrow ? 16 + 5.6 * below : 40 },
    xaxis: { ...ticks(columns, narrow ? 12 : 32, length), showgrid: false, zeroline: false, range: [-0.5, columns.length - 0.5],
      tickangle: columns.length > 6 || narrow ? -60 : 0 },
    yaxis: { ...ticks(rows, 32, length), showgrid: false, zeroline: false, range: [rows.length - 0.5, -0.5] },
  }), CONFIG);
}

// Dotted lines where something happened; the list below the chart says what.
const lines = (marks) => marks.slice(0, 60).map((mark) => ({ type: "line", xref: "x", yref: "paper", x0: date(mark.at), x1: date(mark.at), y0: 0, y1: 1,
  line: { color: colour("soft"), width: 1, dash: "dot" } }));
const date = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 19);

export function drawDays(element, bins, marks) {
  // A bar is as wide as its hour or day, even if there is only one.
  const width = 1000 * (bins[0]?.at.includes("T") ? 3600 : 86400), begin = bins.map((bin) => Date.parse(`${bin.at}Z`));
  const x = begin.map((at) => date((at + width / 2) / 1000));
  const range = bins.length ? [begin[0], begin.at(-1) + width].map((at) => date(at / 1000)) : undefined;
  return Plotly.react(element, [
    { type: "bar", x, y: bins.map((bin) => bin.shown), width: 0.9 * width, name: "shown", marker: { color: colour("bar") } },
    { type: "scatter", mode: "lines+markers", x, y: bins.map((bin) => bin.rate), name: "average result", yaxis: "y2", line: { color: colour("second"), width: 2.5 } },
  ], layout({
    height: 270, showlegend: true, legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 }, margin: { l: 56, r: 56, t: element.clientWidth < 500 ? 48 : 28, b: 36 }, shapes: lines(marks),
    hovermode: "x unified", hoverlabel: { bgcolor: colour("card"), font: { color: colour("ink") } }, xaxis: { type: "date", range, ...(element.clientWidth < 500 ? PHONE : {}) },
    yaxis: { rangemode: "tozero", tickformat: ",~r" }, yaxis2: { overlaying: "y", side: "right", tickmode: "auto", nticks: 5, rangemode: "tozero", showgrid: false, zeroline: false, tickfont: { size: 11 } },
  }), CONFIG);
}

// Colours that are told apart by most eyes, and by a pattern beyond them.
const TINTS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c"];
const PATTERNS = ["", "/", ".", "x"];

export function drawShares(element, view, side, marks) {
  const { at, shares } = view.versions;
  const { levels } = view.sides.find((each) => each.name === side);
  const x = [view.created, ...at, Date.now() / 1000].map(date);
  const start = levels.map(() => 1 / levels.length);
  const rows = [shares[side][0] ?? start, ...shares[side], shares[side].at(-1) ?? start];
  const traces = levels.map((level, k) => ({ type: "scatter", mode: "lines", stackgroup: "all", name: escaped(cut(level.label, 24)),
    x, y: rows.map((row) => 100 * (row[k] ?? 0)), line: { width: 0.5, shape: "hv", color: TINTS[k % TINTS.length] },
    fillpattern: { shape: PATTERNS[Math.floor(k / TINTS.length)] ?? "x" }, hovertemplate: "%{y:.0f}%" }));
  // On a phone each name of the legend has a line of its own, above the chart.
  const narrow = element.clientWidth < 500, above = narrow ? 20 * levels.length : 0;
  return Plotly.react(element, traces, layout({
    height: 240 + above, showlegend: true, legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 }, margin: { l: 56, r: narrow ? 16 : 56, t: 28 + above, b: 36 }, shapes: lines(marks),
    hovermode: "x unified", hoverlabel: { bgcolor: colour("card"), font: { color: colour("ink") } },
    xaxis: { type: "date", ...(narrow ? PHONE : {}) }, yaxis: { range: [0, 100], ticksuffix: "%" },
  }), CONFIG);
}
