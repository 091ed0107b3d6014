// The routes of the description, as a list to read.
import { $, here, make } from "./common.js";

const description = await (await fetch("openapi.json")).json();
const groups = new Map();
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, about] of Object.entries(methods)) {
    const tag = about.tags?.[0] ?? "other";
    if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push([method, path, about]);
  }
}
for (const [tag, routes] of groups) {
  const section = make("section", null, { className: "card" });
  section.append(make("h2", tag[0].toUpperCase() + tag.slice(1)));
  for (const [method, path, about] of routes) {
    const details = make("details", null, { className: "route" });
    const summary = make("summary");
    summary.append(make("span", method.toUpperCase(), { className: "method" }), " ", make("code", path), ` ${about.summary ?? ""}`);
    details.append(summary, make("p", about.description ?? about.summary ?? ""));
    const reference = about.requestBody?.content?.["application/json"]?.schema;
    const name = (reference?.$ref ?? reference?.anyOf?.[0]?.$ref)?.split("/").pop();
    if (name) details.append(make("pre", JSON.stringify(description.components.schemas[name].properties, null, 1), { tabIndex: 0 }));
    for (const each of about.parameters ?? []) {
      const line = make("p");
      line.append(make("code", each.name), ` (${each.in}) ${each.description ?? ""}`);
      details.append(line);
    }
    section.append(details);
  }
  $("routes").append(section);
}
$("example").textContent = `curl -X POST -H "Authorization: Bearer $TOKEN" ${here}/v1/studies/spring/ask`;
