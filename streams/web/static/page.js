// The page put together: state, feed, routes, keys.

import { ask } from "./api.js";
import { Board, holds, inForce, silent, staleness } from "./board.js";
import { answerable } from "./columns.js";
import { dialog } from "./dialogs.js";
import { el, setAttribute, setText } from "./elements.js";
import { Feed } from "./feed.js";
import { fromQuery } from "./filter.js";
import { Operator } from "./operator.js";
import { Switch } from "./switch.js";
import { clock, length, utc } from "./times.js";
import { ContractsView, contractDocument } from "./view-contracts.js";
import { DecisionView } from "./view-decision.js";
import { DecisionsView } from "./view-decisions.js";
import { escalationsView, leasesView, partitionsView, waitingView } from "./view-lists.js";
import { SourcesView } from "./view-sources.js";

const TICK_MS = 250;
const SAID_MS = 8_000;
const byId = (id) => document.getElementById(id);
const [main, panel] = [byId("main"), byId("panel")];

const board = new Board();
const operator = new Operator(board, byId("operator"));
const thrown = new Switch(board, operator, say, byId("kill"), byId("banners"));
const feed = new Feed(board);

const open = (summary) => go(`#/decision/${summary.id}`);
const decisions = new DecisionsView(board, (query) => history.replaceState(null, "", tabRoute("decisions", query)), open);
const waits = (...actions) => [...board.open.values()].filter((d) => actions.includes(d.action) && answerable(d, board.now())).length;
const quiet = () => board.partitions.filter((p) => silent(p, board.now()));
const stale = () => board.sources.filter((s) => staleness(s, board.saidAt(s, board.now())) > 1).length;
const owners = () => new Set(board.partitions.map((p) => p.guard)).size;

/** Tabs: route, key after g, title, view, what is counted beside the title, and whether that is for a person to see to. */
const TABS = [
  { name: "decisions", key: "d", title: "Decisions", view: decisions },
  { name: "escalations", key: "e", title: "Escalations", view: escalationsView(board, open), count: () => String(waits("ESCALATE")), urgent: () => waits("ESCALATE") > 0 },
  { name: "waiting", key: "w", title: "Waiting", view: waitingView(board, open), count: () => String(waits("HOLD", "RETRY")) },
  { name: "sources", key: "s", title: "Sources", view: new SourcesView(board), count: () => (stale() ? `${stale()} stale of ${board.sources.length}` : String(board.sources.length)) },
  { name: "leases", key: "l", title: "Leases", view: leasesView(board), count: () => String(board.leases.filter((l) => holds(l, board.now())).length) },
  { name: "contracts", key: "c", title: "Contracts", view: new ContractsView(board), count: () => String(board.contracts.length) },
  { name: "guards", key: "p", title: "Guards", view: partitionsView(board), count: () => String(owners()), urgent: () => quiet().length > 0 },
];
let tab = TABS[0];
let opened = null;

function tabRoute(name, query = name === "decisions" ? decisions.query : "") {
  return `#/${name}${query ? `?${query}` : ""}`;
}

// Routes: #/TAB, #/decisions?FILTER, #/decision/ID, #/contract/ID; the last two open the panel beside the tab.

/** Goes to a route at once: the next key is for what it shows. */
function go(to) {
  if (to !== location.hash) history.pushState(null, "", to);
  route();
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [name, ...rest] = path.split("/");
  const id = decoded(rest.join("/"));
  if (name === "decision" || name === "contract") {
    if (!tab.view.element.isConnected) show(name === "contract" ? TABS.find((t) => t.name === "contracts") : tab);
    openPanel(name, id);
    return;
  }
  closePanel();
  const found = TABS.find((t) => t.name === name) ?? TABS[0];
  if (found.name === "decisions" && query !== undefined) decisions.route(fromQuery(query));
  show(found);
}

