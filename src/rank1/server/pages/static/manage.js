// What changes a study: levels, results from a file, its end; and the snippet for one that is empty.
import { $, allows, arm, download, get, guarded, here, label, make, number, post, put, remove, say, study, sure, time } from "./common.js";

let key = "r1_…";

// What to copy into a page or program, while nothing was shown yet.
export function showSnippet(view) {
  $("snippet").hidden = view.totals.suggestions > 0;
  if ($("snippet").hidden) return;
  const path = study(view.name), quoted = JSON.stringify(view.name), at = JSON.stringify(here), token = JSON.stringify(key);
  const sides = view.sides.map((side) => side.name), given = view.sides.filter((side) => side.given);
  const chosen = JSON.stringify(Object.fromEntries(given.map((side) => [side.name, side.levels[0]?.label])));
  const text = (id, words) => { if ($(id).textContent !== words) $(id).textContent = words; };
  $("snippet-for-html").hidden = $("make-key").parentElement.hidden || view.versions === null;
  const end = "</" + "script>"; // it must not end this one
  text("snippet-html", `<script src="${here}/rank1.js">${end}
<script>
  const study = new rank1.Study(${at}, ${quoted}, ${token});
  let visitor = localStorage.getItem("visitor");
  if (!visitor) localStorage.setItem("visitor", visitor = crypto.randomUUID());
  study.assign(visitor${given.length ? `, ${chosen}` : ""}).then((seen) => {
    console.log(seen.levels);   // show it: ${sides.join(", ").replace(/</g, "‹")}
    study.record(seen);
  });
  // when the visitor buys: study.reward(visitor, 1);
${end}`);
  text("snippet-python", `import rank1\n\nstudy = rank1.Client(${at}, "r1_…").open(${quoted})\n`
    + `seen = study.ask(unit="visitor-17"${given.length ? `, given=${chosen}` : ""})   # show seen.levels\nstudy.tell(seen.id, reward=1.0)`);
  const body = JSON.stringify({ unit: "visitor-17", ...(given.length ? { given: JSON.parse(chosen) } : {}) }).replaceAll("'", "'\\''");
  text("snippet-curl", `curl -X POST '${here}/${path.replaceAll("'", "%27")}/ask' -H "Authorization: Bearer $TOKEN" \\\n  -H "Content-Type: application/json" -d '${body}'`);
}

// The lines of a CSV file, each a list of cells.
export function readCsv(text) {
  const separator = (text.split("\n")[0].match(/;/g)?.length ?? 0) > (text.split("\n")[0].match(/,/g)?.length ?? 0) ? ";" : ",";
  const rows = [[""]];
  let quoted = false;
  for (let k = text.charCodeAt(0) === 0xfeff ? 1 : 0; k < text.length; k++) {
    const c = text[k], line = rows[rows.length - 1];
    if (quoted ? c === '"' && text[k + 1] === '"' : false) { line[line.length - 1] += '"'; k++; }
    else if (c === '"') quoted = !quoted;
    else if (c === separator && !quoted) line.push("");
    else if (c === "\n" && !quoted) rows.push([""]);
    else if (c !== "\r" || quoted) line[line.length - 1] += c;
  }
  return rows.filter((cells) => cells.length > 1 || cells[0].trim());
}

