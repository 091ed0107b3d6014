// The verdict and the levels of each side, in words and small bars.
import { $, VERDICT, about, above, arm, get, inDays, label, leads, make, number, percent, plain, put, row, say, study, time, words } from "./common.js";

const MOST = 60; // levels of a side that are listed
const list = (names) => names.flatMap((name, k) => (k === 0 ? [label(name)] : [k === names.length - 1 ? " and " : ", ", label(name)]));

// The sides among which an order is assumed.
const chosen = (view) => view.sides.filter((side) => !side.given && side.levels.filter((level) => !level.retired).length > 1).map((side) => side.name);

// Why an arm may be an exception to the order.
const doubted = ({ arm: labels, mean, leading, tried, speaks }) => [...arm(labels),
  speaks ? ` may be an exception: it brought ${number(mean)} on average over ${number(tried)} results, and may be as good as the leader, which brought ${number(leading)}.`
    : tried ? ` was shown only ${number(tried)} times, too rarely to tell whether it is as good.` : " was never shown, so it may be as good."];

export function showVerdict(view) {
  const { verdict, lift } = view;
  const over = lift && verdict !== "none" ? [" over ", ...arm(lift.over), lift.is_control ? ", which you show today." : ", the runner-up.",
    lift.mean !== null && lift.over_mean !== null ? ` On average: ${number(lift.mean)} against ${number(lift.over_mean)}.` : ""] : ["."];
  words("leader", {
    none: () => "No results yet.",
    go: () => [view.retired ? "Ended without a verdict: " : "Keep going: ", ...arm(view.leader), " ", leads(lift)],
    stop: () => ["Stop: ship ", ...arm(view.leader)],
    only: () => ["Stop only if ", ...list(chosen(view)), " don't influence each other"],
  }[verdict]());
  // A verdict that another rule doesn't share.
  const doubtful = verdict === "only" || (verdict === "stop" && !view.any_grid_stop && chosen(view).length > 1);
  words("by", {
    none: () => "",
    go: () => (lift?.estimate === null && !(lift.low > 0) ? "" : ["Compared with ", ...over.slice(1)]),
    stop: () => (lift ? ["It ", leads(lift), ...over, ...(doubtful ? [" This holds if ", ...list(chosen(view)), ` don't influence each other.${view.retired ? "" : " If you can't assume that, keep going."}`] : [])] : "It is the only one left."),
    only: () => [...doubted(view.doubt), " ", ...arm(view.leader), " ", leads(lift), ...over],
  }[verdict]());
  words("next-step", {
    none: () => "Put one of the snippets below into your page or program: results appear here at once.",
    go: () => (view.versions ? "Leave it running: traffic automatically shifts to what works." : "Leave it running: it shows what pays, most of the time."),
    stop: () => "Show it to everyone, then end the study.",
    only: () => (view.versions ? ["Keep going until ", ...arm(view.doubt.arm), " is ruled out: the study now shows it more often."]
      : ["Show ", ...arm(view.doubt.arm), " more often, or ship if you know that ", ...list(chosen(view)), " don't influence each other."]),
  }[verdict]());
  // Before the first visitor there is nothing to look at but the snippets.
  const empty = verdict === "none" && !view.totals.suggestions;
  $("verdict").className = `card verdict ${empty ? "empty " : ""}${doubtful ? "maybe" : verdict === "stop" ? "yes" : ""}`;
  words("one-order", `If they don't influence each other: ${plain(view.reason)}.`);
  words("any-grid", `Without assuming that: ${plain(view.any_grid_reason)}.`);
  words("settings", `Goal: ${view.goal}. Algorithm: ${view.policy}. Confidence: ${percent(view.confidence)}.`
    + (view.reward_window === null ? "" : ` Results are due within ${number(view.reward_window)} seconds.`));
  $("assumes").replaceChildren(...view.assumes.map((text) => make("li", text)));
  $("warnings").replaceChildren(...view.warnings.map((text) => make("li", plain(text))));
  $("warnings").hidden = !view.warnings.length;
  $("progress-line").hidden = view.progress === null || verdict !== "go" || Boolean(view.retired);
  $("progress").value = view.progress ?? 0;
  $("ship").hidden = !["stop", "only"].includes(verdict) || Boolean(view.retired);
  if (view.leader) put($("ship"), ["Ship ", ...arm(view.leader), verdict === "only" ? " anyway" : ""]);
  $("ship").classList.toggle("quiet", verdict === "only");
  if (view.retired) words("next-step", "The study has ended.");
  for (const id of ["drop", "extend"]) $(id).hidden = Boolean(view.retired);
  const held = view.holdout;
  $("earned").hidden = !held?.units || held.earned === null;
  if (!$("earned").hidden) {
    words("earned", `What this study has earned: ${number(Math.round(held.earned))} (${number(Math.round(held.low))} to ${number(Math.round(held.high))}). `
      + `${number(held.units)} visitors kept seeing today's version and brought ${number(held.rate)} each, the others ${number(held.rest_rate)}.`);
  }
  const facts = [["suggestions", "Shown"], ["reports", "Results"], ["pending", "Pending"], ["expired", "Overdue"]].map(([key, term]) => [key, term, view.totals[key]]);
  facts.push(["rate", "Average result", view.rate], ["equal-split", "With an equal split", view.equal_split]);
  $("numbers").replaceChildren(...facts.map(([key, term, value]) => make("div", [make("dt", term), make("dd", number(value), { id: `n-${key}` })])));
  document.title = `${view.retired ? "Ended" : VERDICT[verdict]}: ${view.name} · rank1`;
}

