// One decision opened: why, on what evidence, and what was released.

import { answerForm, drafted } from "./answer.js";
import { staleness } from "./board.js";
import { badge, el, setText, table, terms } from "./elements.js";
import { graph } from "./graph.js";
import { left, length, quantity, quantityOf, sentence, utc } from "./times.js";

const time = (ms) => el("time", { datetime: new Date(ms).toISOString() }, utc(ms));
const list = (items) => (items.length ? items.join(", ") : "—");

/** The panel's content for a dossier; `render()` keeps what depends on the time. */
export class DecisionView {
  #board;
  #dossier;
  #operator;
  #summary;
  #left = el("p", { class: "waits" });
  #since = el("div", { role: "status" });
  #form = el("div", {});
  #answered = null;
  #asked = null;

  constructor(dossier, board, operator) {
    this.#board = board;
    this.#dossier = dossier;
    this.#operator = operator;
    this.#summary = dossier.summary;
    this.element = el("article", { class: "decision" }, head(dossier.summary, dossier), this.#left, this.#since, this.#form, sections(dossier));
    this.render();
  }

  /** The form, as soon as the board says that an answer is waited for: an address may be opened before the board is there. */
  #ask() {
    const d = this.#summary;
    if (d.action !== "ESCALATE" || this.#form.hasChildNodes() || this.#answered || !this.#board.waits(d)) return;
    this.#asked = answerForm(this.#dossier, this.#operator, {
      fresh: (o) => this.#fresh(o.source),
      sent: (answer) => {
        this.#answered = answer;
        this.#form.replaceChildren();
        this.#since.replaceChildren(el("p", { class: "outcome" }, `Written as ${answer.operator}'s: ${said(answer)}. The guard decides again …`));
        this.render();
      },
    });
    this.#form.append(this.#asked.element);
  }

  /** How a source stands, in words; nothing where it is not known. */
  #fresh(name) {
    const source = this.#board.sources.find((s) => s.region === this.#summary.region && s.source === name);
    if (!source) return "";
    const share = staleness(source, this.#board.saidAt(source, this.#board.now()));
    return share > 1 ? el("strong", {}, share === Infinity ? "; this source is out" : "; this source is stale") : "; this source is fresh";
  }

  /** What followed, once: after an answer, whether it counted. */
  #told(last) {
    if (this.#since.dataset.last === last.id) return;
    this.#since.dataset.last = last.id;
    const link = el("a", { href: `#/decision/${last.id}` }, last.final ? "open the final decision" : last.action === "ESCALATE" ? "open the newest, and answer that" : "open the newest");
    this.#since.replaceChildren(el("p", { class: "outcome" },
      this.#answered ? `${said(this.#answered)}, as ${this.#answered.operator} said: ` : "Decided again since: ",
      badge(last.action), last.final ? ", final. " : ` at attempt ${last.attempt}. `,
      this.#answered && last.action === "ESCALATE" ? "The answer did not end the dispute: its sources say something else by now, or more is disputed. " : "",
      this.#answered ? `${sentence(last.explanation)} ` : "",
      !this.#answered && last.action === "ESCALATE" && drafted(last) ? "What you typed is kept for it. " : "", link));
    this.#form.replaceChildren();
  }

  render() {
    const d = this.#summary;
    const now = this.#board.now();
    const newest = this.#board.newest(d);
    this.#ask();
    this.#asked?.render();
    if (newest && newest.id !== d.id) {
      setText(this.#left, "");
      this.#told(newest);
    } else if (d.final) {
      setText(this.#left, d.valid_until_ms === null ? "Final." : d.valid_until_ms > now
        ? `Final. May be executed for another ${left(d.valid_until_ms, now)}.` : "Final. Its authority has ended.");
    } else if (this.#board.loaded && !this.#board.waits(d)) {
      setText(this.#left, "It waits no more: what followed is older than the decisions that this page holds.");
    } else {
      setText(this.#left, d.until_ms === null ? "Waits; no limit is set." : d.until_ms > now
        ? `Waits: the final decision comes within ${left(d.until_ms, now)}.` : "Its time is up; the final decision is due.");
    }
  }
}

/** An answer in words. */
function said({ verdict, settles }) {
  return verdict === "deny" ? "Denied" : `Approved with ${settles.map((s) => `${s.field} = ${quantity(s.value, s.unit)}${s.subject ? ` of ${s.subject}` : ""}`).join(", ")}`;
}

function head(d, dossier) {
  return el("header", {},
    el("h2", {}, badge(d.action), " ", d.proposal_id),
    d.believed === false && el("p", { class: "switched hold" }, "Not signed by a guard that is known here: nothing may be executed on it."),
    d.switched && el("p", { class: `switched ${d.switched}` }, d.switched === "hold"
      ? "This would be APPLY: the kill switch holds it." : "This would be APPLY: shadow mode released nothing."),
    el("p", { class: "explanation" }, sentence(d.explanation)),
    terms([
      ["xApp", d.proposer], ["Asks for", asked(dossier.plan)], ["Contract", d.contract && el("a", { href: `#/contract/${encodeURIComponent(d.contract)}` }, d.contract)],
      ["Controls", d.control_key], ["Cells", list(d.cells)], ["Region", `${d.region}, partition ${d.partition}`],
      ["Decided", time(d.decided_at_ms)], ["After arrival", d.late_ms === null ? null : length(d.late_ms)],
      ["Attempt", d.attempt + (d.final ? ", final" : ", interim")], ["Deadline", dossier.proposal?.deadline_ms ? time(dossier.proposal.deadline_ms) : "none"],
      ["Valid until", d.valid_until_ms === null ? null : time(d.valid_until_ms)], ["Guard", d.guard],
    ]));
}

/** What the plan says, as written. */
function asked(plan) {
  return plan.filter((p) => p.written !== null).map((p) => `${name(p)} = ${quantity(p.written, p.written_unit)}`).join(", ");
}

function sections(dossier) {
  const { fields, plan, violations, repairs, policy, constraints, answers, control, summary } = dossier;
  return [
    section("Why this action", why(dossier), table("Rows of the policy, in order", ["Applies", "Action", "Row", "Because"], policy.map(policyRow))),
    dossier.support && section("Support", ...supported(dossier.support)),
    section("Fields", table("Fields the decision rests on", ["Field", "Value", "Source", "Age of limit", "Before repair", "After"], fields.map(field))),
    plan.length > 0 && section("Plan: written and checked", table("Plan", ["Field", "Written", "Checked", "Repairs"], plan.map((p) => [
      name(p), quantity(p.written, p.written_unit), quantity(p.value, p.unit), list(p.repairs)])),
    el("p", { class: "quiet" }, summary.released ? `Released: ${Object.entries(summary.released).map(([k, q]) => `${k} = ${quantityOf(q)}`).join(", ")}` : "Nothing was released.")),
    section("Evidence", graph(dossier.graph)),
    constraints.length > 0 && section("Constraints", table("Constraints", ["State", "Constraint", "Expression", "Detail"], constraints.map((c) => [
      state(c.holds === true ? "holds" : c.holds === false ? "fails" : "not judged"), c.id, el("code", {}, c.expr), sentence(c.detail ?? "")]))),
    violations.length > 0 && section("Violations", table("Violations", ["Code", "Where", "State", "Detail"], violations.map((v) => [
      v.code, v.field ?? v.constraint ?? "—", state(v.blocking ? "blocks" : v.resolved ? "resolved" : "noted"), sentence(v.detail ?? "")]))),
    repairs.length > 0 && section("Repairs", table("Repairs", ["Operator", "Field", "From", "To", "Support"], repairs.map((r) => [
      r.operator, r.field, quantityOf(r.from), quantityOf(r.to), list(r.support)]))),
    control && section("Lease and other controls", coordination(control, summary)),
    answers.length > 0 && section("Answers", table("Answers of operators", ["Who", "Said", "To proposal", "When", "Here"], answers.map((a) => [
      a.source, `${a.name}${a.subject ? ` of ${a.subject}` : ""} = ${quantity(a.value, a.unit)}`,
      a.proposal_id === summary.proposal_id ? "this one" : a.proposal_id ?? "not known any more", time(a.at_ms), state(a.here)]))),
    section("Record",
      el("p", {}, el("a", { class: "button", href: `/v1/decisions/${encodeURIComponent(summary.id)}/record`, download: `decision-${summary.id}.json` }, "Download the record")),
      terms([["Digest", el("code", {}, dossier.record_digest)], ["Decision", el("code", {}, summary.decision_id)]])),
  ];
}

/** What the support gate said: the deficit, when it could pass, the map, the drift. */
function supported(s) {
  return [
    el("p", {}, state(s.state), " ", sentence(s.because)),
    terms([
      ["Could pass", s.earliest_ms === null ? null : time(s.earliest_ms)],
      ["Reference map", s.map && `${s.map.map_id}, version ${s.map.version}`], ["Its digest", s.map && el("code", {}, s.map.digest)],
      ["Expires", s.expires_at_ms === null ? null : time(s.expires_at_ms)],
      ["Drift", s.drift && `${s.drift.exceeded} partitions beyond its limit; ${s.drift_partitions} make the map drifted`],
    ]),
    s.short.length > 0 && table("What is short", ["Field", "Component", "Partitions", "Visits"], s.short.map((one) => [
      one.subject ? `${one.field} of ${one.subject}` : one.field, component(one.component), one.partitions, one.visits])),
  ];
}

function component({ place, quarter, load, cqi }) {
  return `${place || "the network"}, quarter ${quarter}, load ${load}, cqi ${cqi}`;
}

/** A row of the policy in words; the last is what remains, and so applies always. */
function policyRow(row, i, { length: rows }) {
  const last = i === rows - 1;
  const word = row.chosen ? "taken" : !row.applies ? "no" : last ? "if no other" : "applies too";
  return [state(word), badge(row.action), row.name, last ? "taken where no row above applies" : sentence(row.because)];
}

/** Codes, each once, with how often it was found. */
function counted(codes) {
  const times = new Map();
  for (const code of codes) times.set(code, (times.get(code) ?? 0) + 1);
  return list([...times].map(([code, n]) => (n > 1 ? `${code} ×${n}` : code)));
}

function section(title, ...content) {
  return el("section", { "aria-label": title }, el("h3", {}, title), content);
}

function why({ why: { chosen, next }, policy }) {
  const last = next && policy.slice(0, -1).every((row) => row.chosen || !row.applies);
  return el("dl", { class: "why" },
    el("div", {}, el("dt", {}, "Because"), el("dd", {}, sentence(chosen))),
    next && el("div", {}, el("dt", {}, "Otherwise"), el("dd", {}, badge(next.action), ` ${last ? "as no other row applies" : sentence(next.because)}`)));
}

function name({ field, member }) {
  return member ? `${field} [${member}]` : field;
}

function state(word) {
  return el("span", { class: "state", "data-state": word }, word);
}

function field(f) {
  const share = f.age_ms === null || f.age_ms === undefined || !f.limit_ms ? null : f.age_ms / f.limit_ms;
  return [
    el("span", { title: [f.subject, f.observation].filter(Boolean).join(" · ") }, name(f), f.critical || f.kind !== "observed" ? null : el("span", { class: "quiet" }, " not critical")),
    quantity(f.value, f.unit),
    f.source ?? el("span", { class: "quiet" }, f.kind),
    share === null ? "—" : age(f, share),
    counted(f.before),
    el("span", {}, state(f.after), f.repairs.length ? el("span", { class: "quiet" }, ` by ${f.repairs.join(", ")}`) : null),
  ];
}

/** Age as a bar against its limit, and in words. */
function age(f, share) {
  const fill = el("span", { class: "fill" });
  fill.style.width = `${Math.min(100, share * 100)}%`;
  return el("span", { class: "age", "data-over": share > 1 ? "" : null },
    el("span", { class: "bar", "aria-hidden": "true" }, fill), `${length(f.age_ms)} of ${length(f.limit_ms)}${share > 1 ? ", over" : ""}`);
}

/** What other controls made of it: how long it is held, or would have been where it is no APPLY. */
function coordination(c, { action }) {
  return terms([
    [action === "APPLY" ? "Held until" : "Not granted; would have been held until", c.lease_until_ms ? time(c.lease_until_ms) : null],
    ["Leases in force then", c.leases.length || null], ["Merged with", c.merged_with], ["Changes that count in the budget", c.changes],
    ["This key moved the network", c.moved_at_ms ? time(c.moved_at_ms) : null],
  ]);
}
