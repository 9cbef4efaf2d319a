// Views that are one table of what the board holds: what waits, escalations, leases, partitions.

import { holds, silent } from "./board.js";
import * as columns from "./columns.js";
import { el, empty } from "./elements.js";
import { Rows } from "./rows.js";
import { brief, left, quantityOf, relative, sentence, utc } from "./times.js";

/** A view of one table; `items(board, now)` gives its items, `nothing` what stands there without any. */
class ListView {
  #board;
  #items;

  constructor(board, { title, lead, items, nothing, ...table }) {
    this.#board = board;
    this.#items = items;
    this.rows = new Rows({ label: title, ...table });
    this.nothing = el("div", { class: "nothing", hidden: true }, empty(...nothing));
    this.element = el("section", { class: "view", "aria-label": title }, el("p", { class: "lead" }, lead), this.rows.element, this.nothing);
  }

  render() {
    const items = this.#items(this.#board, this.#board.now());
    this.nothing.hidden = items.length > 0 || !this.#board.loaded;
    this.rows.show(items.length, (i) => items[i], this.#board.now());
  }
}

export function waitingView(board, open) {
  return new ListView(board, {
    title: "Waiting", name: "waiting", lead: "Proposals on HOLD or RETRY, the nearest deadline first. Nothing is asked of you: each is decided again when its evidence comes.",
    items: ({ open: all }, now) => columns.waiting(all, ["HOLD", "RETRY"], now), key: ({ d }) => d.proposal_id, open: ({ d }) => open(d),
    columns: [columns.due(board), columns.action(board), columns.xapp, columns.cells, columns.proposal, columns.why, columns.waited],
    nothing: ["Nothing waits.", "Proposals whose evidence is stale or whose source is out appear here until they are decided."],
  });
}

export function escalationsView(board, open) {
  return new ListView(board, {
    title: "Escalations", name: "escalations", lead: "These wait for you, the nearest deadline first. Open one to see what is disputed, and approve or deny it.",
    items: ({ open: all }, now) => columns.waiting(all, ["ESCALATE"], now).filter(({ d }) => columns.answerable(d, now)), key: ({ d }) => d.proposal_id, open: ({ d }) => open(d),
    columns: [columns.due(board), columns.xapp, columns.cells, columns.proposal,
      { name: "why", title: "What is disputed", text: ({ d }) => brief(d.explanation).replace(/^conflict of /, ""), hint: ({ d }) => `${d.reasons.join(", ")}: ${sentence(d.explanation)}` }, columns.waited],
    nothing: ["No escalation waits for an answer.", "A conflict or an ambiguity that only a person can settle appears here, and in the tab’s count."],
  });
}

const OVER = { refused: "refused", unacknowledged: "not acknowledged", effect: "took effect", no_effect: "without effect" };

export function leasesView(board) {
  return new ListView(board, {
    title: "Leases", name: "leases", lead: "What became of controls. Those that are held come first, and are counted; greyed below: granted in the last seconds and released since, or without a lease.",
    items: ({ leases }, now) => [...leases.filter((l) => holds(l, now)), ...leases.filter((l) => !holds(l, now))],
    state: (l, now) => (holds(l, now) ? null : "over"), key: (l) => `${l.region}\n${l.control_key}`,
    columns: [
      { name: "control", title: "Control", text: (l) => l.control_key, hint: (l) => `region ${l.region}` },
      { name: "xapp", title: "xApp", text: (l) => l.proposer || "—" },
      { name: "proposal", title: "Proposal", text: (l) => l.proposal_id ?? "—", hint: (l) => l.proposal_id },
      { name: "values", title: "Values", text: (l) => Object.entries(l.values).map(([k, q]) => `${k} = ${quantityOf(q)}`).join(", ") },
      { name: "outcome", title: "Outcome", text: (l) => OVER[l.state] ?? l.state, state: (l) => l.state },
      { name: "granted", title: "Granted", text: (l, now) => relative(l.granted_at_ms, now), hint: (l) => utc(l.granted_at_ms) },
      { name: "due", title: "Held for", text: (l, now) => (holds(l, now) ? left(l.lease_until_ms, now) : l.lease_until_ms === null ? "no lease" : "released"),
        hint: (l) => (l.lease_until_ms === null ? null : `until ${utc(l.lease_until_ms)}`) },
    ],
    nothing: ["No control is held.", "An APPLY under a contract with “control” grants a lease, which appears here."],
  });
}

const total = (counts) => String(Object.values(counts).reduce((sum, n) => sum + n, 0));
const listed = (counts) => Object.entries(counts).map(([name, n]) => `${name} ${n}`).join(", ");

export function partitionsView(board) {
  return new ListView(board, {
    title: "Guards", name: "partitions", lead: "Each partition and the guard that owns it. One that has not been heard of for 5 s decides nothing.",
    items: ({ partitions }) => partitions, key: (p) => p.partition, state: (p, now) => (silent(p, now) ? "silent" : null),
    columns: [
      { name: "partition", title: "Partition", text: (p) => String(p.partition) },
      { name: "guard", title: "Guard", text: (p) => p.guard },
      { name: "outcome", title: "State", text: (p, now) => (silent(p, now) ? "not heard of" : p.why_not_ready ? "not ready" : p.warm ? "decides" : "reads back"),
        hint: (p) => p.why_not_ready, state: (p, now) => (silent(p, now) || p.why_not_ready ? "bad" : p.warm ? "good" : "warming") },
      { name: "open", title: "Open", text: (p) => total(p.open), hint: (p) => `proposals that wait for their final decision: ${listed(p.open)}` },
      { name: "behind", title: "Behind", text: (p) => total(p.behind), hint: (p) => `messages in the log that were not read yet: ${listed(p.behind)}` },
      { name: "at", title: "Last heard", text: (p, now) => relative(p.at_ms, now), hint: (p) => utc(p.at_ms) },
    ],
    nothing: ["No guard has said what it owns.", "Start one with “wirelessops run”; it tells of its partitions once a second."],
  });
}
