// The state of the page: what was heard of the guards, when, and whether it is still heard.

import { Ring } from "./ring.js";

const OFFSETS = 20;
const HEAT = 120;

/** An owner that was not heard of for so long decides nothing, as far as one can tell. */
export const QUIET_MS = 5_000;

/** Whether the owner of a partition was not heard of for `QUIET_MS`. */
export const silent = (partition, now) => now - partition.at_ms > QUIET_MS;

/** All that views read. Listeners are told "decisions" (with the new entries), "loaded", "board" and "connection". */
export class Board {
  ring = new Ring();
  guard = "";
  open = new Map();
  leases = [];
  sources = [];
  partitions = [];
  switches = [];
  contracts = [];
  acting = false;
  loaded = false;
  /** state: "connecting", "connected" or "lost"; since and retryAt by this computer's clock. */
  connection = { state: "connecting", reason: "", since: Date.now(), retryAt: null };
  heat = new Map();
  #offsets = [];
  #heardAt = null;
  #listeners = [];
  #newest = new Map();
  #saidAt = new Map();

  listen(listener) { this.#listeners.push(listener); }

  #tell(what, entries = []) {
    for (const listener of this.#listeners) listener(what, entries);
  }

  /** The guard's time. Once the connection is lost it stands still where it was last heard. */
  now() {
    const local = this.connection.state === "lost" && this.#heardAt !== null ? this.#heardAt : Date.now();
    return local + this.offset;
  }

  /** How far the guard's clock is ahead of ours, ms: what was least delayed of the newest says it best. */
  get offset() { return this.#offsets.length ? Math.max(...this.#offsets) : 0; }

  heard() { this.#heardAt = Date.now(); }
  get heardAt() { return this.#heardAt; }

  /** Begins anew from GET /v1/board. */
  load(document) {
    this.ring.clear();
    this.#newest.clear();
    this.#offsets = [];
    this.loaded = true;
    this.#members(document);
    this.#remember(this.ring.add(document.decisions));
    this.#tell("loaded");
  }

  /** Members of the board, about once a second. */
  update(document) {
    this.#members(document);
    this.#tell("board");
  }

  decisions(summaries) {
    const entries = this.ring.add(summaries);
    for (const { d } of entries) {
      if (d.believed === false) continue;
      if (d.final) this.open.delete(identity(d));
      else this.open.set(identity(d), d);
    }
    this.#remember(entries);
    this.#tell("decisions", entries);
  }

  connected(state, reason = "", retryAt = null) {
    const since = state === this.connection.state ? this.connection.since : Date.now();
    this.connection = { state, reason, since, retryAt };
    this.#tell("connection");
  }

  /** The newest summary of the same proposal, where it is still held. */
  newest(summary) { return this.open.get(identity(summary)) ?? this.#newest.get(identity(summary))?.d ?? null; }

  /** The newest summary of the same proposal where it is another: this one is over then. */
  followed(summary) {
    const newest = summary.final || summary.believed === false ? null : this.newest(summary);
    return newest === null || newest.id === summary.id ? null : newest;
  }

  /** Whether this very decision still waits for the one that follows it. */
  waits(summary) { return this.open.get(identity(summary))?.id === summary.id; }

  #remember(entries) {
    for (const entry of entries) if (entry.d.believed !== false) this.#newest.set(identity(entry.d), entry);
    if (this.#newest.size > 2 * this.ring.length + 1_000) {
      for (const [key, { n }] of this.#newest) if (n < this.ring.oldest) this.#newest.delete(key);
    }
  }

  #members(document) {
    for (const name of ["guard", "leases", "sources", "partitions", "switches", "contracts", "acting"]) {
      if (name in document) this[name] = document[name];
    }
    if ("partitions" in document) this.#saidAt = new Map(document.partitions.map((p) => [p.partition, p.at_ms]));
    if ("open" in document) this.open = new Map(document.open.map((d) => [identity(d), d]));
    if (Number.isFinite(document.now_ms)) {
      this.#offsets = [...this.#offsets, document.now_ms - Date.now()].slice(-OFFSETS);
    }
    if ("sources" in document) this.#warm();
  }

  /**
   * The time at which the owner of a source's partition spoke of it last: its age is told of then, since what came in
   * between is not known here. Null where the owner has not been heard of for `QUIET_MS`.
   */
  saidAt(source, now) {
    const at = this.#saidAt.get(source.partition) ?? null;
    return at === null || now - at > QUIET_MS ? null : at;
  }

  /** One sample of age against limit of each source. */
  #warm() {
    const now = this.now();
    const seen = new Set();
    for (const source of this.sources) {
      const key = sourceKey(source);
      seen.add(key);
      const samples = this.heat.get(key) ?? [];
      samples.push(staleness(source, this.saidAt(source, now)));
      if (samples.length > HEAT) samples.shift();
      this.heat.set(key, samples);
    }
    for (const key of this.heat.keys()) if (!seen.has(key)) this.heat.delete(key);
  }
}

const identity = (d) => `${d.region}\n${d.proposal_id}`;

export const sourceKey = (source) => `${source.region}\n${source.source}`;

/**
 * Age of a source's newest report over its limit, at a time: 1 is the limit. Infinity in an outage, where it never
 * reported, and where nothing is known of it (`at` of null).
 */
export function staleness(source, at) {
  if (at === null || source.state === "outage" || source.event_time_ms === null) return Infinity;
  if (!source.limit_ms) return 0;
  return Math.max(0, at - source.event_time_ms) / source.limit_ms;
}

/** Whether a lease holds its control at a time, the end included; one that the network refused holds nothing. */
export function holds(lease, at) {
  return lease.lease_until_ms !== null && at <= lease.lease_until_ms && lease.state !== "refused";
}

/** The switches that bite, the strictest first. */
export function inForce(switches) {
  const rank = { hold: 0, shadow: 1 };
  return switches.filter((s) => s.mode in rank).sort((a, b) => rank[a.mode] - rank[b.mode]);
}
