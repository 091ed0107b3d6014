import { $, call, get, guarded, make, number, percent, post, row, say, start, time } from "./common.js";
import { drawCurve, drawEffects, drawGrid } from "./charts.js";

const EVERY = 2000;
const name = new URLSearchParams(location.search).get("name") ?? "";
const path = `/v1/studies/${encodeURIComponent(name)}`;
const pair = (labels) => `${labels[0]} × ${labels[1]}`;
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
let view = null, tag = null, asked = null, older = null, shape = "", looked = false;

document.title = `${name} · rank1`;
$("title").textContent = name;

async function refresh() {
  const answer = await call(`${path}/view`, undefined, tag ? { "If-None-Match": tag } : {});
  say("status", "");
  if (answer.status === 304) return;
  tag = answer.headers.get("ETag");
  view = await answer.json();
  show();
}

function show() {
  const { totals } = view;
  const window_ = view.reward_window === null ? "" : `, rewards are due within ${number(view.reward_window)} s`;
  $("about").textContent = `${view.retired ? "Retired" : "Running"} · ${view.rows.filter((r) => !r.retired).length} rows × `
    + `${view.columns.filter((c) => !c.retired).length} columns · goal: ${view.goal} · policy: ${view.policy} · since ${time(view.created)}${window_}`;
  const words = (id, text) => { if ($(id).textContent !== text) $(id).textContent = text; };
  words("leader", view.leader
    ? `${pair(view.leader)}: ${number(view.mean)}` + (view.interval[0] === null ? "" : ` (${number(view.interval[0])} to ${number(view.interval[1])})`)
    : "Nothing is reported yet.");
  words("stop", sentence(view.reason));
  $("stop").classList.toggle("yes", view.stop);
  words("any-grid", `Without assuming rank one: ${view.any_grid_reason}.`);
  const facts = [["Suggestions", totals.suggestions], ["Reports", totals.reports], ["Pending", totals.pending], ["Expired", totals.expired],
    ["Cancelled", totals.cancelled], ["Reward rate", view.rate], ["Equal split", view.equal_split]];
  $("numbers").replaceChildren(...facts.map(([term, value]) => {
    const group = make("div");
    group.append(make("dt", term), make("dd", number(value), { id: `n-${term.toLowerCase().replace(" ", "-")}` }));
    return group;
  }));
  words("curve-words", view.rate === null ? "Nothing is reported yet."
    : `${number(view.rate)} a report so far; showing all pairs alike would have brought about ${number(view.equal_split)}.`);
  showPairs();
  draw();
  const now = JSON.stringify([view.rows.map((r) => [r.label, r.retired]), view.columns.map((c) => [c.label, c.retired])]);
  if (now !== shape) { shape = now; showLines(); }
  $("ask").disabled = $("retire").disabled = Boolean(view.retired);
  // What replays take grows with both.
  if (!looked && totals.reports > 0 && totals.reports <= 20000 && view.rows.length * view.columns.length <= 1024) { looked = true; fit(); }
}

function showPairs() {
  const all = [];
  view.means.forEach((line, i) => line.forEach((mean, j) => {
    if (view.counts[i][j]) all.push([mean, i, j]);
  }));
  all.sort((a, b) => b[0] - a[0]);
  $("pairs").tBodies[0].replaceChildren(...all.slice(0, 10).map(([mean, i, j]) => {
    const [r, c] = [view.rows[i], view.columns[j]];
    const leads = view.leader && r.label === view.leader[0] && c.label === view.leader[1];
    const line = row(r.label, c.label, mean, view.counts[i][j], percent(view.share[i][j]),
      leads ? "leads" : r.retired || c.retired ? "retired" : view.out[i][j] ? "out" : "");
    line.cells[4].className = "figure";
    return line;
  }));
  const gone = view.out.flat().filter(Boolean).length;
  const retired = [...view.rows, ...view.columns].filter((line) => line.retired).map((line) => line.label);
  $("grid-words").textContent = (view.leader ? "The star leads. " : "") + (gone ? `${gone} pairs are out of the running: they are pale. ` : "")
    + (retired.length ? `Retired, and grey: ${retired.join(", ")}.` : "");
}

function draw() {
  drawGrid($("grid"), view, $("quantity").value);
  for (const id of ["row-effects", "column-effects", "curve"]) $(id).closest("section").hidden = !view.leader;
  if (!view.leader) return;
  drawEffects($("row-effects"), view.rows);
  drawEffects($("column-effects"), view.columns);
  drawCurve($("curve"), view);
}

