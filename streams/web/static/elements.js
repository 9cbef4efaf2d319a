// Makes elements. Whatever a message says is set as text or as an attribute's value, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `attributes`: null, undefined and false leave one out; `on` maps events to listeners. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, made the same way. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Sets text only where it differs, so that what stands still costs nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute only where it differs; null takes it away. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

/** A table with a caption, from column names and rows of cells (text or elements). */
export function table(caption, columns, rows) {
  return el("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {},
      el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) =>
        cell instanceof HTMLTableCellElement ? cell : el("td", {}, cell)))))));
}

/** Terms and what they are; pairs whose second is null are left out. */
export function terms(pairs) {
  return el("dl", { class: "terms" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** The badge of an action: its word, and a colour beside it. */
export function badge(action) {
  return el("span", { class: "badge", "data-action": action }, action);
}

/** What an empty view says: what is so, and what to do next. */
export function empty(what, next) {
  return el("div", { class: "empty" }, el("p", {}, what), el("p", { class: "quiet" }, next));
}
