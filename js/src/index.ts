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

/** The values of a study's guardrails, by name. */
export type Guardrails = Record<string, number>;

export interface Options {
  /** Levels to show if the service can't be reached; default: the control, once it is known. */
  fallback?: Levels;
  /** Called with each error; default: a warning on the console for the first. Nothing is thrown. */
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
    if (level === undefined || (!Array.isArray(named) && !named[side]!.includes(level))) {
      throw new Error(`given must name a level of ${side}`);
    }
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

/** The most items of a request, the most bytes of beacons, and the longest pause between tries. */
const MOST = 1000, ROOM = 60000, LONGEST = 60000;

const text = (value: unknown): string => JSON.stringify(value);
const body = (to: string, batch: Item[]): string => text({ [to]: batch.map((item) => item.body) });

/** A study on a rank1 service, for use in web pages. */
export class Study {
  // A build shortens names that begin with an underscore.
  private _kept: Kept = { at: 0, queue: [] };
  private readonly _url: string;
  private readonly _key: string;
  private _sending: Promise<number> | null = null;
  private _pause = 1000;
  private _warned = false;

  /**
   * @param url the address of the service, such as https://rank1.shop.example
   * @param name the study's name
   * @param token a token with the role "browser", which may be public
   */
  constructor(
    url: string,
    name: string,
    private readonly _token: string,
    private readonly _options: Options = {},
  ) {
    this._url = `${url.replace(/\/$/, "")}/v1/studies/${encodeURIComponent(name)}/`;
    this._key = `rank1 ${this._url}`;
    try {
      this._options = { storage: localStorage, ..._options };
    } catch { /* this page has no storage */ }
    if (typeof addEventListener === "function") addEventListener("pagehide", () => this._beacon());
    if (this._load().queue.length) void this.flush();
  }

  /** Get the levels to show to a unit. Never throws: without shares, it returns the fallback. */
  async assign(unit: string, given: Levels = {}): Promise<Assignment> {
    try {
      const shares = await this.shares();
      return { unit, levels: assign(shares, unit, given), version: shares.version };
    } catch (error) {
      this._failed(error);
      const levels = { ...given, ...(this._options.fallback ?? this._kept.shares?.control) };
      this._add("records", { unit, levels, fallback: true });
      return { unit, levels, version: null };
    }
  }

  /** Get the current shares, from the cache if they are fresh or the service can't be reached. */
  async shares(): Promise<Shares> {
    const { shares, at } = this._load();
    if (shares && Date.now() - at < 1000 * (shares.max_age ?? 60)) return shares;
    try {
      const answer = await this._fetch("shares");
      if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
      const found = (await answer.json()) as Shares;
      this._keep({ shares: found, at: Date.now() });
      return found;
    } catch (error) {
      if (!shares) throw error;
      this._failed(error);
      return shares;
    }
  }

  /** Record that a unit has seen its assignment, with the reward if it is already known. */
  record(seen: Assignment, reward: number | null = null, guardrails?: Guardrails): void {
    if (seen.version !== null) this._add("records", { ...seen, reward, guardrails });
  }

  /** Report the reward of a recorded unit. */
  reward(unit: string, reward: number, guardrails?: Guardrails): void {
    this._add("rewards", { unit, reward, guardrails });
  }

  /**
   * Send the queue; resolves when it is sent, or when it can't be sent now, to the number of unsent
   * reports. It is tried again later, but in Node that doesn't keep a script running.
   */
  flush(): Promise<number> {
    this._sending ??= this._send().finally(() => { this._sending = null; });
    return this._sending;
  }

  private async _send(): Promise<number> {
    for (let queue; (queue = this._load().queue).length; ) {
      const to = queue[0]!.to;
      const stop = queue.findIndex((item) => item.to !== to);
      const batch = queue.slice(0, Math.min(stop < 0 ? MOST : stop, MOST));
      try {
        const answer = await this._fetch(to, body(to, batch));
        if (answer.status >= 500 || [401, 408, 429].includes(answer.status)) throw new Error(`the service answered ${answer.status}`);
        const { results } = answer.ok ? await answer.json() : { results: [await answer.json()] };
        for (const each of results) if (each.status >= 400) this._failed(each);
        const sent = new Set(batch.map(text));
        this._keep({ queue: this._load().queue.filter((item) => !sent.has(text(item))) });
        this._pause = 1000;
      } catch (error) {
        this._failed(error);
        const retry: unknown = setTimeout(() => void this.flush(), this._pause = Math.min(2 * this._pause, LONGEST));
        (retry as { unref?: () => void }).unref?.(); // a script in Node ends even so
        return queue.length;
      }
    }
    return 0;
  }

  /** Send what fits when the page closes. Unconfirmed items are safely sent again later. */
  private _beacon(): void {
    let room = ROOM; // browsers refuse more than 64 KiB
    for (const to of ["records", "rewards"] as const) {
      const batch = this._load().queue.filter((item) =>
        item.to === to && (room -= new TextEncoder().encode(text(item)).length) > 0);
      if (batch.length && !navigator.sendBeacon(`${this._url}${to}?token=${this._token}`, body(to, batch))) return;
    }
  }

  private _fetch(path: string, body?: string): Promise<Response> {
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), this._options.timeout ?? 2000);
    return fetch(this._url + path, {
      method: body ? "POST" : "GET",
      headers: { Authorization: `Bearer ${this._token}`, ...(body && { "Content-Type": "application/json" }) },
      body,
      signal: ending.signal,
    }).finally(() => clearTimeout(timer));
  }

  private _add(to: Item["to"], body: Item["body"]): void {
    this._keep({ queue: [...this._load().queue, { to, body }] });
    void Promise.resolve().then(() => this.flush());
  }

  /** Read what is kept anew: another tab of the same study may have added to it. */
  private _load(): Kept {
    try {
      this._kept = { ...this._kept, ...JSON.parse(this._options.storage?.getItem(this._key) ?? "{}") };
    } catch { /* damaged: go on with what this page knows */ }
    return this._kept;
  }

  private _keep(change: Partial<Kept>): void {
    this._kept = { ...this._load(), ...change };
    try {
      this._options.storage?.setItem(this._key, text(this._kept));
    } catch (error) {
      this._options.storage = undefined; // full: go on in memory
      this._failed(error);
    }
  }

  private _failed(error: unknown): void {
    if (this._options.onError) this._options.onError(error);
    else if (!this._warned) console.warn("rank1", error);
    this._warned = true;
  }
}