function showLines() {
  const options = (side, lines) => lines.map((line) => make("option", line.label, { value: JSON.stringify([side, line.label]) }));
  const group = (label, children) => { const g = make("optgroup", null, { label }); g.append(...children); return g; };
  const living = (lines) => lines.filter((line) => !line.retired);
  $("line").replaceChildren(group("Rows", options("rows", living(view.rows))), group("Columns", options("columns", living(view.columns))));
  for (const [id, lines] of [["log-row", view.rows], ["log-column", view.columns]]) {
    const kept = $(id).value;
    $(id).replaceChildren(make("option", "all", { value: "" }), ...lines.map((line) => make("option", line.label, { value: line.label })));
    $(id).value = kept;
  }
}

async function fit() {
  $("fit").textContent = "Replaying the study's policy on a grid of rank one …";
  $("fit-now").disabled = true;
  try {
    const found = await get(`${path}/fit?repetitions=99`);
    $("fit").textContent = (found.p_value === null ? "" : `p = ${number(found.p_value)}. `) + found.advice;
  } catch (error) { say("fit", error); } finally { $("fit-now").disabled = false; }
}

async function log(more) {
  const query = new URLSearchParams({ newest: "true", limit: "20" });
  for (const [key, id] of [["kind", "kind"], ["row", "log-row"], ["column", "log-column"]]) if ($(id).value) query.set(key, $(id).value);
  if (more && older !== null) query.set("after", older);
  const page = await get(`${path}/history?${query}`);
  const lines = page.events.map((each) => {
    const change = each.change && Object.entries(each.change).map(([key, labels]) => `${key.replace("_", " ")}: ${labels.join(", ")}`).join("; ");
    const reward = each.reward === undefined || each.reward === null ? "" : number(each.reward) + (each.count ? ` (${each.count} times)` : "");
    const line = row(each.seq, time(each.at), each.kind + (each.late ? ", late" : ""), each.row ?? change, each.column, reward, each.id);
    line.cells[5].className = "figure";
    return line;
  });
  const body = $("log").tBodies[0];
  if (more) body.append(...lines); else body.replaceChildren(...lines);
  older = page.next;
  $("older").hidden = older === null;
}

function sure(words) {
  const dialog = $("sure");
  $("sure-words").textContent = words;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

$("quantity").addEventListener("change", () => { if (view) drawGrid($("grid"), view, $("quantity").value); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (view) draw(); });
guarded($("fit-now"), "click", "fit", fit);
guarded($("filter"), "submit", "status", () => log(false));
guarded($("older"), "click", "status", () => log(true));

guarded($("ask"), "click", "try-why", async () => {
  asked = await post(`${path}/ask`, {});
  $("asked").textContent = pair([asked.row, asked.column]);
  $("asked-id").textContent = asked.id;
  $("tell").hidden = false;
  $("try-status").textContent = "";
  $("reward").focus();
  await refresh();
});
const settled = async (words) => { $("tell").hidden = true; $("try-status").textContent = words; $("ask").focus(); await refresh(); await log(false); };
guarded($("tell"), "submit", "try-why", async () => {
  const report = await post(`${path}/tell`, { id: asked.id, reward: Number($("reward").value) });
  await settled(`${pair([report.row, report.column])} brought ${number(report.reward)}.`);
});
guarded($("cancel"), "click", "try-why", async () => {
  await post(`${path}/cancel`, { id: asked.id });
  await settled("It is cancelled: it teaches nothing.");
});
guarded($("retire-line"), "submit", "lines-why", async () => {
  const [side, label] = JSON.parse($("line").value);
  if (!await sure(`Retire ${label}? It won't be suggested any more; rewards that are out are still taken.`)) return;
  await post(`${path}/revisions`, { [`retire_${side}`]: [label] });
  await refresh();
  await log(false);
});
guarded($("add-line"), "submit", "lines-why", async () => {
  await post(`${path}/revisions`, { [`add_${$("side").value}`]: [$("new-line").value.trim()] });
  $("new-line").value = "";
  await refresh();
  await log(false);
});
guarded($("retire"), "click", "lines-why", async () => {
  if (!await sure(`Retire the whole study ${name}? It gives no suggestions any more, for good.`)) return;
  await post(`${path}/retire`, {});
  await refresh();
});
for (const button of document.querySelectorAll(".export")) {
  guarded(button, "click", "status", async () => {
    const answer = await call(`${path}/export?format=${button.dataset.format}`);
    const address = URL.createObjectURL(await answer.blob());
    const file = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition"))[1];
    make("a", null, { href: address, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  });
}

let timer = null;
start(async () => {
  clearTimeout(timer);
  await refresh();
  await log(false);
  const again = async () => {
    if (!document.hidden) {
      try { await refresh(); } catch (error) { if (error.status !== 401) say("status", `Not up to date: ${error.message}`); }
    }
    timer = setTimeout(again, EVERY);
  };
  timer = setTimeout(again, EVERY);
});
