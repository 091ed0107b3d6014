import { $, call, get, guarded, make, number, percent, post, row, say, start, time } from "./common.js";
import { drawCurve, drawDays, drawEffects, drawGrid } from "./charts.js";

const EVERY = 2000;
const name = new URLSearchParams(location.search).get("name") ?? "";
const path = `/v1/studies/${encodeURIComponent(name)}`;
const arm = (levels) => (Array.isArray(levels) ? levels : view.sides.map((side) => levels[side.name])).join(" × ");
const living = (levels) => levels.filter((level) => !level.retired);
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
  const each = (of) => view.sides.map(of).join(" × ");
  const sizes = `${each((side) => side.name)}: ${each((side) => living(side.levels).length)}`;
  $("about").textContent = `${view.retired ? "Retired" : "Running"} · ${sizes} · goal: ${view.goal} · policy: ${view.policy} · since ${time(view.created)}${window_}`;
  const words = (id, text) => { if ($(id).textContent !== text) $(id).textContent = text; };
  words("leader", view.leader ? view.statement : "Nothing is reported yet.");
  words("stop", view.next_step);
  $("verdict").classList.toggle("yes", view.stop);
  $("verdict").classList.toggle("maybe", view.statement.startsWith("Stop only"));
  words("one-order", `If one order holds: ${view.reason}.`);
  words("any-grid", `On any grid: ${view.any_grid_reason}.`);
  $("assumes").replaceChildren(...view.assumes.map((text) => make("li", text)));
  $("warnings").replaceChildren(...view.warnings.map((text) => make("li", text)));
  $("warnings").hidden = !view.warnings.length;
  $("progress-line").hidden = view.progress === null || view.stop;
  $("progress").value = view.progress ?? 0;
  const held = view.holdout;
  $("earned").hidden = !held?.units;
  if (held?.units) {
    words("earned", `What this study has earned: ${number(held.earned)} (${number(held.low)} to ${number(held.high)}). ${number(held.units)} units `
      + `saw the control and brought ${number(held.rate)} each, the others ${number(held.rest_rate)}.`);
  }
  snippet();
  const facts = [["Suggestions", totals.suggestions], ["Reports", totals.reports], ["Pending", totals.pending], ["Expired", totals.expired],
    ["Cancelled", totals.cancelled], ["Reward rate", view.rate], ["Equal split", view.equal_split]];
  $("numbers").replaceChildren(...facts.map(([term, value]) => {
    const group = make("div");
    group.append(make("dt", term), make("dd", number(value), { id: `n-${term.toLowerCase().replace(" ", "-")}` }));
    return group;
  }));
  words("curve-words", view.rate === null ? "Nothing is reported yet."
    : `${number(view.rate)} a report so far; an equal split of the traffic would have brought about ${number(view.equal_split)}.`);
  const now = JSON.stringify(view.sides.map((side) => [side.name, side.levels.map((level) => [level.label, level.retired])]));
  if (now !== shape) { shape = now; showSides(); }
  showArms();
  showLevels();
  draw();
  $("ask").disabled = $("retire").disabled = Boolean(view.retired);
  // What replays take grows with both.
  if (!looked && totals.reports > 0 && totals.reports <= 20000 && view.size <= 1024) { looked = true; fit(); }
}

// What to copy into a page or program, while nothing was shown yet.
function snippet() {
  $("snippet").hidden = view.totals.suggestions > 0 || view.goal !== "find";
  if ($("snippet").hidden || $("snippet-html").textContent) return;
  const here = location.origin, quoted = JSON.stringify(name);
  $("snippet-html").textContent = `<script src="${here}/rank1.js"></` + `script>
<script>
  const study = new rank1.Study(${JSON.stringify(here)}, ${quoted}, "r1_…");
  study.assign(visitor).then((seen) => {
    /* show seen.levels: ${view.sides.map((side) => side.name).join(", ")} */
    study.record(seen);
    buy.onclick = () => study.reward(visitor, 1);
  });
</` + `script>`;
  $("snippet-python").textContent = `import rank1\n\nstudy = rank1.Client(${JSON.stringify(here)}, "r1_…").open(${quoted})\n`
    + `seen = study.ask(unit="visitor-17")      # show seen.levels\nstudy.tell(seen.id, reward=1.0)`;
  $("snippet-curl").textContent = `curl -X POST ${here}${path}/ask -H "Authorization: Bearer r1_…" -H "Content-Type: application/json" -d '{"unit": "visitor-17"}'`;
}

