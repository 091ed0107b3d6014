// The charts. Labels are data, not markup: what Plotly would take for tags is escaped.
/* global Plotly */

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
// Names often differ at the end, so the middle goes.
const cut = (text, most) => {
  const letters = [...text]; // a pair of surrogates is one
  return letters.length > most ? `${letters.slice(0, most - 4).join("")}…${letters.slice(-3).join("")}` : text;
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
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

// As many ticks as can be read.
function ticks(lines, most, length) {
  const step = Math.ceil(lines.length / most);
  const places = lines.map((_, k) => k).filter((k) => k % step === 0);
  const note = (line) => (line.retired ? " (retired)" : line.out ? " (ruled out)" : "");
  return { tickvals: places, ticktext: places.map((k) => escaped(cut(lines[k].label, length) + note(lines[k]))) };
}

// A stroke through each cell that is ruled out: seen whatever its colour is.
function hatched(out) {
  const cells = out.flatMap((line, i) => line.flatMap((gone, j) => (gone ? [[j, i]] : [])));
  return { type: "scatter", mode: "markers", hoverinfo: "skip", x: cells.map((c) => c[0]), y: cells.map((c) => c[1]),
    marker: { symbol: "line-ne-open", size: cells.length > 400 ? 6 : 14, color: colour("ink"), opacity: 0.6, line: { width: 1.5 } } };
}

export function drawGrid(element, view, quantity) {
  const [rows, columns] = view.sides.map((side) => side.levels);
  const narrow = element.clientWidth < 500;
  const values = view[quantity].map((line, i) =>
    line.map((value, j) => (quantity === "means" && view.counts[i][j] === 0 ? null : value)));
  const retired = rows.map((r) => columns.map((c) => (r.retired || c.retired ? 1 : null)));
  const out = view.out.map((line, i) => line.map((gone, j) => (gone && !retired[i][j] ? 1 : null)));
  const hover = rows.map((r, i) => columns.map((c, j) => {
    const state = retired[i][j] ? "<br>retired" : out[i][j] ? "<br>ruled out" : "";
    const mean = view.counts[i][j] ? view.means[i][j] : "none yet";
    return `${escaped(cut(r.label, 40))} × ${escaped(cut(c.label, 40))}<br>mean ${mean}<br>${view.counts[i][j]} reports, `
      + `${(100 * view.share[i][j]).toPrecision(3)} % of traffic${state}`;
  }));
  const flat = (fill) => [[0, fill], [1, fill]];
  const plain = { type: "heatmap", showscale: false, hoverinfo: "skip", zmin: 0, zmax: 1 };
  const few = rows.length * columns.length <= 2500 ? { xgap: 1, ygap: 1 } : {};
  const traces = [
    { type: "heatmap", z: values, text: hover, hoverinfo: "text", ...few,
      colorscale: [[0, colour("low")], [1, colour("high")]],
      colorbar: { thickness: 10, outlinewidth: 0, len: 1, tickfont: { size: 11 } }, showscale: !narrow },
    { ...plain, ...few, z: out, colorscale: flat(colour("card")), opacity: 0.35 },
    hatched(out),
    { ...plain, ...few, z: retired, colorscale: flat(colour("grey")), opacity: 0.9 },
  ];
  if (view.leader) {
    const at = [columns.findIndex((c) => c.label === view.leader[1]), rows.findIndex((r) => r.label === view.leader[0])];
    traces.push({ type: "scatter", mode: "markers", x: [at[0]], y: [at[1]], hoverinfo: "skip",
      marker: { symbol: "star", size: 13, color: colour("second"), line: { width: 1, color: colour("card") } } });
  }
  const length = narrow ? 9 : 18;
  const longest = Math.max(...rows.map((r) => Math.min(r.label.length, length) + (r.retired ? 10 : r.out ? 12 : 0)));
  const below = Math.max(...columns.map((c) => Math.min(c.label.length, length) + (c.retired ? 10 : c.out ? 12 : 0)));
  const size = Math.min(760, Math.max(220, rows.length * 30 + 90));
  return Plotly.react(element, traces, layout({
    height: size, plot_bgcolor: colour("ground"), margin: { l: 14 + 6.6 * longest, r: narrow ? 8 : 16, t: 6, b: columns.length > 6 || narrow ? 16 + 5.6 * below : 40 },
    xaxis: { ...ticks(columns, narrow ? 12 : 32, length), showgrid: false, zeroline: false, range: [-0.5, columns.length - 0.5],
      tickangle: columns.length > 6 || narrow ? -60 : 0 },
    yaxis: { ...ticks(rows, 32, length), showgrid: false, zeroline: false, range: [rows.length - 0.5, -0.5] },
  }), CONFIG);
}

export function drawEffects(element, lines) {
  const living = lines.filter((line) => !line.retired && line.effect[0] !== null);
  const y = living.map((_, k) => k);
  const many = living.length > 40;
  const [point, low, high] = [0, 1, 2].map((k) => living.map((line) => line.effect[k]));
  const most = Math.max(1.2, ...point.map((value, k) => Math.min(high[k] ?? value, 3 * Math.max(1, value))));
  const trace = {
    type: "scatter", mode: "markers", x: point, y, marker: { color: colour("accent"), size: many ? 4 : 8 },
    text: living.map((line, k) => `${escaped(cut(line.label, 40))}: ${point[k]} (${low[k] ?? "–"} to ${high[k] ?? "–"})`), hoverinfo: "text",
    error_x: { type: "data", symmetric: false, color: colour(many ? "grey" : "accent"), thickness: many ? 1 : 1.5, width: many ? 0 : 4,
      array: point.map((value, k) => (high[k] ?? 10) - value), arrayminus: point.map((value, k) => value - (low[k] ?? 0)) },
  };
  const longest = Math.max(4, ...living.map((line) => Math.min(line.label.length, 16) + (line.out ? 12 : 0)));
  return Plotly.react(element, [trace], layout({
    height: Math.min(700, Math.max(190, 26 * living.length + 70)), margin: { l: 14 + 6.6 * longest, r: 16, t: 6, b: 36 },
    xaxis: { range: [0, most * 1.05], zeroline: false },
    yaxis: { ...ticks(living, 30, 16), range: [Math.max(living.length, 1) - 0.5, -0.5], showgrid: !many, zeroline: false },
  }), CONFIG);
}

export function drawDays(element, days) {
  const x = days.map((day) => day.date);
  return Plotly.react(element, [
    { type: "bar", x, y: days.map((day) => day.shown), name: "shown", marker: { color: colour("low"), line: { width: 1, color: colour("accent") } } },
    { type: "scatter", mode: "lines+markers", x, y: days.map((day) => day.rate), name: "average reward", yaxis: "y2", line: { color: colour("second"), width: 2.5 } },
  ], layout({
    height: 260, showlegend: true, legend: { orientation: "h", y: 1.15, x: 0 }, margin: { l: 56, r: 56, t: 24, b: 36 },
    yaxis: { rangemode: "tozero" }, yaxis2: { overlaying: "y", side: "right", rangemode: "tozero", showgrid: false },
  }), CONFIG);
}

export function drawCurve(element, view) {
  const { reports, rate, equal_split: equal } = view.curve;
  const line = (y, name, tint, dash) => ({ type: "scatter", mode: reports.length > 1 ? "lines" : "markers", x: reports, y, name,
    line: { color: colour(tint), width: 2.5, dash } });
  return Plotly.react(element, [line(rate, "this study", "accent", "solid"), line(equal, "equal split", "second", "dash")], layout({
    height: 280, showlegend: true, legend: { orientation: "h", y: 1.12, x: 0 }, margin: { l: 56, r: 16, t: 24, b: 44 },
    hovermode: "x unified", hoverlabel: { bgcolor: colour("card"), font: { color: colour("ink") } },
    xaxis: { title: { text: "reports", standoff: 6 } }, yaxis: { rangemode: "tozero" },
  }), CONFIG);
}
