// The heat map: a row a source, the worst first; the last two minutes of age against limit, and the present in words.

import { sourceKey, staleness } from "./board.js";
import { el, empty } from "./elements.js";
import { Rows } from "./rows.js";
import { length, utc } from "./times.js";

const SAMPLES = 120;
const STEPS = [[0.25, "fresh"], [0.5, "good"], [0.8, "ageing"], [1, "near"], [Infinity, "stale"]];

const level = (share) => (share === Infinity ? "outage" : STEPS.find(([to]) => share <= to)[1]);
const percent = (share) => (share > 99 ? "> 9900 %" : `${Math.round(share * 100)} %`);

export class SourcesView {
  #board;

  constructor(board) {
    this.#board = board;
    const share = (s, now) => staleness(s, board.saidAt(s, now));
    const age = (s, now) => (board.saidAt(s, now) === null || s.event_time_ms === null ? null : board.saidAt(s, now) - s.event_time_ms);
    const arrived = (s, now) => (board.saidAt(s, now) === null || !s.ingest_time_ms ? null : Math.max(0, board.saidAt(s, now) - s.ingest_time_ms));
    const word = (s, now) => (board.saidAt(s, now) === null ? "owner not heard of" : s.state === "outage" ? "outage"
      : s.event_time_ms === null ? "never heard" : `${percent(share(s, now))} ${level(share(s, now))}`);
    this.rows = new Rows({
      label: "Sources, worst first", name: "sources", key: sourceKey,
      columns: [
        { name: "source", title: "Source", text: (s) => s.source, hint: (s) => `region ${s.region}, partition ${s.partition}` },
        { name: "region", title: "Region", text: (s) => s.region },
        { name: "share", title: "Age of limit", state: (s, now) => level(share(s, now)), text: word },
        { name: "heat", title: "Last 2 min", draw: (canvas, s) => heat(canvas, board.heat.get(sourceKey(s)) ?? []) },
        { name: "age", title: "Age", text: (s, now) => (age(s, now) === null ? "—" : length(Math.max(0, age(s, now)))),
          hint: (s) => (s.event_time_ms === null ? null : `measured ${utc(s.event_time_ms)}`) },
        { name: "limit", title: "Limit", text: (s) => (s.limit_ms ? length(s.limit_ms) : "none") },
        { name: "period", title: "Period", text: (s) => (s.period_ms ? length(s.period_ms) : "—") },
        { name: "came", title: "Arrived", text: (s, now) => (arrived(s, now) === null ? "—" : `${length(arrived(s, now))} ago`), hint: (s) => (s.ingest_time_ms ? utc(s.ingest_time_ms) : null) },
      ],
    });
    this.nothing = el("div", { class: "nothing", hidden: true }, empty("No source has reported.", "Send telemetry to the topic “telemetry”; every source that reports appears here within a second."));
    const legend = [...STEPS.map(([, name]) => name), "outage"].map((name) => el("span", { class: "key", "data-state": name }, name));
    this.element = el("section", { class: "view", "aria-label": "Sources" },
      el("p", { class: "lead" }, "Age of the newest report against the tightest limit of any contract, the worst first; all of the moment at which the partition’s owner spoke of it last, about one a second. ", el("span", { class: "legend" }, legend)),
      this.rows.element, this.nothing);
  }

  render() {
    const now = this.#board.now();
    const items = this.#board.sources.map((s) => [staleness(s, this.#board.saidAt(s, now)), s])
      .sort(([a, s], [b, t]) => (a === b ? 0 : b - a) || (sourceKey(s) < sourceKey(t) ? -1 : 1)).map(([, s]) => s);
    this.nothing.hidden = items.length > 0 || !this.#board.loaded;
    this.rows.show(items.length, (i) => items[i], now);
  }
}

/** Two minutes of samples, the newest at the right; its height says the same as its colour. */
function heat(canvas, samples) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width === 0) return;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const paint = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  const step = canvas.width / SAMPLES;
  paint.clearRect(0, 0, canvas.width, canvas.height);
  samples.forEach((share, i) => {
    const tall = canvas.height * Math.max(0.12, Math.min(1, share));
    paint.fillStyle = style.getPropertyValue(`--${level(share)}`);
    paint.fillRect(canvas.width - (samples.length - i) * step, canvas.height - tall, Math.max(1, step - 0.5), tall);
  });
}