const lift = ([low, high]) => (low === null && high === null ? "not known yet" : low === 0 && high === 0 ? "–"
  : `${low === null ? "?" : signed(low)} to ${high === null ? "?" : signed(high)}`);
const signed = (part) => `${part > 0 ? "+" : ""}${(100 * part).toFixed(Math.abs(part) < 0.1 ? 1 : 0)} %`;

function showLevels() {
  view.sides.forEach((side, k) => {
    $(`levels-${k}`).tBodies[0].replaceChildren(...side.levels.map((level) => {
      const line = row(null, percent(level.share), lift(level.lift), level.state);
      line.cells[0].append(make("bdi", level.label));
      line.cells[1].className = "figure";
      line.classList.toggle("gone", level.retired || level.out);
      return line;
    }));
  });
}

function showArms() {
  $("arms").tBodies[0].replaceChildren(...view.arms.map((each) => {
    const line = row(...each.levels, each.mean, each.count, percent(each.share), each.state);
    line.cells[each.levels.length + 2].className = "figure";
    return line;
  }));
  const gone = view.out_arms;
  const retired = view.sides.flatMap((side) => side.levels.filter((level) => level.retired).map((level) => level.label));
  $("grid-words").textContent = (view.means && view.leader ? "The star leads. " : "")
    + (gone ? `${number(gone)} of ${number(view.size)} are ruled out${view.means ? ": they are hatched" : ""}. ` : "")
    + (retired.length ? `Retired${view.means ? ", and grey" : ""}: ${retired.join(", ")}.` : "");
}

function draw() {
  $("heat-map").hidden = !view.means;
  if (view.means) drawGrid($("grid"), view, $("quantity").value);
  $("curve").closest("section").hidden = $("effects").hidden = !view.leader;
  if (!view.leader) return;
  $("by-date").hidden = view.days.length < 2;
  if (view.days.length > 1) drawDays($("days"), view.days);
  view.sides.forEach((side, k) => drawEffects($(`effects-${k}`), side.levels));
  drawCurve($("curve"), view);
}

// What depends on the sides and their levels, and changes with a revision only.
function showSides() {
  const head = (text, className = "") => make("th", text, { scope: "col", className });
  $("arms").tHead.rows[0].replaceChildren(...view.sides.map((side) => head(side.name)),
    ...["Mean", "Reports", "Traffic"].map((text) => head(text, "figure")), head("State"));
  $("log-levels").textContent = view.sides.map((side) => side.name).join(" × ");
  const levels = (side, k) => {
    const table = make("table", null, { id: `levels-${k}` }), line = make("tr");
    line.append(head("Level"), head("Traffic", "figure"), head(`Lift over the ${view.lift?.is_control ? "control" : "leader"}`), head("State"));
    table.createTHead().append(line);
    table.append(make("tbody"));
    const wide = make("div", null, { className: "narrow" });
    wide.append(table);
    return wide;
  };
  $("effects").replaceChildren(...view.sides.map((side, k) => {
    const card = make("section", null, { className: "card" });
    card.append(make("h2", `Effects of ${side.name}`), make("p", "Relative to the leader's level, which is 1; bars are intervals.", { className: "hint" }),
      make("div", null, { id: `effects-${k}`, className: "chart", role: "img", ariaLabel: `Effects of ${side.name} with intervals` }), levels(side, k));
    return card;
  }));
  const groups = (levels, value) => view.sides.map((side) => {
    const group = make("optgroup", null, { label: side.name });
    group.append(...levels(side.levels).map((level) => make("option", level.label, { value: value(side.name, level.label) })));
    return group;
  });
  const value = (...of) => JSON.stringify(of);
  $("line").replaceChildren(...groups(living, value));
  $("side").replaceChildren(...view.sides.map((side) => make("option", side.name, { value: side.name })));
  const kept = $("log-level").value;
  $("log-level").replaceChildren(make("option", "all", { value: "" }), ...groups((levels) => levels, value));
  $("log-level").value = kept;
}

