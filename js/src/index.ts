/** A level for each side, by the side's name. */
export type Levels = Record<string, string>;

/** The current version of a study's shares, as `GET /v1/studies/{name}/shares` returns it. */
export interface Shares {
  version: number;
  salt: string;
  max_age?: number;
  sides: Record<string, Record<string, number>>;
  given?: Record<string, string[]> | string[];
  holdout?: number | null;
  control?: Levels | null;
}

/** The levels a visitor sees, and the version they were drawn from; null for the fallback. */
export interface Assignment {
  unit: string;
  levels: Levels;
  version: number | null;
}

export interface Options {
  /** Levels to show if the service can't be reached; default: the control, once it is known. */
  fallback?: Levels;
  /** Called with each error; the page never gets an exception. */
  onError?: (error: unknown) => void;
  /** Where to keep shares and unsent reports; default: localStorage, or memory if there is none. */
  storage?: Pick<Storage, "getItem" | "setItem">;
  /** Milliseconds to wait for an answer; default: 2000. */
  timeout?: number;
}

/** MurmurHash3_x86_32 of a text, encoded as UTF-8. */
export function murmur3(text: string, seed: number): number {
  const bytes = new TextEncoder().encode(text);
  const mix = (k: number): number => {
    k = Math.imul(k, 0xcc9e2d51);
    return Math.imul((k << 15) | (k >>> 17), 0x1b873593);
  };
  const end = bytes.length & ~3;
  let h = seed, tail = 0;
  for (let i = 0; i < end; i += 4) {
    h ^= mix(bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24));
    h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
  }
  for (let i = bytes.length - 1; i >= end; i--) tail = (tail << 8) | bytes[i]!;
  h ^= mix(tail) ^ bytes.length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

const draw = (shares: Shares, side: string, unit: string): number =>
  murmur3(unit, murmur3(shares.salt + "\n" + side, 0)) / 2 ** 32;

/** Whether a unit stays on the control for the whole study. */
export const heldOut = (shares: Shares, unit: string): boolean =>
  draw(shares, "", unit) < (shares.holdout ?? 0);

/** Draw a unit's levels: the same unit and shares always give the same levels. */
export function assign(shares: Shares, unit: string, given: Levels = {}): Levels {
  const levels: Levels = {};
  const named = shares.given ?? [];
  for (const side of Array.isArray(named) ? named : Object.keys(named)) {
    const level = given[side];
    if (level === undefined) throw new Error(`given must name a level of ${side}`);
    levels[side] = level;
  }
  const control = heldOut(shares, unit) ? shares.control : null;
  for (const [side, options] of Object.entries(shares.sides)) {
    const x = draw(shares, side, unit);
    let total = 0, level = "";
    for (const [name, share] of Object.entries(options)) {
      if (share <= 0) continue;
      level = name;
      if ((total += share) > x) break;
    }
    levels[side] = control?.[side] ?? level;
  }
  return levels;
}

type Item = { to: "records" | "rewards"; body: Record<string, unknown> };
type Kept = { shares?: Shares; at: number; queue: Item[] };

const MOST = 1000;

/** A study on a rank1 service, for use in web pages. */
export class Study {
  private kept: Kept = { at: 0, queue: [] };
  private readonly key: string;
  private sending: Promise<void> | null = null;
  private pause = 1000;

  /**
   * @param url the address of the service, such as https://rank1.shop.example
   * @param name the study's name
   * @param token a token with the role "browser", which may be public
   */
  constructor(
    private readonly url: string,
    name: string,
    private readonly token: string,
    private readonly options: Options = {},
  ) {
    this.url = `${url.replace(/\/$/, "")}/v1/studies/${encodeURIComponent(name)}/`;
    this.key = `rank1 ${this.url}`;
    try {
      this.options.storage ??= localStorage;
      this.kept = { ...this.kept, ...JSON.parse(this.options.storage.getItem(this.key) ?? "{}") };
    } catch { /* no storage, or a damaged one: start empty */ }
    if (typeof addEventListener === "function") addEventListener("pagehide", () => this.beacon());
    if (this.kept.queue.length) void this.flush();
  }

