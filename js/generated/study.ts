// A study from beginning to end by a client whose types are generated from the service's schema:
// `node study.js URL TOKEN`. It compiles only while every answer is described.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };
type Shares = components["schemas"]["Shares"];

const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

function got<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const name = "generated / ü";
const path = { name };
const made = got(await client.POST("/v1/studies", {
  body: { name, sides: { headline: ["A", "B"], image: ["x", "y"] }, goal: "find", seed: 1 },
}));
const goal: "earn" | "find" = made.goal;
const asked = got(await client.POST("/v1/studies/{name}/ask", { params: { path }, body: { unit: "u1" } }));
const told = got(await client.POST("/v1/studies/{name}/tell", { params: { path }, body: { id: asked.id, reward: 1 } }));
const shares: Shares = got(await client.GET("/v1/studies/{name}/shares", { params: { path } }));
const levels = Object.fromEntries(Object.entries(shares.sides).map(([side, some]) => [side, Object.keys(some)[0] as string]));
const records = got(await client.POST("/v1/studies/{name}/records", {
  params: { path }, body: { records: [{ unit: "u2", version: shares.version, levels }] },
}));
const rewards = got(await client.POST("/v1/studies/{name}/rewards", { params: { path }, body: { rewards: [{ unit: "u2", reward: 0.5 }] } }));
const best = got(await client.GET("/v1/studies/{name}/best", { params: { path } }));
const page = got(await client.GET("/v1/studies/{name}/history", { params: { path, query: { limit: 10, kind: ["reported"] } } }));
const refused = await client.POST("/v1/studies/{name}/tell", { params: { path }, body: { id: asked.id, reward: 0 } });
const closed = got(await client.POST("/v1/studies/{name}/retire", { params: { path } }));

console.log(JSON.stringify({
  goal, told: told.reward, records: records.results.map((each) => each.status), rewards: rewards.results.map((each) => each.status),
  reports: best.totals.reports, leader: best.leader, events: page.events.map((each) => each.kind),
  refused: refused.error?.status, retired: closed.retired !== null,
}));
