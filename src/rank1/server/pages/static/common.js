// What both pages share: the token, requests, and elements made without a line of HTML.

const STORE = "rank1-token";
export const $ = (id) => document.getElementById(id);

export function make(tag, text, properties = {}) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = String(text);
  return Object.assign(element, properties);
}

export function row(...cells) {
  const line = document.createElement("tr");
  for (const cell of cells) {
    const td = make("td");
    if (cell instanceof Node) td.append(cell);
    else if (typeof cell === "number") { td.textContent = number(cell); td.className = "figure"; }
    else td.textContent = cell ?? "";
    line.append(td);
  }
  return line;
}

export const number = (value) =>
  value === null || value === undefined ? "–"
    : Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString();
export const percent = (value) => (value === null ? "–" : `${(100 * value).toPrecision(3)} %`);
export const time = (seconds) =>
  seconds ? new Date(1000 * seconds).toLocaleString("sv") : "";

export class Refusal extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `the service answered ${status}`);
    this.status = status;
    this.remedy = problem?.remedy;
  }
}

export async function call(path, body, headers = {}) {
  const options = { headers: { Authorization: `Bearer ${sessionStorage.getItem(STORE) ?? ""}`, ...headers } };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.headers["Idempotency-Key"] ??= unique();
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  if (answer.status === 304) return answer;
  if (!answer.ok) {
    let problem = null;
    try { problem = await answer.json(); } catch { /* no JSON: the status says enough */ }
    if (answer.status === 401) enter(sessionStorage.getItem(STORE) ? "This token isn't known here." : "");
    throw new Refusal(answer.status, problem);
  }
  return answer;
}

export const get = async (path) => (await call(path)).json();
export const post = async (path, body, headers) => (await call(path, body, headers)).json();

// Not randomUUID, which only a page from https or localhost has.
const unique = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");

function enter(why) {
  $("enter-why").textContent = why;
  $("enter").hidden = false;
  $("main").hidden = true;
  $("leave").hidden = true;
  $("token").focus();
}

// Calls `begin` once there is a token; again after another one was entered.
export function start(begin) {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(STORE, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const open = async () => {
    $("enter").hidden = true;
    $("main").hidden = false;
    $("leave").hidden = false;
    try { await begin(); } catch (error) { if (error.status !== 401) say("status", error); }
  };
  $("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(STORE, $("token").value.trim());
    $("token").value = "";
    open();
  });
  addEventListener("hashchange", () => location.reload()); // another token was pasted over this page
  $("leave").addEventListener("click", () => { sessionStorage.removeItem(STORE); enter("The token is forgotten."); });
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
