import { $, VERDICT, arm, get, leads, make, number, row, start, study, time } from "./common.js";

const KEPT = new Map(); // what was found of each study, by its last event
const MOST = 60; // whose verdicts are asked for
let studies = [];

const link = (name) => make("a", make("bdi", name), { href: `study?name=${encodeURIComponent(name)}` });

function show() {
  const wanted = $("search").value.trim().toLowerCase();
  const found = studies.filter((each) => [each.name, ...(KEPT.get(each.name)?.leader ?? [])].some((text) => text.toLowerCase().includes(wanted)));
  $("studies").hidden = !found.length;
  $("status").textContent = found.length ? "" : wanted ? "No study matches the search." : $("archived").checked ? "There are no archived studies."
    : "There are no studies yet.";
  $("studies").tBodies[0].replaceChildren(...found.map((each) => {
    const known = KEPT.get(each.name);
    const mark = make("span", known ? (each.retired ? "Ended" : VERDICT[known.verdict]) : "…", { className: `mark ${each.retired ? "" : known?.verdict ?? ""}` });
    const leader = known?.leader ? [...arm(known.leader), make("span", ` ${leads(known.lift)}`, { className: "hint" })] : "";
    const line = row(link(each.name), mark, leader, known ? number(known.reports) : "", time(each.last_at));
    line.cells[3].className = "figure";
    return line;
  }));
  return found;
}

async function refresh() {
  studies = (await get(`v1/studies${$("archived").checked ? "?archived=true" : ""}`)).studies;
  for (const each of show().slice(0, MOST)) {
    if (KEPT.get(each.name)?.events === each.events) continue;
    try {
      KEPT.set(each.name, { ...await get(`${study(each.name)}/summary`), events: each.events });
      show();
    } catch { /* it may just have been deleted */ }
  }
}

$("search").addEventListener("input", show);
$("archived").addEventListener("change", () => refresh().catch(() => {}));
$("find").addEventListener("submit", (event) => event.preventDefault());

let timer = null;
start(async () => {
  clearTimeout(timer);
  const again = async () => { if (!document.hidden) await refresh().catch(() => {}); timer = setTimeout(again, 5000); };
  await refresh();
  timer = setTimeout(again, 5000);
});
