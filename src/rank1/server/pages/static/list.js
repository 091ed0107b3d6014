import { $, get, guarded, make, post, row, start, time } from "./common.js";

const link = (name) => make("a", name, { href: `/study?name=${encodeURIComponent(name)}` });

async function show() {
  const { studies } = await get("/v1/studies");
  $("studies").hidden = !studies.length;
  $("status").textContent = studies.length ? "" : "There are no studies yet: create the first one below.";
  $("studies").tBodies[0].replaceChildren(
    ...studies.map((each) =>
      row(link(each.name), each.retired ? "retired" : "running", each.events, time(each.last_at), time(each.created))));
}

const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);
// A side a line: its name, a colon, and its levels between commas.
const side = (line) => { const [name, ...rest] = line.split(":"); return [name.trim(), rest.join(":").split(",").map((label) => label.trim()).filter(Boolean)]; };
const grid = () => {
  const sides = lines("sides").map(side);
  if (!sides.length) return { rows: lines("rows"), columns: lines("columns") };
  const found = Object.fromEntries(sides);
  if (Object.keys(found).length < sides.length) throw new Error("Each side must have a name of its own.");
  return { sides: found };
};
const amount = (id) => ($(id).value === "" ? null : Number($(id).value));

guarded($("create"), "submit", "create-why", async () => {
  const name = $("name").value.trim();
  await post("/v1/studies", {
    name, ...grid(),
    goal: document.querySelector("input[name=goal]:checked").value,
    reward_window: amount("reward_window"), on_expiry: $("on_expiry").value, horizon: amount("horizon"),
    policy: $("policy").value.trim() || null, reward_range: [amount("low") ?? 0, amount("high") ?? 1],
    confidence: amount("confidence") ?? 0.95,
  });
  location.href = link(name).href;
});

let timer = null;
start(async () => {
  await show();
  clearInterval(timer);
  timer = setInterval(() => { if (!document.hidden) show().catch(() => {}); }, 5000);
});
