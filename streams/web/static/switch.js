// The kill switch and shadow mode: the banner while one is in force, and the dialog that changes it.

import { inForce } from "./board.js";
import { dialog, labelled } from "./dialogs.js";
import { el, setText } from "./elements.js";
import { utc } from "./times.js";

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

  /** Asks for mode, regions and a reason, and throws the switch. In shadow mode too the first offer is to hold all. */
  async throw(mode = this.#allHeld ? "live" : "hold", region = "") {
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
    const active = inForce(this.#board.switches);
    await dialog("Kill switch and shadow mode", [
      active.length > 0 && el("div", {}, el("p", {}, "In force now:"), el("ul", {}, active.map((s) => el("li", {}, told(s), ` by ${s.operator}: “${s.reason}”`)))),
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
      const others = inForce(this.#board.switches).filter((s) => mode === "live" && s.region !== region);
      this.#say(others.length ? `Written, and still in force besides: ${others.map(told).join("; ")}. Each is released by itself.`
        : `Switch “${mode}” is written; it shows above once the owners of the partitions have it in force.`);
      return null;
    } catch (error) {
      return `Not thrown: ${error.message}`;
    }
  }

  /** Whether every APPLY of every region is held. */
  get #allHeld() { return inForce(this.#board.switches).some((s) => s.mode === "hold" && this.#lacking(s).length === 0 && s.region === null); }

  /** Partitions that neither a switch for all regions nor a stricter one of them has reached. */
  #lacking(s) {
    if (s.region !== null) return [];
    const active = inForce(this.#board.switches);
    const reached = active.filter((other) => other.region === null && (other.mode === s.mode || other.mode === "hold")).flatMap((other) => other.partitions);
    return this.#board.partitions.map((p) => p.partition).filter((p) => !reached.includes(p));
  }

  render() {
    const active = inForce(this.#board.switches).map((s) => ({ ...s, lacking: this.#lacking(s) }));
    document.body.dataset.switch = active[0]?.mode ?? "live";
    setText(this.#button, this.#allHeld ? "Release switch" : "Kill switch");
    const state = JSON.stringify(active);
    if (state === this.#shown) return;
    if (active.length === 0 && this.#banners.childElementCount > 0) this.#say("No switch is in force any more: APPLY is released to the network.");
    this.#shown = state;
    this.#banners.replaceChildren(...active.map((s) => this.#banner(s)));
  }

  #banner(s) {
    return el("div", { class: `banner ${s.mode}` },
      el("strong", {}, BANNER[s.mode][0]),
      s.lacking.length ? el("strong", {}, `NOT in force in partition ${s.lacking.join(", ")}, where APPLY goes on; in force in ${s.partitions.join(", ")}`)
        : el("span", {}, `${BANNER[s.mode][1]} in ${scope(s)}`),
      el("span", {}, `by ${s.operator}, since `, el("time", { datetime: new Date(s.at_ms).toISOString() }, utc(s.at_ms))),
      el("span", { class: "reason" }, `“${s.reason}”`),
      el("button", { type: "button", on: { click: () => this.throw("live", s.region ?? "") } }, "Release"));
  }
}

const scope = ({ region }) => (region === null ? "all regions" : `region ${region}`);
const told = (s) => `${s.mode} in ${scope(s)}`;