/** The text of an escaped one; as it is where it was cut within an escape. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show(next) {
  tab = next;
  main.replaceChildren(tab.view.element);
  for (const t of TABS) setAttribute(t.link, "aria-current", t === tab ? "page" : null);
  tab.link.scrollIntoView({ block: "nearest", inline: "nearest" });
  render();
}

async function openPanel(kind, id) {
  const mine = { kind, id, view: null };
  opened = mine;
  document.body.dataset.panel = "open";
  panel.hidden = false;
  const body = el("div", { class: "panel-body" }, el("p", { class: "quiet" }, "Reading …"));
  panel.replaceChildren(el("div", { class: "panel-bar" },
    el("span", { class: "quiet" }, kind === "decision" ? `Decision ${id}` : "Contract"),
    el("button", { type: "button", class: "plain", "aria-keyshortcuts": "Escape", on: { click: leavePanel } }, "Close (Esc)")), body);
  panel.setAttribute("aria-label", kind === "decision" ? `Decision ${id}` : `Contract ${id}`);
  panel.focus({ preventScroll: true });
  try {
    const found = await ask(kind === "decision" ? `/v1/decisions/${encodeURIComponent(id)}` : `/v1/contracts/${encodeURIComponent(id)}`);
    if (opened !== mine) return;
    mine.view = kind === "decision" ? new DecisionView(found, board, operator) : null;
    body.replaceChildren(mine.view?.element ?? contractDocument(found));
  } catch (error) {
    if (opened !== mine) return;
    body.replaceChildren(el("p", { class: "fault", role: "alert" }, error.status === undefined ? "This page cannot show it: " : "", error.message),
      el("button", { type: "button", on: { click: () => openPanel(kind, id) } }, "Try again"));
    if (error.status === undefined) throw error;
  }
}

function closePanel() {
  opened = null;
  panel.hidden = true;
  panel.replaceChildren();
  delete document.body.dataset.panel;
}

function leavePanel() {
  go(tabRoute(tab.name));
  tab.view.rows?.element.focus({ preventScroll: true });
}

// What is shown, drawn at most once a frame.

let due = false;
function soon() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    render();
  });
}

function render() {
  tab.view.render();
  opened?.view?.render();
  thrown.render();
  renderConnection();
  renderSilence();
  for (const t of TABS) if (t.count) {
    setText(t.counter, t.count());
    setAttribute(t.counter, "data-urgent", t.urgent?.() ? "" : null);
  }
  document.title = `${alarm()}${tab.title} · WirelessOps`;
  const now = Date.now() + board.offset;
  setText(byId("clock"), `${clock(now).slice(0, 8)} UTC`);
  setAttribute(byId("clock"), "title", `The guard's clock; this computer's differs by ${length(Math.abs(board.offset))}`);
  setText(byId("guard"), board.guard ? `guard ${board.guard}` : "");
}

/** What a tab in the background must tell. */
function alarm() {
  if (board.connection.state === "lost") return "NOT CONNECTED · ";
  const [thrownOne] = inForce(board.switches);
  const waiting = waits("ESCALATE");
  return `${thrownOne ? `${thrownOne.mode.toUpperCase()} · ` : ""}${waiting ? `(${waiting}) ` : ""}`;
}

/** Partitions for which nobody decides, as far as is known here. */
function renderSilence() {
  const found = board.connection.state === "connected" ? quiet() : [];
  const text = found.map((p) => `partition ${p.partition} (${p.guard}, last heard ${clock(p.at_ms).slice(0, 8)} UTC)`).join(", ");
  const banner = byId("silence");
  banner.hidden = found.length === 0;
  setText(banner.lastChild, text && `Nothing is decided in ${text}: its proposals wait for an owner.`);
}

