import { $, arm, call, get, guarded, label, make, number, percent, plain, put, row, say, start, study, time, words } from "./common.js";
import { drawDays, drawGrid, drawShares } from "./charts.js";
import { makeLevels, showForecast, showLevels, showVerdict } from "./levels.js";
import { manage, showSnippet } from "./manage.js";

const EVERY = 2000;
const name = new URLSearchParams(location.search).get("name") ?? "";
const path = study(name);
const named = (levels) => arm(Array.isArray(levels) ? levels : view.sides.map((side) => levels[side.name]));
let view = null, tag = null, older = null, paged = false, shape = "", fitted = 0;

document.title = `${name} · rank1`;
$("title").replaceChildren(label(name));

async function refresh() {
  const answer = await call(`${path}/view`, undefined, tag ? { "If-None-Match": tag } : {});
  say("status", "");
  if (answer.status === 304) return;
  tag = answer.headers.get("ETag");
  view = await answer.json();
  show();
  if ($("log-more").open && !paged) await log(false);
}

function show() {
  const { totals } = view;
  const sizes = view.sides.map((side) => side.levels.filter((level) => !level.retired).length);
  const all = sizes.reduce((a, b) => a * b, 1);
  words("about", [view.retired ? `Ran from ${time(view.created)} to ${time(view.retired)} · ` : `Running since ${time(view.created)} · `, ...view.sides.flatMap((side, k) => [k ? " × " : "", label(side.name)]),
    ` · ${sizes.length > 1 ? `${sizes.join(" × ")} = ` : ""}${number(all)} ${sizes.length > 1 ? "combinations" : "levels"}${view.archived ? " · archived" : ""}`]);
  const now = JSON.stringify(view.sides.map((side) => [side.name, side.levels.map((level) => [level.label, level.retired])]));
  if (now !== shape) { shape = now; showSides(); }
  showVerdict(view);
  showForecast(view);
  showSnippet(view);
  showLevels(view);
  showArms();
  showChanges();
  draw();
  $("check").hidden = view.sides.length < 2 || !totals.reports;
  if ($("fit-more").open && fitted && totals.reports > 1.5 * fitted && totals.reports <= 20000) fit();
}

// A combination that is behind may still be shown: by a policy, or until its levels are dropped.
const isShown = (levels) => !view.versions || levels.every((name, k) => view.sides[k].levels.some((level) => level.label === name && level.share > 0));

function showArms() {
  $("combinations").hidden = view.verdict === "none" || view.sides.length < 2;
  $("arms").tBodies[0].replaceChildren(...view.arms.map((each) => {
    const line = row(...each.levels.map(label), each.mean, `${number(each.interval[0])} to ${number(each.interval[1])}`, each.count, percent(each.share), each.state !== "out" ? each.state : isShown(each.levels) ? "behind" : "dropped");
    line.cells[each.levels.length + 3].className = "figure";
    return line;
  }));
  words("grid-words", (view.means && view.leader ? "The star marks the leader. " : "")
    + (view.out_arms ? `${number(view.out_arms)} of ${number(view.size)} combinations are behind or dropped${view.means ? ": they are hatched" : ""}. ` : "")
    + (view.upper ? "Hover over a cell to see its interval." : ""));
}

// What happened to the levels, and notes; the newest first.
function changes() {
  const gone = view.sides.flatMap((side) => side.levels.filter((level) => level.gone_at && level.why !== "retired")
    .map((level) => ({ at: level.gone_at, words: [label(level.label), " of ", label(side.name), level.why !== "refuted" ? ` was dropped: ${level.why}`
      : level.share > 0 ? " fell behind: another is better" : " was dropped: another is better"] })));
  const noted = view.notes.map((each) => ({ at: each.at, words: each.kind === "noted" ? ["Note: ", label(each.data.text)]
    : ["add", "retire"].flatMap((what) => Object.entries(each.change[what] ?? {}).flatMap(([side, labels]) =>
      labels.flatMap((one) => [label(one), " of ", label(side), what === "add" ? " was added. " : " was dropped by hand. "]))) }));
  return [...gone, ...noted].sort((a, b) => b.at - a.at);
}

function showChanges() {
  $("changes").replaceChildren(...changes().slice(0, 30).map((each) => make("li", [make("time", time(each.at)), " ", ...each.words])));
}

