// Columns that several tables of decisions share.

import { brief, clock, left, quantityOf, relative, sentence, utc } from "./times.js";

export const at = {
  name: "at", title: "Decided (UTC)",
  text: ({ d }) => clock(d.decided_at_ms),
  hint: ({ d }, now) => `${utc(d.decided_at_ms)}, ${relative(d.decided_at_ms, now)}`,
};
export const action = (board) => ({
  name: "action", title: "Action",
  text: ({ d }) => d.action + (d.final || board.followed(d) ? "" : " …"),
  state: ({ d }) => d.action,
  hint: ({ d }) => (d.final ? "final" : board.followed(d) ? "interim, and decided again since" : "interim: it will be decided again"),
});
const LONGEST = 30;
const short = (id) => (id.length > LONGEST ? `${id.slice(0, 10)}…${id.slice(-18)}` : id);
export const proposal = { name: "proposal", title: "Proposal", text: ({ d }) => short(d.proposal_id), hint: ({ d }) => d.proposal_id };
export const xapp = { name: "xapp", title: "xApp", text: ({ d }) => d.proposer ?? "—", hint: ({ d }) => d.contract };
export const cells = {
  name: "cells", title: "Cell",
  text: ({ d }) => d.cells.join(" ") || "—",
  hint: ({ d }) => `region ${d.region}, partition ${d.partition}`,
};
const released = (d) => Object.entries(d.released ?? {}).map(([field, q]) => `${field} = ${quantityOf(q)}`).join(", ");
export const why = {
  name: "why", title: "Released, or why not",
  text: ({ d }) => released(d) || [d.believed === false && "not signed by a known guard", ...d.reasons].filter(Boolean).join(", ") || brief(d.explanation),
  hint: ({ d }) => sentence(d.explanation),
};
/** How long a decision waits for the final one; once it waits no more, what followed. */
export const due = (board, title = "Left") => ({
  name: "due", title,
  text: ({ d }, now) => (!board.waits(d) ? then(board.followed(d)) : d.until_ms === null ? "no limit" : left(d.until_ms, now)),
  hint: ({ d }) => (board.followed(d) ? after(board.followed(d)) : d.final || d.until_ms === null ? null : `final by ${utc(d.until_ms)}`),
  state: ({ d }, now) => (board.waits(d) && d.until_ms !== null && d.until_ms - now < 1_000 ? "due" : null),
});
const then = (d) => (d === null ? "" : `→ ${d.action}${d.final ? "" : " …"}`);
const after = (d) => `${d.final ? "its final decision" : "decided again"}: ${d.action}, ${utc(d.decided_at_ms)}`;
export const waited = {
  name: "waited", title: "Waits since",
  text: ({ d }, now) => relative(d.decided_at_ms, now),
  hint: ({ d }) => utc(d.decided_at_ms),
};

/** Whether there is time left for somebody to answer. */
export const answerable = (d, now) => d.until_ms === null || d.until_ms > now;

/** Open proposals with the given actions as entries, the nearest deadline first; those whose time is up come last. */
export function waiting(open, actions, now) {
  const end = ({ d }) => d.until_ms ?? Infinity;
  const over = ({ d }) => (answerable(d, now) ? 0 : 1);
  return [...open.values()].filter((d) => actions.includes(d.action)).map((d) => ({ n: d.id, d }))
    .sort((a, b) => over(a) - over(b) || end(a) - end(b) || (a.d.id < b.d.id ? -1 : 1));
}
