// The form for a new study.
import { $, about, amount, guarded, inDays, lines, make, post, say, start } from "./common.js";

const EXAMPLES = [["headline", "Free shipping\nSave 20% today"], ["image", "people\nproduct"], ["button", "Buy now\nAdd to basket"]];
let made = 0;

function addSide(focus) {
  const k = made++, [name, levels] = EXAMPLES[k] ?? ["", ""];
  const side = make("fieldset", null, { className: "side card" });
  const field = (id, text, element) => [make("label", text, { htmlFor: id }), Object.assign(element, { id })];
  const given = make("input", null, { type: "checkbox", id: `given-${k}` });
  const forget = make("button", "Remove", { type: "button", className: "quiet" });
  forget.setAttribute("aria-label", `Remove side ${k + 1}`);
  forget.addEventListener("click", () => { side.remove(); size(); });
  side.append(make("legend", `Side ${k + 1}`, { className: "hidden" }),
    ...field(`side-${k}`, `Side ${k + 1}`, make("input", null, { placeholder: name, maxLength: 256, autocomplete: "off" })),
    ...field(`levels-${k}`, "Its variants, one per line", make("textarea", null, { rows: 4, placeholder: levels })),
    make("label", [given, " It comes with the visitor and can't be chosen, such as age or country"], { className: "choice find-only" }), make("p", forget));
  side.addEventListener("input", size);
  $("sides").append(side);
  if (focus) $(`side-${k}`).focus();
  goal();
}

// The sides as they are filled in; an empty one is left out.
function sides() {
  const found = [...document.querySelectorAll(".side")].map((side) => {
    const [name, given] = side.querySelectorAll("input");
    return { name: name.value.trim(), levels: lines(side.querySelector("textarea").id), given: given.checked };
  }).filter((side) => side.name || side.levels.length);
  if (new Set(found.map((side) => side.name)).size < found.length) throw new Error("Give each side a different name.");
  for (const side of found) if (!side.name) throw new Error(`The side with ${side.levels[0]} needs a name.`);
  if (!found.length) throw new Error("Name a side, and its variants one per line.");
  return found;
}

function size() {
  try {
    const counts = sides().map((side) => side.levels.length);
    $("size").textContent = counts.length > 1 ? `${counts.join(" × ")} = ${counts.reduce((a, b) => a * b, 1).toLocaleString("en")} combinations` : "";
  } catch { $("size").textContent = ""; }
}

const finds = () => document.querySelector("input[name=goal]:checked").value === "find";
function goal() {
  const show = (selector, shown) => {
    for (const each of document.querySelectorAll(selector)) {
      each.hidden = !shown;
      for (const field of each.querySelectorAll("input")) field.disabled = !shown; // or it would be validated
    }
  };
  show(".find-only, #for-find", finds());
  show(".earn-only", !finds());
}

const part = (id) => (amount(id) ?? 0) / 100;

// Options that only studies which find have.
function options(all) {
  const chosen = all.filter((side) => !side.given), name = $("guardrail").value.trim();
  const control = $("with-control").checked ? Object.fromEntries(chosen.map((side) => [side.name, side.levels[0]])) : null;
  return {
    control, given: all.filter((side) => side.given).map((side) => side.name),
    floor: part("floor"), holdout: part("holdout"), min_lift: part("min_lift"),
    guardrails: name ? { [name]: { worse_by: part("worse_by") } } : {},
  };
}

guarded($("create"), "submit", "create-why", async () => {
  const all = sides(), name = $("name").value.trim(), hours = amount("reward_window");
  await post("v1/studies", {
    name, sides: Object.fromEntries(all.map((side) => [side.name, side.levels])), goal: finds() ? "find" : "earn",
    reward_window: hours === null ? null : 3600 * hours, on_expiry: $("on_expiry").value,
    reward_range: [amount("low") ?? 0, amount("high") ?? 1], confidence: part("confidence") || 0.95,
    ...(finds() ? options(all) : { policy: $("policy").value.trim() || null }),
  });
  location.href = `study?name=${encodeURIComponent(name)}`;
});

guarded($("estimate"), "click", "create-why", async () => {
  say("long", "");
  // The browser says what is wrong in the units of the form: "at most 99".
  for (const id of ["min_lift", "confidence", "per_day", "rate", "lift"]) if (!$(id).reportValidity()) return;
  say("long", "Simulating a few such studies …");
  try {
    const { visitors, days } = await post("v1/forecasts", {
      levels: sides().filter((side) => !side.given).map((side) => side.levels.length), rate: part("rate"), lift: part("lift"),
      min_lift: part("min_lift"), confidence: part("confidence") || 0.95, per_day: amount("per_day"),
    });
    say("long", visitors.median === null ? "No end in sight: look for larger differences, or enter which differences don't matter to you."
      : `About ${about(visitors.median)} visitors${days ? `, or ${inDays(days)}` : ""}, `
        + "if the best variant of each side is that much better and the others are alike. Larger differences are found sooner.");
  } catch (error) { say("long", ""); throw error; }
});

for (const each of document.querySelectorAll("input[name=goal]")) each.addEventListener("change", goal);
// The browser can't point at a field in a section that is folded.
$("create").addEventListener("invalid", ({ target }) => { const folded = target.closest("details"); if (folded) folded.open = true; }, true);
$("add-side").addEventListener("click", () => addSide(true));
addSide(false);
addSide(false);
start(async () => {});
