// The contracts that the guards decide by: their list, and one opened as a document.

import { el, empty, table, terms } from "./elements.js";
import { length, value } from "./times.js";

export class ContractsView {
  #board;
  #shown = null;

  constructor(board) {
    this.#board = board;
    this.list = el("ul", { class: "contracts" });
    this.nothing = el("div", { class: "nothing", hidden: true }, empty("This guard has no contract.", "Give it a folder of them: wirelessops run --contracts DIR."));
    this.element = el("section", { class: "view", "aria-label": "Contracts" },
      el("p", { class: "lead" }, "What an action rests on: fields, units, sources, limits, constraints."), this.list, this.nothing);
  }

  render() {
    const ids = this.#board.contracts;
    const state = JSON.stringify(ids);
    if (state === this.#shown) return;
    this.#shown = state;
    this.nothing.hidden = ids.length > 0 || !this.#board.loaded;
    this.list.replaceChildren(...ids.map((id) => el("li", {}, el("a", { href: `#/contract/${encodeURIComponent(id)}` }, id))));
  }
}

/** One contract as a document. */
export function contractDocument(contract) {
  const fields = Object.entries(contract.fields ?? {});
  const range = (f) => (f.min === undefined && f.max === undefined ? "—" : `${value(f.min ?? null)} … ${value(f.max ?? null)}`);
  return el("article", { class: "decision" },
    el("h2", {}, contract.contract_id),
    el("h3", {}, "Fields"),
    table("Fields", ["Field", "Kind", "Unit", "Range", "Limit of age", "Sources, in order", "From"], fields.map(([name, f]) => [
      name, f.kind + (f.critical === false ? ", not critical" : ""), f.unit ?? "1", range(f), f.freshness_ms ? length(f.freshness_ms) : "—", (f.sources ?? []).join(", ") || "—",
      f.expr ? el("code", {}, f.expr) : f.subject ?? "—"])),
    el("h3", {}, "Constraints"),
    table("Constraints", ["Id", "Expression", "Window"], (contract.constraints ?? []).map((c) => [c.id, el("code", {}, c.expr), c.window_ms ? length(c.window_ms) : "—"])),
    contract.control ? [el("h3", {}, "Control"), terms(Object.entries(contract.control).map(([k, v]) => [k, value(v)]))] : null,
    el("details", {}, el("summary", {}, "The whole document"), el("pre", { tabindex: "0" }, JSON.stringify(contract, null, 2))));
}