// How long it will still take: asked for when there are noticeably more results.
let forecastOf = 0;
export async function showForecast(view) {
  if (view.verdict !== "go" || !view.versions || view.retired) { forecastOf = 0; words("forecast", ""); return; }
  if (view.totals.reports < 1.02 * forecastOf) return;
  forecastOf = view.totals.reports;
  try {
    const { visitors, days } = await get(`${study(view.name)}/forecast${view.per_day ? `?per_day=${view.per_day}` : ""}`);
    words("forecast", visitors.median === null
      ? (view.lift?.estimate === null && !(view.lift.low > 0) ? "It is too early to say how long it will take." : "No end in sight: the levels that are left may be alike.")
      : `About ${about(visitors.median)} more visitors${days ? `, or ${inDays(days, " at today's traffic")}` : ""}.`);
  } catch { say("forecast", ""); } // too early, or too busy: asked for again when there is more
}

const SVG = (tag, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

// A lift with its interval on a scale that all levels of a side share; the line is no difference.
function interval([estimate, low, high], [from, to]) {
  const place = (value) => 4 + 112 * (Math.min(Math.max(value, from), to) - from) / (to - from);
  const picture = SVG("svg", { viewBox: "0 0 120 16", class: "interval", "aria-hidden": "true" });
  picture.append(SVG("line", { x1: place(0), x2: place(0), y1: 1, y2: 15, class: "zero" }),
    SVG("line", { x1: place(low ?? from), x2: place(high ?? to), y1: 8, y2: 8, class: "range" }));
  if (estimate !== null) picture.append(SVG("circle", { cx: place(estimate), cy: 8, r: 3.5 }));
  return picture;
}

function scale(levels) {
  const ends = levels.filter((level) => level.why === null).flatMap((level) => level.lift).filter((end) => end !== null);
  return [Math.max(-1, Math.min(-0.1, ...ends)), Math.min(2, Math.max(0.1, ...ends))];
}

const signed = (part) => `${part > 0 ? "+" : ""}${percent(part)}`;
function lift([estimate, low, high]) {
  if (estimate === null || low === null || (low <= -0.995 && high === null)) return "not known yet";
  if (low === 0 && high === 0) return null;
  return `${signed(estimate)} (${high === null ? `at least ${signed(low)}` : `${signed(low)} to ${signed(high)}`})`;
}

const WHY = { refuted: "dropped: another is better", retired: "dropped by hand", dropped: "behind" }; // a policy may still show what its verdict has ruled out
function state(level) {
  if (level.why === null) return level.leads ? "leads" : "in the running";
  if (level.why === "refuted" && level.share > 0) return "behind: another is better";
  const why = WHY[level.why] ?? `dropped: ${level.why}`;
  return level.gone_at ? `${why}, ${time(level.gone_at).slice(0, 10).replaceAll("-", "\u2011")}` : why;
}

// A table for each side; made once for its levels, filled at every look.
export function makeLevels(view) {
  const head = (text, className = "") => make("th", text, { scope: "col", className });
  $("sides").replaceChildren(...view.sides.flatMap((side, k) => {
    const table = make("table", [make("thead", make("tr")), make("tbody")], { id: `levels-${k}`, role: "table" });
    const over = view.control && !side.given ? "Lift over today's" : "Lift over the leader";
    table.tHead.rows[0].append(head("Level"), head("Traffic", "figure"), head(over + above(view.reward_range[0])), head("Chance to be best", "figure"), head("State"));
    const wide = make("div", table, { className: "wide", tabIndex: 0, role: "region" });
    wide.setAttribute("aria-label", side.name);
    return [make("h3", [label(side.name), side.given ? " (comes with the visitor)" : ""]), wide];
  }));
}

export function showLevels(view) {
  $("levels").hidden = view.verdict === "none";
  view.sides.forEach((side, k) => {
    const ends = scale(side.levels);
    const shown = side.levels.length <= MOST ? side.levels : side.levels.filter((level) => level.why === null).slice(0, MOST);
    const rivals = side.levels.filter((level) => level.why === null).length > 1;
    $(`levels-${k}`).tBodies[0].replaceChildren(...shown.map((level) => {
      const text = lift(level.lift), known = text !== null && text !== "not known yet";
      const name = make("span", [label(level.label), ...(level.control ? [" ", make("span", "today", { className: "mark" })] : [])]);
      const bar = make("meter", null, { value: level.share ?? 0, max: 1 });
      bar.setAttribute("aria-hidden", "true");
      const line = row(name, [bar, " ", percent(level.share)], side.given ? "–" : known ? [interval(level.lift, ends), " ", text] : text ?? "–",
        rivals && level.why === null && !side.given ? percent(level.chance) : "–", side.given && level.why === null ? "" : state(level));
      line.cells[1].className = line.cells[3].className = "figure";
      for (const cell of [line.cells[2], line.cells[3]]) cell.classList.toggle("nothing", cell.textContent === "–");
      line.classList.toggle("gone", level.why !== null);
      return line;
    }), ...(shown.length < side.levels.length ? [row(`… of ${number(side.levels.length)} levels`)] : []));
  });
}