export function manage(name, view, named, refresh) {
  const path = study(name);
  let asked = null, table = [];

  guarded($("make-key"), "submit", "key-why", async () => {
    const typed = $("origin").value, { origin } = new URL(typed); // "null" for localhost:8080, without http://
    key = (await post("v1/tokens", { role: "browser", studies: [name], origins: [origin === "null" ? typed : origin], note: `page of ${name}`.slice(0, 200) })).token;
    showSnippet(view());
  });

  guarded($("ask"), "click", "try-why", async () => {
    const given = Object.fromEntries([...document.querySelectorAll("#given select")].map((each) => [each.dataset.side, each.value]));
    asked = await post(`${path}/ask`, Object.keys(given).length ? { given } : {});
    put($("asked"), named(asked.levels));
    $("asked-id").textContent = asked.id;
    $("tell").hidden = false;
    $("try-status").textContent = "";
    $("reward").focus();
    await refresh();
  });
  const links = async () => {
    const found = (await get(`${path}/links`)).links;
    $("links").replaceChildren(...found.map((each) => {
      const button = make("button", "Revoke", { type: "button", className: "quiet" });
      button.setAttribute("aria-label", `Revoke ${each.id}`);
      guarded(button, "click", "link-why", async () => { await remove(`${path}/links/${each.id}`); await links(); });
      return make("li", [make("time", time(each.created)), " ", label(each.note || each.id), " ", button]);
    }));
  };
  guarded($("link"), "submit", "link-why", async () => {
    const made = await post(`${path}/links`, { note: $("link-note").value.trim() });
    $("link-text").textContent = `${here}/${made.path}`;
    $("link-made").hidden = false;
    $("link-note").value = "";
    await links();
  });
  $("manage-more").addEventListener("toggle", () => {
    if ($("manage-more").open && allows("admin", name)) links().catch((error) => say("link-why", error));
    $("given").replaceChildren(...(view()?.sides ?? []).filter((side) => side.given).map((side, k) => {
      const select = make("select", side.levels.map((level) => make("option", level.label, { value: level.label })), { id: `given-${k}` });
      select.dataset.side = side.name;
      return make("div", [make("label", label(side.name), { htmlFor: `given-${k}` }), select]);
    }));
  });
  const settled = async (words) => { $("tell").hidden = true; put($("try-status"), words); $("ask").focus(); await refresh(); };
  guarded($("tell"), "submit", "try-why", async () => {
    const report = await post(`${path}/tell`, { id: asked.id, reward: Number($("reward").value) });
    await settled([...named(report.levels), ` brought ${number(report.reward)}.`]);
  });
  guarded($("cancel"), "click", "try-why", async () => {
    await post(`${path}/cancel`, { id: asked.id });
    await settled("Cancelled: it doesn't count.");
  });

  guarded($("retire-line"), "submit", "lines-why", async () => {
    const [side, one] = JSON.parse($("line").value);
    if (!await sure(["Drop ", label(one), " of ", label(side), "? It won't be shown any more. Results that are still pending will count."], "Drop")) return;
    await post(`${path}/revisions`, { retire: { [side]: [one] } });
    await refresh();
  });
  guarded($("add-line"), "submit", "lines-why", async () => {
    await post(`${path}/revisions`, { add: { [$("side").value]: [$("new-line").value.trim()] } });
    $("new-line").value = "";
    await refresh();
  });
  const open = (id) => { $("manage-more").open = true; $(id).focus(); };
  $("drop").addEventListener("click", () => open("line"));
  $("share").addEventListener("click", () => open("link-note"));
  $("extend").addEventListener("click", () => open("new-line"));

  const end = async (words, yes) => { if (await sure(words, yes)) { await post(`${path}/retire`, {}); await refresh(); } };
  guarded($("ship"), "click", "status", () =>
    end(["Ship ", ...arm(view().leader), "? This ends the study. Then make it part of your page, so that everyone sees it."], "End the study"));
  guarded($("retire"), "click", "lines-why", () => end(["End the study ", label(name), "? Visitors will no longer get anything from it. This can't be undone."], "End it"));
  guarded($("archive"), "click", "lines-why", async () => {
    await post(`${path}/${view().archived ? "unarchive" : "archive"}`, {});
    location.href = "./";
  });
  guarded($("delete"), "click", "lines-why", async () => {
    if (!await sure(["Delete ", label(name), " with all its results? This can't be undone."], "Delete", name)) throw new Error("Nothing was deleted.");
    await remove(`${path}?confirm=${encodeURIComponent(name)}`);
    location.href = "./";
  });
  guarded($("note"), "submit", "note-why", async () => {
    await post(`${path}/notes`, { text: $("note-text").value.trim() });
    $("note-text").value = "";
    await refresh();
  });

  $("csv").addEventListener("change", async () => {
    table = $("csv").files[0] ? readCsv(await $("csv").files[0].text()) : [];
    $("import").hidden = table.length < 2;
    if (table.length < 2) { say("import-why", "The file has no lines below its header."); return; }
    const wanted = [...view().sides.map((side) => side.name), "result"];
    $("mapping").replaceChildren(...wanted.map((each, k) => {
      const guess = table[0].findIndex((cell) => [each, ...(k === wanted.length - 1 ? ["reward"] : [])].includes(cell.trim()));
      const select = make("select", table[0].map((cell, at) => make("option", cell, { value: at })), { id: `column-${k}` });
      select.value = guess < 0 ? Math.min(k, table[0].length - 1) : guess;
      return make("div", [make("label", ["Column of ", label(each)], { htmlFor: `column-${k}` }), select]);
    }));
    say("import-status", `${number(table.length - 1)} lines.`);
  });
  guarded($("import"), "submit", "import-why", async () => {
    const columns = [...document.querySelectorAll("#mapping select")].map((each) => Number(each.value));
    const sides = view().sides.map((side) => side.name), id = table[0].findIndex((cell) => cell.trim() === "id");
    // Equal lines are sent as one with a count, so that no two requests are equal: the service takes a repeated one for a retry.
    const lines = new Map();
    for (const [k, cells] of table.slice(1).entries()) {
      const values = columns.map((at) => (cells[at] ?? "").trim()), result = values.pop();
      if (id >= 0 && cells[id]?.startsWith(`${view().uid}-`)) throw new Error(`Line ${k + 2} is a result of this study, which counts it already. Nothing was imported.`);
      if (result === "") continue;
      if (!Number.isFinite(Number(result))) throw new Error(`Line ${k + 2}: the result “${result}” isn't a number.`);
      const same = sides.includes("count") ? k : JSON.stringify([...values, Number(result)]);
      const line = lines.get(same) ?? { from: k + 2, count: 0, reward: Number(result), values };
      line.count++;
      lines.set(same, line);
    }
    const all = [...lines.values()];
    const rewards = all.map(({ count, reward, values }) =>
      sides.includes("count") ? [...values, reward] : { ...Object.fromEntries(sides.map((side, k) => [side, values[k]])), reward, count });
    let stored = 0, before = 0;
    for (let k = 0; k < Math.max(rewards.length, 1); k += 10000) {
      const found = await post(`${path}/imports`, { rewards: rewards.slice(k, k + 10000) }).catch((error) => {
        throw new Error(error.message.replace(/\bline (\d+)( of the history)?/g, (_, n) => `line ${all[k + Number(n) - 1]?.from}`));
      });
      if (found.already_imported) before += found.rewards; else stored += found.rewards;
    }
    say("import-status", `${number(stored)} results were imported.${before ? ` ${number(before)} were imported before, and count once.` : ""}`);
    await refresh();
  });

  guarded($("report"), "click", "status", () => download(`${path}/report`, `${name}.html`));
  for (const button of document.querySelectorAll(".export")) {
    guarded(button, "click", "status", () => download(`${path}/export?format=${button.dataset.format}`));
  }
}
