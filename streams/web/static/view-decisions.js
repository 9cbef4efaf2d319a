// Live decisions: filter, pause, the list.

import * as columns from "./columns.js";
import { el, empty, setAttribute, setText } from "./elements.js";
import { ACTIONS, NONE, passes, toQuery } from "./filter.js";
import { CAPACITY, Matches } from "./ring.js";
import { Rows } from "./rows.js";

const OFFERED = 200;

export class DecisionsView {
  #board;
  #go;
  #filter = NONE;
  #matches;
  #paused = null;
  #came = 0;

  /** `go(route)` leads to another route; `open(summary)` opens one decision. */
  constructor(board, go, open) {
    this.#board = board;
    this.#go = go;
    this.#matches = new Matches(passes(NONE), board.ring);
    this.rows = new Rows({
      label: "Decisions, newest first", name: "decisions", key: ({ d }) => d.id, open: ({ d }) => open(d),
      state: ({ d }) => (board.followed(d) ? "over" : null),
      columns: [columns.at, columns.action(board), columns.xapp, columns.cells, columns.proposal, columns.why, columns.due(board, "Left, or then")],
    });
    this.#build();
    board.listen((what, entries) => {
      if (what === "loaded") this.#refill();
      if (what === "decisions") this.#came += this.#matches.add(entries, board.ring.oldest);
    });
  }

  #build() {
    this.chips = ACTIONS.map((action) => el("button", {
      type: "button", class: "chip", "data-action": action, "aria-pressed": "false",
      title: `Show ${action} only. The number is of all decisions listed here, those decided again since included; what is still open is counted at the tabs`,
      on: { click: () => this.#toggle(action) },
    }, el("span", {}, action), el("span", { class: "count" }, "0")));
    const typed = (name) => (event) => this.#change({ [name]: event.target.value.trim() });
    this.text = el("input", {
      type: "search", placeholder: "Any text  ( / )", "aria-label": "Filter by text", "aria-keyshortcuts": "/", on: { input: typed("text") },
    });
    this.xapp = el("input", { list: "xapps", placeholder: "xApp", "aria-label": "Filter by xApp", on: { input: typed("xapp") } });
    this.cell = el("input", { list: "cells", placeholder: "Cell", "aria-label": "Filter by cell", on: { input: typed("cell") } });
    this.pause = el("button", {
      type: "button", class: "pause", "aria-pressed": "false", "aria-keyshortcuts": "p", on: { click: () => this.togglePause() },
    }, "Pause");
    this.clear = el("button", { type: "button", class: "plain", hidden: true, on: { click: () => this.#apply(NONE) } }, "Clear filter");
    this.newer = el("button", { type: "button", class: "newer", hidden: true, on: { click: () => this.live() } });
    this.shown = el("span", { class: "quiet shown" });
    this.xapps = el("datalist", { id: "xapps" });
    this.cells = el("datalist", { id: "cells" });
    for (const [input, list] of [[this.xapp, "xapps"], [this.cell, "cells"]]) input.addEventListener("focus", () => this.#offer(list));
    this.nothing = el("div", { class: "nothing", hidden: true });
    this.element = el("section", { class: "view", "aria-label": "Decisions" },
      el("div", { class: "filters", role: "search", "aria-label": "Filter decisions" },
        el("div", { class: "chips", role: "group", "aria-label": "Actions" }, this.chips),
        this.xapp, this.cell, this.text, this.clear, this.pause, this.shown, this.xapps, this.cells),
      this.newer, this.rows.element, this.nothing);
  }

  /** Takes up the filter of a route. */
  route(filter) {
    if (toQuery(filter) === toQuery(this.#filter)) return;
    this.#filter = filter;
    this.xapp.value = filter.xapp;
    this.cell.value = filter.cell;
    this.text.value = filter.text;
    this.#refill();
  }

  /** The filter as the query of a route. */
  get query() { return toQuery(this.#filter); }

  #toggle(action) {
    const on = this.#filter.actions;
    this.#change({ actions: on.includes(action) ? on.filter((a) => a !== action) : ACTIONS.filter((a) => a === action || on.includes(a)) });
  }

  #change(part) { this.#apply({ ...this.#filter, ...part }); }

  #apply(filter) {
    const query = toQuery(filter);
    if (filter === NONE) this.xapp.value = this.cell.value = this.text.value = "";
    this.#filter = filter;
    this.#refill();
    this.#go(query);
  }

  #refill() {
    const test = passes(this.#filter);
    this.#matches = new Matches(test, this.#board.ring);
    if (this.#paused) this.#paused = { all: this.#paused.all, rows: this.#paused.all.filter(({ d }) => test(d)) };
    this.#came = 0;
    this.rows.toTop();
    this.render();
  }

  togglePause() {
    if (this.#paused) return this.live();
    this.#paused = { all: [...this.#board.ring].reverse(), rows: [] };
    this.#paused.rows = Array.from({ length: this.#matches.length }, (_, i) => this.#matches.at(i));
    this.#came = 0;
    this.render();
  }

  /** Ends a pause and goes back to the newest. */
  live() {
    this.#paused = null;
    this.#came = 0;
    this.rows.toTop();
    this.render();
  }

  focusFilter() { this.text.focus(); }

  render() {
    const paused = this.#paused !== null;
    const matches = this.#matches;
    if (paused) {
      const { rows } = this.#paused;
      this.rows.show(rows.length, (i) => rows[i], this.#board.now());
    } else {
      this.rows.show(matches.length, (i) => matches.at(i), this.#board.now(), this.#came);
      this.#came = 0;
    }
    this.chips.forEach((chip) => {
      setAttribute(chip, "aria-pressed", this.#filter.actions.includes(chip.dataset.action));
      setText(chip.lastChild, String(this.#board.ring.counts[chip.dataset.action] ?? 0));
    });
    setText(this.pause, paused ? "Resume" : "Pause");
    setAttribute(this.pause, "aria-pressed", paused);
    const newer = paused ? this.#came : this.rows.anchored ? this.rows.above : 0;
    this.newer.hidden = !paused && newer === 0;
    setText(this.newer, paused ? `Paused. ${newer} newer: show them` : `${newer} newer above: go to the newest`);
    const held = this.#board.ring.length;
    const filtered = toQuery(this.#filter) !== "";
    this.clear.hidden = !filtered;
    setText(this.shown, `${filtered ? `${matches.length} of ` : ""}${held === CAPACITY ? "the newest " : ""}${held} decisions`);
    this.#renderNothing((paused ? this.#paused.rows : matches).length === 0 && this.#board.loaded, held, filtered);
  }

  #renderNothing(none, held, filtered) {
    this.nothing.hidden = !none;
    const kind = held === 0 ? "none" : filtered ? "filtered" : "";
    if (!none || this.nothing.dataset.kind === kind) return;
    this.nothing.dataset.kind = kind;
    this.nothing.replaceChildren(held === 0
      ? empty("No decision yet.", "Send a proposal to the topic “proposals”, or run “wirelessops simulate”: each decision appears here as it is published.")
      : empty("No decision passes this filter.", "Clear it, or wait: new decisions that pass appear here."));
  }

  #offer(list) {
    const found = new Set();
    for (const { d } of this.#board.ring) {
      if (list === "xapps") { if (d.proposer) found.add(d.proposer); } else d.cells.forEach((cell) => found.add(cell));
      if (found.size >= OFFERED) break;
    }
    this[list].replaceChildren(...[...found].sort().map((value) => el("option", { value })));
  }
}
