// What the pages share: the token, requests, and elements made without a line of HTML.

const STORE = "rank1-token";
export const $ = (id) => document.getElementById(id);
// Where the service is, for copying; the pages themselves use relative addresses.
export const here = new URL(".", location).href.replace(/\/$/, "");
export const study = (name) => `v1/studies/${encodeURIComponent(name)}`;

export function make(tag, content, properties = {}) {
  const element = document.createElement(tag);
  put(element, content);
  return Object.assign(element, properties);
}

// Text, a node, or a list of both, in the place of what an element has.
export function put(element, content) {
  const parts = (Array.isArray(content) ? content : [content]).filter((part) => part !== undefined && part !== null);
  element.replaceChildren(...parts.map((part) => (part instanceof Node ? part : String(part))));
}

// The same only where it changes, so that a screen reader isn't told again.
export function words(id, content) {
  const before = $(id).textContent, made = make("div", content);
  if (before !== made.textContent) $(id).replaceChildren(...made.childNodes);
}

// A label is text of unknown direction: it must not turn around what stands beside it.
export const label = (text) => make("bdi", text);
// A sentence of the service has labels in it, so what would turn it around is left out.
export const plain = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "");
// Labels of an arm, with " × " between them.
export const arm = (labels) => labels.flatMap((each, k) => (k ? [" × ", label(each)] : [label(each)]));

// The roles are said because a phone shows rows as blocks.
export function row(...cells) {
  const line = make("tr", null, { role: "row" });
  for (const cell of cells) {
    const td = make("td", typeof cell === "number" ? number(cell) : cell, { role: "cell" });
    if (typeof cell === "number") td.className = "figure";
    line.append(td);
  }
  return line;
}

export const number = (value) =>
  value === null || value === undefined ? "–"
    : Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString();
// With two digits, as people say it: 38,000.
export const about = (value) => Number(value.toPrecision(2)).toLocaleString("en");
// "3.9 days (between 2.7 and 7 days in 8 out of 10 such studies)", from a forecast.
export function inDays({ low, median, high }, traffic = "") {
  const [least, middle, most] = [low, median, high].map((n) => (n === null ? null : about(Math.max(n, 0.1))));
  const range = most === null ? `at least ${least} days in 9` : `between ${least} and ${most} days in 8`;
  return `${middle} days${traffic}${least === most ? "" : ` (${range} out of 10 such studies)`}`;
}
export const percent = (part) =>
  part === null || part === undefined ? "–" : `${(100 * part).toLocaleString("en", digits(Math.abs(part) >= 0.0995 || part === 0 ? 0 : 1))}%`;
const digits = (n) => ({ minimumFractionDigits: n, maximumFractionDigits: n });
// What a lift compares, where the lowest reward isn't 0.
export const above = (low) => (low ? ` in reward above ${number(low)}` : "");
export const time = (seconds) => (seconds ? new Date(1000 * seconds).toLocaleString("sv").slice(0, 16) : "");

// "leads by 12% (4% to 21%)", from a lift.
export function leads(lift) {
  if (lift && lift.estimate === null && lift.low > 0) return `leads by at least ${percent(lift.low)}${above(lift.above)}`;
  if (!lift || lift.estimate === null) return "leads; it isn't known yet by how much";
  const { estimate, low, high } = lift;
  if (low === null || low <= -0.995) return high === null || high > 10 ? "is ahead, but that may be chance" : `leads by ${percent(estimate)}, at most ${percent(high)}${above(lift.above)}`;
  return `leads by ${percent(estimate)} (${high === null ? `at least ${percent(low)}` : `${percent(low)} to ${percent(high)}`})${above(lift.above)}`;
}
export const VERDICT = { none: "No results yet", go: "Keep going", stop: "Stop", only: "Stop only if …" };

export class Refusal extends Error {
  constructor(status, problem) {
    super(plain(problem?.detail ?? "") || `the service answered ${status}`);
    this.status = status;
  }
}

