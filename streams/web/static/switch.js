// The kill switch and shadow mode: the banner while one is in force, and the dialog that changes it.

import { inForce } from "./board.js";
import { dialog, labelled } from "./dialogs.js";
import { el, setText } from "./elements.js";
import { relative, utc } from "./times.js";

const MEANS = {
  hold: "Kill switch: what would be APPLY becomes HOLD, and is decided again when the switch is released.",
  shadow: "Shadow: what would be APPLY becomes a final HOLD; its record says what would have been released.",
  live: "Live: APPLY is released to the network.",
};
const BANNER = {
  hold: ["KILL SWITCH", "every APPLY is held"],
  shadow: ["SHADOW", "nothing is released, decisions are only written down"],
};

export class Switch {
  #board;
  #operator;
  #say;
  #button;
  #banners;
  #shown = null;

  constructor(board, operator, say, button, banners) {
    this.#board = board;
    this.#operator = operator;
    this.#say = say;
    this.#button = button;
    this.#banners = banners;
    button.addEventListener("click", () => this.throw());
  }

  /** Asks for mode, regions and a reason, and throws the switch. */
  async throw(mode = inForce(this.#board.switches).length ? "live" : "hold", region = "") {
    if (!(await this.#operator.require())) return;
    const regions = [...new Set([
      ...this.#board.sources.map((s) => s.region), ...this.#board.switches.map((s) => s.region),
      ...[...this.#board.ring].slice(-1_000).map(({ d }) => d.region), region,
    ].filter(Boolean))].sort();
    const modes = Object.entries(MEANS).map(([name, means]) => el("label", { class: "choice", "data-mode": name },
      el("input", { type: "radio", name: "mode", value: name, checked: name === mode }), el("span", {}, means)));
    const where = el("select", {}, el("option", { value: "" }, "all regions"), regions.map((r) => el("option", { value: r, selected: r === region }, r)));
    const reason = el("textarea", { rows: "2", required: true, maxlength: "500", autofocus: true });
    const chosen = () => modes.map((m) => m.firstChild).find((input) => input.checked).value;
    await dialog("Kill switch and shadow mode", [
      el("fieldset", {}, el("legend", {}, "Mode"), modes),
      labelled("Where", where),
      labelled(`Reason (required; written down as ${this.#operator.name}'s)`, reason),
      el("p", { class: "quiet" }, "What is released already is not called back: it ends by itself with its valid_until."),
    ], {
      confirm: "Throw the switch", danger: true, ready: () => reason.value.trim() !== "",
      submit: () => this.#send(chosen(), reason.value.trim(), where.value || null),
    });
  }

  async #send(mode, reason, region) {
    try {
      const { partitions, failed } = await this.#operator.post("/v1/switch", { mode, reason, region });
      if (failed.length) return `Not written to partitions ${failed.join(", ")} (written to ${partitions.join(", ") || "none"}): try again.`;
      this.#say(`Switch “${mode}” is written; it shows above once the owners of the partitions have it in force.`);
      return null;
    } catch (error) {
      return `Not thrown: ${error.message}`;
    }
  }

  render() {
    const active = inForce(this.#board.switches);
    document.body.dataset.switch = active[0]?.mode ?? "live";
    setText(this.#button, active.length ? "Release switch" : "Kill switch");
    const now = this.#board.now();
    const state = JSON.stringify(active);
    if (state !== this.#shown) {
      this.#shown = state;
      this.#banners.replaceChildren(...active.map((s) => this.#banner(s)));
    }
    this.#banners.querySelectorAll("time").forEach((time) => setText(time, relative(Number(time.dataset.ms), now)));
  }

  #banner(s) {
    const [name, means] = BANNER[s.mode];
    return el("div", { class: `banner ${s.mode}` },
      el("strong", {}, name), el("span", {}, `${means} in ${s.region === null ? "all regions" : `region ${s.region}`}`),
      el("span", {}, `by ${s.operator}, `, el("time", { "data-ms": s.at_ms, datetime: new Date(s.at_ms).toISOString(), title: utc(s.at_ms) })),
      el("span", { class: "reason" }, `“${s.reason}”`),
      el("span", { class: "quiet" }, `in force in partitions ${s.partitions.join(", ") || "none yet"}`),
      el("button", { type: "button", on: { click: () => this.throw("live", s.region ?? "") } }, "Release"));
  }
}
