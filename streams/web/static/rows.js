// A table of any length of which only the visible rows are in the document.

import { el, setAttribute, setText } from "./elements.js";

const SPARE = 4;
let tables = 0;

/**
 * Columns: {name, title, text(item, now), hint(item, now), state(item, now), draw(canvas, item, now)}; of those, `text` or
 * `draw` is required. `key(item)` tells items apart; `open(item)` is called by Enter or a click.
 */
export class Rows {
  #columns;
  #key;
  #open;
  #count = 0;
  #at = () => null;
  #now = 0;
  #pool = [];
  #height = 28;
  #id = `rows${(tables += 1)}`;
  selected = null;

  constructor({ label, name, columns, key, open, state }) {
    this.#columns = columns;
    this.#key = key;
    this.#open = open;
    this.state = state ?? (() => null);
    const head = el("div", { role: "row", class: "row", "aria-rowindex": "1" },
      columns.map((column) => el("span", { role: "columnheader", class: `c-${column.name}` }, column.title)));
    this.head = el("div", { role: "rowgroup", class: "rows-head" }, head);
    this.sizer = el("div", { class: "rows-sizer", role: "rowgroup" });
    this.view = el("div", { class: "rows-view", role: "presentation" }, this.head, this.sizer);
    this.element = el("div", {
      class: `rows rows-${name}`, role: "grid", tabindex: "0", "aria-label": label, "aria-readonly": "true",
      on: { keydown: (event) => this.key(event) },
    }, this.view);
    this.view.addEventListener("scroll", () => this.#place());
    new ResizeObserver(() => this.#measure()).observe(this.view);
  }

  /** Shows `count` items, `at(i)` being the i-th from the top; `came` of them are new at the top. */
  show(count, at, now, came = 0) {
    this.#count = count;
    this.#at = at;
    this.#now = now;
    setAttribute(this.element, "aria-rowcount", count + 1);
    const height = `${count * this.#height}px`;
    if (this.sizer.style.height !== height) this.sizer.style.height = height;
    if (came > 0 && this.anchored) this.view.scrollTop += came * this.#height;
    this.#place();
  }

  /** Whether what one looks at must stay where it is while new rows come in at the top. */
  get anchored() { return this.view.scrollTop > 0 || this.selected !== null; }

  /** How many rows are above the visible ones. */
  get above() { return Math.floor(this.view.scrollTop / this.#height); }

  /** The height in which rows are seen: below the head, which stays where it is. */
  get #seen() { return this.view.clientHeight - this.head.offsetHeight; }

  toTop() {
    this.selected = null;
    this.view.scrollTop = 0;
    this.#place();
  }

  /** Moves the selection by some rows. */
  move(by) {
    if (this.#count === 0) return;
    const at = this.#find();
    const from = at < 0 ? this.above - Math.sign(by) : at;  // the first move selects what is at the top
    this.#select(Math.min(this.#count - 1, Math.max(0, from + by)));
  }

  openSelected() {
    const at = this.#find();
    if (at >= 0) this.#open?.(this.#at(at));
  }

  /** Handles a key; true where it was one of this table's. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const page = Math.max(1, Math.floor(this.#seen / this.#height) - 1);
    const moves = {
      j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.#count, End: this.#count,
    };
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "Enter" && this.selected !== null) this.openSelected();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  #find() {
    if (this.selected === null) return -1;
    for (let i = 0; i < this.#count; i += 1) if (this.#key(this.#at(i)) === this.selected) return i;
    return -1;
  }

  #select(i) {
    this.selected = this.#key(this.#at(i));
    const top = i * this.#height;
    const bottom = top + this.#height - this.#seen;
    if (this.view.scrollTop > top) this.view.scrollTop = top;
    else if (this.view.scrollTop < bottom) this.view.scrollTop = bottom;
    this.#place();
  }

  #measure() {
    this.#height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 28;
    const wanted = Math.ceil(this.#seen / this.#height) + SPARE;
    while (this.#pool.length < wanted) this.#pool.push(this.#make(this.#pool.length));
    while (this.#pool.length > wanted) this.#pool.pop().element.remove();
    this.sizer.style.height = `${this.#count * this.#height}px`;
    this.#place();
  }

  #make(slot) {
    const cells = this.#columns.map((column) => el("span", { role: "gridcell", class: `c-${column.name}` },
      column.draw ? el("canvas", { "aria-hidden": "true" }) : null));
    const row = { element: el("div", { role: "row", class: "row", id: `${this.#id}-${slot}`, hidden: true }, cells), cells, i: -1 };
    let pressed = null;  // what one saw when one pressed: the list may move before the button is let go
    row.element.addEventListener("pointerdown", () => { pressed = row.i < this.#count ? this.#at(row.i) : null; });
    row.element.addEventListener("click", () => {
      if (row.i < 0 || row.i >= this.#count) return;
      const item = pressed ?? this.#at(row.i);
      pressed = null;
      this.selected = this.#key(item);
      this.#place();
      this.#open?.(item);
    });
    this.sizer.append(row.element);
    return row;
  }

  #place() {
    const size = this.#pool.length;
    if (size === 0) return;
    const first = Math.max(0, Math.min(this.above - SPARE / 2, this.#count - size));
    let active = null;
    for (let i = first; i < first + size; i += 1) {
      const row = this.#pool[i - first];  // in the order of the document: a screen reader reads them as they stand
      row.i = i;
      row.element.hidden = i >= this.#count;
      if (i < this.#count && this.#fill(row, i)) active = row.element.id;
    }
    setAttribute(this.element, "aria-activedescendant", active);
  }

  #fill(row, i) {
    const item = this.#at(i);
    const selected = this.selected !== null && this.#key(item) === this.selected;
    const place = `translateY(${i * this.#height}px)`;
    if (row.element.style.transform !== place) row.element.style.transform = place;
    setAttribute(row.element, "aria-rowindex", i + 2);
    setAttribute(row.element, "aria-selected", selected);
    setAttribute(row.element, "data-state", this.state(item, this.#now));
    this.#columns.forEach((column, c) => {
      const cell = row.cells[c];
      if (column.draw) column.draw(cell.firstChild, item, this.#now);
      else setText(cell, column.text(item, this.#now));
      if (column.hint) setAttribute(cell, "title", column.hint(item, this.#now));
      if (column.state) setAttribute(cell, "data-state", column.state(item, this.#now));
    });
    return selected;
  }
}