  /** Get the levels to show to a unit. Never throws: without shares, it returns the fallback. */
  async assign(unit: string, given: Levels = {}): Promise<Assignment> {
    try {
      const shares = await this.shares();
      return { unit, levels: assign(shares, unit, given), version: shares.version };
    } catch (error) {
      this.failed(error);
      const levels = { ...given, ...(this.options.fallback ?? this.kept.shares?.control) };
      this.add({ to: "records", body: { unit, levels, fallback: true } });
      return { unit, levels, version: null };
    }
  }

  /** Get the current shares, from the cache if they are fresh or the service can't be reached. */
  async shares(): Promise<Shares> {
    const { shares, at } = this.kept;
    if (shares && Date.now() - at < 1000 * (shares.max_age ?? 60)) return shares;
    try {
      const answer = await this.fetch("shares");
      if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
      this.kept.shares = (await answer.json()) as Shares;
      this.kept.at = Date.now();
      this.keep();
    } catch (error) {
      if (!shares) throw error;
      this.failed(error);
    }
    return this.kept.shares!;
  }

  /** Record that a unit has seen its assignment, with the reward if it is already known. */
  record(seen: Assignment, reward: number | null = null): void {
    const { version, ...rest } = seen;
    if (version !== null) this.add({ to: "records", body: { ...rest, version, reward } });
  }

  /** Report the reward of a recorded unit. */
  reward(unit: string, reward: number): void {
    this.add({ to: "rewards", body: { unit, reward } });
  }

  /** Send the queue; resolves when it is sent, or when it can't be sent now. */
  flush(): Promise<void> {
    this.sending ??= this.send().finally(() => { this.sending = null; });
    return this.sending;
  }

  private async send(): Promise<void> {
    while (this.kept.queue.length) {
      const batch = this.batch();
      const to = batch[0]!.to;
      try {
        const answer = await this.fetch(to, this.body(batch));
        if (answer.status >= 500 || answer.status === 429) throw new Error(`${answer.status}`);
        const { results } = answer.ok ? await answer.json() : { results: [await answer.json()] };
        for (const each of results) if (each.status >= 400) this.failed(each);
        const sent = new Set(batch);
        this.kept.queue = this.kept.queue.filter((item) => !sent.has(item));
        this.keep();
        this.pause = 1000;
      } catch (error) {
        this.failed(error);
        setTimeout(() => void this.flush(), this.pause *= 2);
        return;
      }
    }
  }

  /** The items at the head of the queue that go to the same route. */
  private batch(): Item[] {
    const { queue } = this.kept;
    const stop = queue.findIndex((item) => item.to !== queue[0]!.to);
    return queue.slice(0, Math.min(stop < 0 ? MOST : stop, MOST));
  }

  private body(batch: Item[]): string {
    return JSON.stringify({ [batch[0]!.to]: batch.map((item) => item.body) });
  }

  /** Send without waiting when the page closes. Unconfirmed items are safely sent again later. */
  private beacon(): void {
    if (!this.kept.queue.length) return;
    const batch = this.batch();
    navigator.sendBeacon(`${this.url}${batch[0]!.to}?token=${this.token}`, this.body(batch));
  }

  private fetch(path: string, body?: string): Promise<Response> {
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), this.options.timeout ?? 2000);
    return fetch(this.url + path, {
      method: body ? "POST" : "GET",
      headers: { Authorization: `Bearer ${this.token}`, ...(body && { "Content-Type": "application/json" }) },
      body,
      signal: ending.signal,
    }).finally(() => clearTimeout(timer));
  }

  private add(item: Item): void {
    this.kept.queue.push(item);
    this.keep();
    void Promise.resolve().then(() => this.flush());
  }

  private keep(): void {
    try {
      this.options.storage?.setItem(this.key, JSON.stringify(this.kept));
    } catch (error) {
      this.failed(error);
    }
  }

  private failed(error: unknown): void {
    this.options.onError?.(error);
  }
}
