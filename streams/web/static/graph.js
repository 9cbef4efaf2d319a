// The evidence graph as SVG: one column a layer; a state is a colour, a shape and a word.

import { el, setAttribute, setText, svg } from "./elements.js";
import { sentence } from "./times.js";

const BOX = { width: 146, height: 34, columns: 178, rows: 44, edge: 10 };
const WORD = { supports: "supports", blocked: "blocked", neutral: "takes no part" };
const LONGEST = 21;
const READABLE = 0.62;

/** The drawing with its tools and the line that tells of the node in focus. */
export function graph({ nodes, edges }) {
  if (nodes.length === 0) return el("p", { class: "quiet" }, "The record holds no evidence graph.");
  const width = BOX.columns * Math.max(...nodes.map((n) => n.layer)) + BOX.width + 2 * BOX.edge;
  const height = BOX.rows * Math.max(...nodes.map((n) => n.row)) + BOX.height + 2 * BOX.edge;
  const lines = edges.map(([from, to]) => svg("path", { class: "edge", d: curve(nodes[from], nodes[to]), "data-state": nodes[from].state }));
  const drawn = nodes.map((node) => draw(node));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Evidence graph, ${nodes.length} nodes` }, lines, drawn);
  const detail = el("p", { class: "detail", role: "status" }, "Tab into the graph; arrows move along it.");
  const scroller = el("div", { class: "graph-scroll" }, picture);
  let scale = 1;
  const zoom = (to) => {
    scale = Math.min(2.5, Math.max(0.2, to));
    setAttribute(picture, "width", Math.round(width * scale));
    setAttribute(picture, "height", Math.round(height * scale));
  };
  const fitting = () => Math.min(1, (scroller.clientWidth - 2) / width);
  const focus = (i) => {
    drawn.forEach((g, j) => setAttribute(g, "tabindex", i === j ? "0" : "-1"));
    edges.forEach(([from, to], e) => setAttribute(lines[e], "data-near", from === i || to === i ? "" : null));
    const { label, kind, state, detail: more } = nodes[i];
    setText(detail, `${kind} ${label}: ${WORD[state]}${more ? `. ${sentence(more)}` : ""}`);
  };
  drawn.forEach((g, i) => {
    setAttribute(g, "tabindex", i === 0 ? "0" : "-1");
    g.addEventListener("focus", () => focus(i));
    g.addEventListener("keydown", (event) => {
      const to = step(nodes, edges, i, event.key);
      if (to === null) return;
      event.preventDefault();
      event.stopPropagation();
      drawn[to].focus();
    });
  });
  scroller.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(scale * (event.deltaY < 0 ? 1.15 : 1 / 1.15));
  }, { passive: false });
  zoom(1);
  requestAnimationFrame(() => zoom(Math.max(READABLE, fitting())));
  const tool = (text, name, act) => el("button", { type: "button", class: "plain", "aria-label": name, on: { click: act } }, text);
  return el("div", { class: "graph" },
    el("div", { class: "tools" },
      tool("+", "Larger", () => zoom(scale * 1.25)), tool("−", "Smaller", () => zoom(scale / 1.25)), tool("Fit", "Fit the width", () => zoom(fitting())),
      el("span", { class: "legend" }, Object.entries(WORD).map(([state, word]) =>
        el("span", {}, svg("svg", { viewBox: "0 0 26 16", width: "26", height: "16", class: "node", "data-state": state, "aria-hidden": "true" },
          svg("path", { class: "shape", d: shape(state, 1, 1, 24, 14) })), word)))),
    scroller, detail);
}

function place(node) {
  return [BOX.edge + node.layer * BOX.columns, BOX.edge + node.row * BOX.rows];
}

function draw(node) {
  const [x, y] = place(node);
  const short = node.label.length > LONGEST ? `${node.label.slice(0, LONGEST - 1)}…` : node.label;
  return svg("g", { class: "node", "data-state": node.state, "data-kind": node.kind, role: "img", "aria-label": `${node.kind} ${node.label}, ${WORD[node.state]}` },
    svg("title", {}, `${node.label}\n${sentence(node.detail ?? "")}`),
    svg("path", { class: "shape", d: shape(node.state, x, y, BOX.width, BOX.height) }),
    svg("text", { x: x + 10, y: y + 13, class: "kind" }, node.state === "blocked" ? `${node.kind} · blocked` : node.kind),
    svg("text", { x: x + 10, y: y + 27, class: "name" }, short));
}

/** supports: rounded; blocked: pointed at both sides; neutral: square (and dashed, by its style). */
function shape(state, x, y, w, h) {
  if (state === "blocked") return `M${x} ${y + h / 2}l8 ${-h / 2}h${w - 16}l8 ${h / 2}l-8 ${h / 2}h${16 - w}z`;
  if (state === "neutral") return `M${x} ${y}h${w}v${h}h${-w}z`;
  const r = Math.min(9, h / 2);
  return `M${x + r} ${y}h${w - 2 * r}a${r} ${r} 0 0 1 ${r} ${r}v${h - 2 * r}a${r} ${r} 0 0 1 ${-r} ${r}h${2 * r - w}a${r} ${r} 0 0 1 ${-r} ${-r}v${2 * r - h}a${r} ${r} 0 0 1 ${r} ${-r}z`;
}

function curve(from, to) {
  const [x1, y1] = place(from);
  const [x2, y2] = place(to);
  const [a, b, c, d] = [x1 + BOX.width, y1 + BOX.height / 2, x2, y2 + BOX.height / 2];
  const bend = Math.max(24, Math.abs(c - a) / 2);
  return `M${a} ${b}C${a + bend} ${b} ${c - bend} ${d} ${c} ${d}`;
}

/** The node that an arrow leads to: along an edge, or up and down its layer. */
function step(nodes, edges, i, key) {
  if (key === "ArrowRight") return edges.find(([from]) => from === i)?.[1] ?? null;
  if (key === "ArrowLeft") return edges.find(([, to]) => to === i)?.[0] ?? null;
  if (key !== "ArrowDown" && key !== "ArrowUp") return null;
  const layer = nodes.map((n, at) => ({ at, n })).filter(({ n }) => n.layer === nodes[i].layer).sort((a, b) => a.n.row - b.n.row);
  return layer[layer.findIndex(({ at }) => at === i) + (key === "ArrowDown" ? 1 : -1)]?.at ?? null;
}
