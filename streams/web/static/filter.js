// What a filter lets through. A filter: {actions: [], xapp, cell, text}; empty members let all through.

export const ACTIONS = ["APPLY", "HOLD", "RETRY", "ESCALATE", "ABSTAIN"];
export const NONE = { actions: [], xapp: "", cell: "", text: "" };

/** The test of one summary. Text: every word must stand somewhere in it, case ignored. */
export function passes({ actions, xapp, cell, text }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (d) =>
    (actions.length === 0 || actions.includes(d.action)) &&
    (xapp === "" || d.proposer === xapp) &&
    (cell === "" || d.cells.includes(cell)) &&
    (words.length === 0 || contains(d, words));
}

function contains(d, words) {
  const text = [
    d.id, d.decision_id, d.action, d.proposal_id, d.proposer, d.contract, d.control_key, d.region, d.guard, d.explanation,
    d.switched, ...d.cells, ...d.reasons, ...d.repairs,
  ].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The filter that the query of a route names. */
export function fromQuery(query) {
  const said = new URLSearchParams(query);
  return {
    actions: said.getAll("action").filter((action) => ACTIONS.includes(action)),
    xapp: said.get("xapp") ?? "",
    cell: said.get("cell") ?? "",
    text: said.get("q") ?? "",
  };
}

/** The query of a filter; empty where it lets all through. */
export function toQuery({ actions, xapp, cell, text }) {
  const query = new URLSearchParams(actions.map((action) => ["action", action]));
  if (xapp) query.set("xapp", xapp);
  if (cell) query.set("cell", cell);
  if (text) query.set("q", text);
  return query.toString();
}