async function fit() {
  $("fit").textContent = "Replaying the study on a grid of rank one …";
  $("fit-now").disabled = true;
  try {
    const found = await get(`${path}/fit?repetitions=99`);
    $("fit").textContent = (found.p_value === null ? "" : `p = ${number(found.p_value)}. `) + found.advice;
  } catch (error) { say("fit", error); } finally { $("fit-now").disabled = false; }
}

async function log(more) {
  const query = new URLSearchParams({ newest: "true", limit: "20" });
  if ($("kind").value) query.set("kind", $("kind").value);
  if ($("log-level").value) ["side", "level"].forEach((key, k) => query.set(key, JSON.parse($("log-level").value)[k]));
  if (more && older !== null) query.set("after", older);
  const page = await get(`${path}/history?${query}`);
  const lines = page.events.map((each) => {
    const change = each.change && ["add", "retire"].flatMap((what) => Object.entries(each.change[what] ?? {})
      .map(([side, labels]) => `${what} ${side}: ${labels.join(", ")}`)).join("; ");
    const reward = each.reward === undefined || each.reward === null ? "" : number(each.reward) + (each.count ? ` (${each.count} times)` : "");
    const line = row(each.seq, time(each.at), each.kind + (each.late ? ", late" : ""), each.levels ? arm(each.levels) : change, reward, each.id);
    line.cells[4].className = "figure";
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
  $("asked").textContent = arm(asked.levels);
  $("asked-id").textContent = asked.id;
  $("tell").hidden = false;
  $("try-status").textContent = "";
  $("reward").focus();
  await refresh();
});
const settled = async (words) => { $("tell").hidden = true; $("try-status").textContent = words; $("ask").focus(); await refresh(); await log(false); };
guarded($("tell"), "submit", "try-why", async () => {
  const report = await post(`${path}/tell`, { id: asked.id, reward: Number($("reward").value) });
  await settled(`${arm(report.levels)} brought ${number(report.reward)}.`);
});
guarded($("cancel"), "click", "try-why", async () => {
  await post(`${path}/cancel`, { id: asked.id });
  await settled("It is cancelled, and doesn't count.");
});
guarded($("retire-line"), "submit", "lines-why", async () => {
  const [side, label] = JSON.parse($("line").value);
  if (!await sure(`Retire ${label}? It won't be suggested any more; pending rewards are still accepted.`)) return;
  await post(`${path}/revisions`, { retire: { [side]: [label] } });
  await refresh();
  await log(false);
});
guarded($("add-line"), "submit", "lines-why", async () => {
  await post(`${path}/revisions`, { add: { [$("side").value]: [$("new-line").value.trim()] } });
  $("new-line").value = "";
  await refresh();
  await log(false);
});
guarded($("retire"), "click", "lines-why", async () => {
  if (!await sure(`Retire the whole study ${name}? It gives no more suggestions, and this can't be undone.`)) return;
  await post(`${path}/retire`, {});
  await refresh();
});
guarded($("report"), "click", "status", async () => {
  const answer = await call(`${path}/report`);
  const address = URL.createObjectURL(await answer.blob());
  make("a", null, { href: address, download: `${name}.html` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
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
