// The same vectors as in Python.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { assign, heldOut, murmur3, Study } from "../dist/index.js";

const vectors = JSON.parse(readFileSync(new URL("../../tests/design/vectors.json", import.meta.url), "utf8"));

test("hashes are those of the vectors", () => {
  assert.ok(vectors.murmur3.length >= 5);
  for (const { text, seed, hash } of vectors.murmur3) assert.equal(murmur3(text, seed), hash, text);
});

test("levels are those of the vectors", () => {
  assert.ok(vectors.assign.length >= 10);
  for (const { shares, unit, given, held_out, levels } of vectors.assign) {
    assert.deepEqual(assign(shares, unit, given ?? {}), levels, unit);
    assert.equal(heldOut(shares, unit), held_out, unit);
  }
});

test("a given side must be named", () => {
  const shares = { version: 1, salt: "s", sides: { a: { x: 1 } }, given: ["segment"] };
  assert.throws(() => assign(shares, "u"), /segment/);
  const levels = { ...shares, given: { segment: ["young", "old"] } };
  assert.throws(() => assign(levels, "u", { segment: "yuong" }), /segment/);
  assert.deepEqual(assign(levels, "u", { segment: "old" }), { segment: "old", a: "x" });
});

/** A storage in memory. */
const memory = () => {
  const kept = new Map();
  return { kept, getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
};

/** Answers requests by a script, and notes them. */
const scripted = (t, answers) => {
  const seen = [];
  t.mock.method(globalThis, "fetch", async (url, options) => {
    seen.push({ path: url.replace(/.*\//, ""), body: options.body && JSON.parse(options.body) });
    const next = answers.shift();
    if (!next) throw new TypeError("no connection");
    return new Response(JSON.stringify(next.body), { status: next.status ?? 200 });
  });
  return seen;
};
const SHARES = { version: 3, salt: "s", max_age: 60, sides: { a: { x: 1 } }, control: { a: "x" } };
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("shares are fetched once, records are sent and forgotten", async (t) => {
  const storage = memory();
  const seen = scripted(t, [{ body: SHARES }, { body: { results: [{ status: 201 }] } }]);
  const study = new Study("https://h/", "a b", "t", { storage });
  const found = await study.assign("u1");
  assert.deepEqual(found, { unit: "u1", levels: { a: "x" }, version: 3 });
  await study.assign("u2");
  study.record(found, 1);
  await settled();
  await study.flush();
  assert.deepEqual(seen.map((each) => each.path), ["shares", "records"]);
  assert.deepEqual(seen[1].body, { records: [{ unit: "u1", levels: { a: "x" }, version: 3, reward: 1 }] });
  assert.equal(JSON.parse([...storage.kept.values()][0]).queue.length, 0);
});

test("what can't be sent survives a reload, and is sent in order", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const storage = memory(), errors = [];
  let seen = scripted(t, [{ body: SHARES }]);
  const study = new Study("https://h", "s", "t", { storage, onError: (error) => errors.push(error) });
  study.record(await study.assign("u1"));
  study.reward("u1", 1);
  await settled();
  await study.flush();
  assert.ok(errors.length > 0);
  t.mock.restoreAll();
  seen = scripted(t, [{ body: { results: [{ status: 201 }] } }, { body: { results: [{ status: 200 }] } }]);
  await new Study("https://h", "s", "t", { storage }).flush();
  assert.deepEqual(seen.map((each) => each.path), ["records", "rewards"]);
  assert.deepEqual(seen[1].body, { rewards: [{ unit: "u1", reward: 1 }] });
});

test("without a service and without shares it is the fallback, which is reported later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const storage = memory();
  scripted(t, []);
  const study = new Study("https://h", "s", "t", { storage, fallback: { a: "y" } });
  const found = await study.assign("u1");
  assert.deepEqual(found, { unit: "u1", levels: { a: "y" }, version: null });
  study.record(found); // it wasn't drawn by shares, so it is no evidence
  const { queue } = JSON.parse([...storage.kept.values()][0]);
  assert.deepEqual(queue.map((item) => item.body), [{ unit: "u1", levels: { a: "y" }, fallback: true }]);
  await settled();
});

test("two tabs of a study share a queue, and neither loses the other's items", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const storage = memory(), quiet = { storage, onError: () => {} };
  scripted(t, [{ body: SHARES }]);
  const one = new Study("https://h", "s", "t", quiet), two = new Study("https://h", "s", "t", quiet);
  const seen = await one.assign("u1");
  one.record(seen);
  two.record({ ...seen, unit: "u2" }); // with the shares that the first tab fetched
  one.reward("u1", 1);
  await settled();
  const queue = () => JSON.parse([...storage.kept.values()][0]).queue.map((item) => `${item.to} ${item.body.unit}`);
  assert.deepEqual(queue(), ["records u1", "records u2", "rewards u1"]);
  t.mock.restoreAll();
  scripted(t, [{ body: { results: [{ status: 201 }, { status: 201 }] } }]);
  await one.flush();
  assert.deepEqual(queue(), ["rewards u1"]);
});

test("a page that closes sends both kinds, and no more than a beacon takes", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [], leave = [];
  let room = 65536;
  globalThis.addEventListener = (name, hear) => void leave.push(hear);
  t.after(() => delete globalThis.addEventListener);
  const sendBeacon = (url, body) => {
    room -= Buffer.byteLength(body);
    sent.push({ url, ...JSON.parse(body) });
    return room >= 0;
  };
  Object.defineProperty(globalThis, "navigator", { value: { sendBeacon }, configurable: true });
  scripted(t, []);
  const study = new Study("https://h", "s", "t", { storage: memory(), onError: () => {} });
  study.record({ unit: "u1", levels: { a: "ü" }, version: 3 }, null, { left: 0 });
  study.reward("u1", 1, { left: 1 });
  leave[0]();
  assert.deepEqual(sent.map((each) => each.url), ["https://h/v1/studies/s/records?token=t", "https://h/v1/studies/s/rewards?token=t"]);
  assert.deepEqual([sent[0].records[0].guardrails, sent[1].rewards], [{ left: 0 }, [{ unit: "u1", reward: 1, guardrails: { left: 1 } }]]);
  for (let k = 0; k < 500; k++) study.record({ unit: `u${k}`, levels: { a: "ü".repeat(100) }, version: 3 });
  room = 65536;
  leave[0]();
  assert.ok(room >= 0);
  assert.ok(sent[2].records.length > 100);
  await settled();
});

test("without onError the first error is shown; a refused token loses nothing", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const warned = t.mock.method(console, "warn", () => {}), storage = memory();
  scripted(t, [{ body: SHARES }, { status: 401, body: { status: 401 } }]);
  const study = new Study("https://h", "s", "t", { storage });
  study.record(await study.assign("u1"));
  await settled();
  await study.flush();
  await study.flush();
  assert.equal(warned.mock.callCount(), 1);
  assert.match(String(warned.mock.calls[0].arguments[1]), /401/);
  assert.equal(JSON.parse([...storage.kept.values()][0]).queue.length, 1);
});

test("a script in Node ends although the service can't be reached, and knows what is unsent", async () => {
  const script = `
    import { Study } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
    const study = new Study("http://127.0.0.1:9", "s", "t");
    study.reward("u1", 1);
    console.log(await study.flush());
  `;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath, ["--input-type=module", "--eval", script], { timeout: 20000 });
  assert.equal(stdout, "1\n");
  assert.match(stderr, /^rank1 TypeError: fetch failed/);
});