function draw() {
  $("by-date").hidden = view.verdict === "none" && !view.traffic.length;
  if (!window.Plotly) return;
  $("heat-map").hidden = !view.means;
  if (view.means && !$("combinations").hidden) drawGrid($("grid"), view, $("quantity").value);
  if ($("by-date").hidden) return;
  const marks = changes();
  drawDays($("days"), view.traffic, marks);
  const sides = Object.keys(view.versions?.shares ?? {});
  $("share-chart").hidden = !sides.length || view.versions.at.length < 1;
  if ($("share-chart").hidden) return;
  if ($("shares-of").length !== sides.length) $("shares-of").replaceChildren(...sides.map((side) => make("option", side, { value: side })));
  drawShares($("shares"), view, $("shares-of").value, marks);
}

// What depends on the sides and their levels, and changes with a revision only.
function showSides() {
  const head = (text, className = "") => make("th", text, { scope: "col", className });
  $("arms").tHead.rows[0].replaceChildren(...view.sides.map((side) => head(label(side.name))), head("Average", "figure"), head("Interval"),
    ...["Results", "Share so far"].map((text) => head(text, "figure")), head("State"));
  put($("log-levels"), view.sides.flatMap((side, k) => [k ? " × " : "", label(side.name)]));
  makeLevels(view);
  const groups = (keep, value) => view.sides.map((side) =>
    make("optgroup", side.levels.filter(keep).map((level) => make("option", level.label, { value: value(side.name, level.label) })), { label: side.name }));
  const value = (...of) => JSON.stringify(of);
  $("line").replaceChildren(...groups((level) => !level.retired, value));
  $("side").replaceChildren(...view.sides.map((side) => make("option", side.name, { value: side.name })));
  const kept = $("log-level").value;
  $("log-level").replaceChildren(make("option", "all", { value: "" }), ...groups(() => true, value));
  $("log-level").value = kept;
}

async function fit() {
  fitted = view.totals.reports;
  $("fit").textContent = "Replaying the study with sides that don't influence each other …";
  $("fit-now").disabled = true;
  try {
    const found = await get(`${path}/fit?repetitions=99`);
    $("fit").textContent = `${found.p_value === null ? "" : `p = ${number(found.p_value)}. `}${plain(found.advice)} (as of ${number(fitted)} results)`;
  } catch (error) { say("fit", error); } finally { $("fit-now").disabled = false; }
}

async function log(more) {
  const query = new URLSearchParams({ newest: "true", limit: "20" });
  if ($("kind").value) query.set("kind", $("kind").value);
  if ($("log-level").value) ["side", "level"].forEach((key, k) => query.set(key, JSON.parse($("log-level").value)[k]));
  if (more && older !== null) query.set("after", older);
  paged = more;
  const page = await get(`${path}/history?${query}`);
  const lines = page.events.map((each) => {
    const change = each.change && ["add", "retire"].flatMap((what) => Object.entries(each.change[what] ?? {})
      .map(([side, labels]) => `${what} ${side}: ${labels.join(", ")}`)).join("; ");
    const reward = each.reward === undefined || each.reward === null ? "" : number(each.reward) + (each.count ? ` (${each.count} times)` : "");
    const line = row(each.seq, time(each.at), each.kind + (each.late ? ", late" : ""), each.levels ? named(each.levels) : make("bdi", change ?? each.data?.text), reward, each.id);
    line.cells[4].className = "figure";
    return line;
  });
  const body = $("log").tBodies[0];
  if (more) body.append(...lines); else body.replaceChildren(...lines);
  older = page.next;
  $("older").hidden = older === null;
}

$("quantity").addEventListener("change", () => { if (view) drawGrid($("grid"), view, $("quantity").value); });
$("shares-of").addEventListener("change", () => { if (view) draw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (view) draw(); });
guarded($("fit-now"), "click", "fit", fit);
guarded($("filter"), "submit", "status", () => log(false));
guarded($("older"), "click", "status", () => log(true));
$("log-more").addEventListener("toggle", () => { if ($("log-more").open && view) log(false).catch((error) => say("status", error)); });
manage(name, () => view, named, refresh);

let timer = null;
start(async () => {
  clearTimeout(timer);
  await refresh();
  const again = async () => {
    if (!document.hidden) {
      try { await refresh(); } catch (error) { if (error.status !== 401) say("status", `Not up to date: ${error.message}`); }
    }
    timer = setTimeout(again, EVERY);
  };
  timer = setTimeout(again, EVERY);
}, name);