function renderConnection() {
  const { state, reason, since, retryAt } = board.connection;
  const asOf = board.heardAt === null ? "nothing was heard yet" : `what is shown is of ${utc(board.heardAt + board.offset).slice(11, 19)} UTC`;
  setAttribute(document.body, "data-connection", state);
  setText(byId("connection"), state === "lost" ? "connection lost" : state);
  let lost = byId("lost");
  if (state !== "lost") {
    lost?.remove();
    return;
  }
  if (!lost) {
    lost = el("div", { class: "banner lost", id: "lost", role: "alert" }, el("strong", {}, "NOT CONNECTED"), el("span", {}), el("span", { "aria-live": "off" }),
      el("button", { type: "button", on: { click: () => feed.start() } }, "Try now"));
    byId("banners").before(lost);
  }
  setText(lost.children[1], `Connection to the guard lost: ${reason}; ${asOf}.`);
  const wait = Math.max(0, Math.ceil((retryAt - Date.now()) / 1_000));
  setText(lost.children[2], `Lost for ${length(Date.now() - since)}; ${wait ? `trying again in ${wait} s` : "trying again"}.`);
}

let silence = null;
function say(text) {
  setText(byId("said"), text);
  clearTimeout(silence);
  silence = setTimeout(() => setText(byId("said"), ""), SAID_MS);
}

// Theme: what the system says, or dark or light.

const THEMES = ["auto", "dark", "light"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  setText(byId("theme"), `Theme: ${name}`);
  localStorage.setItem("wirelessops.theme", name);
}
const nextTheme = () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);

// Keys.

const KEYS = [
  ["j k, arrows, Page Up, Page Down", "move in the list"], ["Enter", "open the selected row"], ["Esc", "close; then let go of the row and go to the newest"],
  ["/", "filter by text"], ["p", "pause and resume the list of decisions"], ...TABS.map((t) => [`g ${t.key}`, t.title]),
  ["Shift+K", "kill switch and shadow mode"], ["t", "theme"], ["?", "this list"],
];

const OFF = "wirelessops.keys.off";
function help() {
  const box = el("input", { type: "checkbox", checked: localStorage.getItem(OFF) === null,
    on: { change: () => (box.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "")) } });
  dialog("Keys", [
    el("dl", { class: "keys" }, KEYS.map(([key, does]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, does)))),
    el("label", { class: "choice" }, box, el("span", {}, "Keys of one letter act (off: for speech input, where words would press them)")),
  ]);
}

let gone = -Infinity;
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (opened) leavePanel();
    else if (tab === TABS[0]) decisions.live();
    return;
  }
  if (typing || (event.key.length === 1 && localStorage.getItem(OFF) !== null)) return;
  const after = performance.now() - gone < 1_500;
  gone = -Infinity;
  const to = after && TABS.find((t) => t.key === event.key);
  const acts = {
    g: () => { gone = performance.now(); },
    "/": () => {
      if (tab !== TABS[0]) go(tabRoute("decisions"));
      decisions.focusFilter();
    },
    p: () => { if (tab === TABS[0]) decisions.togglePause(); },
    t: nextTheme, "?": help, K: () => thrown.throw(),
  };
  if (to) {
    go(tabRoute(to.name));
    to.view.rows?.element.focus({ preventScroll: true });
  } else if (event.key in acts) acts[event.key]();
  else if (event.key !== "Enter" && !panel.contains(event.target)) {
    if (!tab.view.rows?.key(event)) return;
    tab.view.rows.element.focus({ preventScroll: true });
  } else return;
  event.preventDefault();
}

for (const t of TABS) {
  t.counter = t.count ? el("span", { class: "count" }) : null;
  t.link = el("a", { href: `#/${t.name}`, "aria-keyshortcuts": `g ${t.key}` }, t.title, " ", t.counter);
  t.link.addEventListener("click", (event) => {
    event.preventDefault();
    go(tabRoute(t.name));
  });
  byId("tabs").append(t.link);
}
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", help);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  (tab.view.rows?.element ?? main).focus();
});
document.addEventListener("keydown", key);
window.addEventListener("hashchange", route);
theme(THEMES.includes(localStorage.getItem("wirelessops.theme")) ? localStorage.getItem("wirelessops.theme") : "auto");
board.listen((what) => (what === "decisions" ? soon() : render()));
setInterval(() => { if (!document.hidden) soon(); }, TICK_MS);
document.addEventListener("visibilitychange", soon);
route();
feed.start();