export async function call(path, body, headers = {}, method = undefined) {
  const options = { method, headers: { Authorization: `Bearer ${sessionStorage.getItem(STORE) ?? ""}`, ...headers } };
  if (body !== undefined) {
    options.method ??= "POST";
    options.headers["Content-Type"] = "application/json";
    if (!path.endsWith("/imports")) options.headers["Idempotency-Key"] ??= unique(); // the same import counts once
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  if (answer.status === 304) return answer;
  if (!answer.ok) {
    let problem = null;
    try { problem = await answer.json(); } catch { /* no JSON: the status says enough */ }
    if (answer.status === 401) enter(sessionStorage.getItem(STORE) ? "This token isn't valid for this service." : "");
    throw new Refusal(answer.status, problem);
  }
  return answer;
}

export const get = async (path) => (await call(path)).json();
export const post = async (path, body, headers) => (await call(path, body, headers)).json();
export const remove = async (path) => (await call(path, undefined, {}, "DELETE")).json();

// Not randomUUID, which only a page from https or localhost has.
const unique = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");

export async function download(path, name) {
  const answer = await call(path);
  const address = URL.createObjectURL(await answer.blob());
  const file = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "");
  make("a", null, { href: address, download: name ?? file[1] }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function enter(why) {
  $("enter-why").textContent = why;
  $("enter").hidden = false;
  $("main").hidden = true;
  $("leave").hidden = true;
  $("token").focus();
}

// What the token allows: readers see no buttons they can't use.
const MAY = { reader: ["reader", "log"], writer: ["reader", "log", "writer"], admin: ["reader", "log", "writer", "admin"] };
let own = { role: "reader", studies: null };
export function allows(role, name) {
  const may = own.link ? ["reader"] : MAY[own.role] ?? [];
  if (role === "owner") return own.role === "admin" && own.studies === null;
  return may.includes(role) && (!name || own.studies === null || own.studies.includes(name));
}

// Calls `begin` once there is a token; again after another one was entered.
export function start(begin, name) {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(STORE, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const open = async () => {
    $("enter").hidden = true;
    $("main").hidden = false;
    $("leave").hidden = false;
    try {
      own = await get("v1/tokens/current");
      for (const each of document.querySelectorAll("[data-role]")) each.hidden = !allows(each.dataset.role, name);
      await begin();
    } catch (error) { if (error.status !== 401) say("status", error); }
  };
  $("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(STORE, $("token").value.trim());
    $("token").value = "";
    open();
  });
  // Another token was pasted over this page; the link to the content also changes the hash.
  addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) location.reload(); });
  $("leave").addEventListener("click", () => { sessionStorage.removeItem(STORE); enter("The token was removed from this tab."); });
  if (sessionStorage.getItem(STORE)) open(); else enter("");
}

// An error, or words, in an element.
export function say(id, what) {
  $(id).textContent = what instanceof Error ? what.message : what;
}

// Runs what a form or button does, once at a time, and shows what is wrong.
export function guarded(element, event, why, work) {
  element.addEventListener(event, async (happened) => {
    happened.preventDefault();
    const button = happened.submitter ?? (event === "click" ? element : null);
    say(why, "");
    if (button) button.disabled = true;
    try { await work(happened); } catch (error) { say(why, error); } finally { if (button) button.disabled = false; }
  });
}

// Asks; with a name, that has to be typed.
export function sure(content, yes, name = null) {
  const dialog = $("sure");
  put($("sure-words"), content);
  $("sure-yes").textContent = yes;
  $("sure-more").hidden = name === null;
  $("sure-name").value = "";
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () =>
    resolve(dialog.returnValue === "yes" && (name === null || $("sure-name").value === name)), { once: true }));
}

export const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);
export const amount = (id) => ($(id).value === "" ? null : Number($(id).value));
