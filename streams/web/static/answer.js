// An operator's answer to an escalation: what is disputed, what is taken for true, and why.

import { ask } from "./api.js";
import { labelled } from "./dialogs.js";
import { el, setText } from "./elements.js";
import { length, quantity, utc } from "./times.js";

let forms = 0;

/** What was typed and not sent, by proposal: the decision that it answers may change meanwhile. */
const drafts = new Map();

const proposal = ({ region, proposal_id: id }) => `${region}\n${id}`;

/** Whether something was typed for the proposal of a summary and not sent. */
export const drafted = (summary) => drafts.has(proposal(summary));

/**
 * The form under an open escalation: `element`, and `render()`, which keeps what depends on who acts. `sent(answer)` is told
 * what was written; `fresh(o)` says in words how the source of an observation stands.
 */
export function answerForm(dossier, operator, { fresh, sent }) {
  const { disputes, summary } = dossier;
  const form = `answer${(forms += 1)}`;
  const choices = disputes.map((dispute, i) => chooser(dispute, `${form}-${i}`, dossier.decided_at_ms, fresh, summary.region));
  const reason = el("textarea", { rows: "2", required: true, maxlength: "500" });
  const fault = el("p", { class: "fault", role: "alert" });
  const answer = async (verdict) => {
    fault.textContent = "";
    const settles = verdict === "approve" ? choices.map((c) => c.settled()) : [];
    if (reason.value.trim() === "") return complain("Say why: the reason is part of the answer.", reason);
    const open = settles.findIndex((s) => s === null);
    if (open >= 0) return complain(`Choose a value for ${disputes[open].name}, or deny.`, choices[open].element.querySelector("input"));
    if (!(await operator.require())) return null;
    buttons.forEach((b) => { b.disabled = true; });
    try {
      const written = await operator.post("/v1/answers", { decision: summary.id, verdict, reason: reason.value.trim(), settles });
      drafts.delete(proposal(summary));
      sent(written);
    } catch (error) {
      complain(error.status === 409 ? `${error.message}. It waits for no answer any more.` : error.message, reason);
    } finally {
      buttons.forEach((b) => { b.disabled = false; });
    }
    return null;
  };
  const complain = (text, control) => {
    fault.textContent = text;
    control.focus();
  };
  const approve = el("button", { type: "button", class: "main", on: { click: () => answer("approve") } }, "Approve");
  const deny = el("button", { type: "button", class: "deny", on: { click: () => answer("deny") } }, "Deny");
  const buttons = disputes.length ? [approve, deny] : [deny];
  const who = el("span", { class: "quiet" });
  const kept = drafts.get(proposal(summary));
  if (kept) {
    reason.value = kept.reason;
    choices.forEach((c) => c.take(kept.choices.get(c.name)));
  }
  const keep = () => drafts.set(proposal(summary), { reason: reason.value, choices: new Map(choices.map((c) => [c.name, c.typed()])) });
  const element = el("section", { class: "answer", "aria-label": "Answer this escalation", on: { input: keep } },
    el("h3", {}, disputes.length ? "Your answer: what is true?" : "Your answer"),
    disputes.length ? null : el("p", {}, "Nothing here is for an operator to settle: it can only be denied, or it waits for better evidence."),
    disputes.length > 0 && el("p", { class: "quiet" }, "Take what you know to be true from outside: a test call, the vendor's console, the site. Where you cannot tell, deny."),
    choices.map((c) => c.element),
    labelled("Reason (required, written down)", reason), fault, el("div", { class: "buttons" }, buttons, who),
    el("p", { class: "quiet" }, "If you do nothing, nothing is applied while this is disputed. It is decided again when its sources agree, and ends by itself ",
      summary.until_ms === null ? "only with an answer." : `at ${utc(summary.until_ms)}.`));
  return { element, render: () => setText(who, operator.name ? `as ${operator.name}` : operator.possible ? "Sign in to act: you are asked for your token." : "Nobody can act here: this guard knows no operators.") };
}

/**
 * One disputed field: its observations, or another value. `settled()` gives "field=value:unit", or null; `typed()` what was
 * chosen and typed, for `take()` of another decision's chooser: a value that nobody reports there is not chosen.
 */
function chooser({ field, subject, name: disputed, observations }, name, decided, fresh, region) {
  const unit = observations.find((o) => o.unit)?.unit ?? null;
  const radios = observations.map((o) => {
    const input = el("input", { type: "radio", name });
    const newer = el("span", {});
    said(region, o).then((found) => setText(newer, found ? `; when you opened this it said ${quantity(found.value, found.unit)}` : ""));
    return { input, key: `${o.source} ${settle(disputed, o.value, o.unit)}`, say: () => settle(disputed, o.value, o.unit ?? unit), label: el("label", { class: "choice" }, input,
      el("span", {}, el("strong", {}, quantity(o.value, o.unit)), o.unit ? null : " (no unit given)", ` from ${o.source}, `,
        el("time", { datetime: new Date(o.event_time_ms).toISOString(), title: utc(o.event_time_ms) }, `measured ${length(decided - o.event_time_ms)} before the decision`), fresh(o), newer)) };
  });
  const other = el("input", { type: "radio", name, "aria-label": `${disputed}: another value` });
  const typed = el("input", { class: "short", "aria-label": `${disputed}: the value`, placeholder: "value", on: { input: () => { other.checked = true; } } });
  const units = el("input", { class: "short", "aria-label": `${disputed}: its unit`, placeholder: "unit", value: unit ?? "" });
  const all = [...radios, { input: other, say: () => (typed.value.trim() ? settle(disputed, typed.value.trim(), units.value.trim()) : null) }];
  return {
    element: el("fieldset", {}, el("legend", {}, field, subject ? ` of ${subject}` : ""), radios.map((r) => r.label), el("div", { class: "choice" }, other, "another:", typed, units)),
    name: disputed,
    settled: () => all.find((r) => r.input.checked)?.say() ?? null,
    typed: () => ({ said: radios.find((r) => r.input.checked)?.key ?? null, other: other.checked, value: typed.value, unit: units.value }),
    take: (kept) => {
      if (!kept) return;
      [typed.value, units.value, other.checked] = [kept.value, kept.unit, kept.other];
      radios.forEach((r) => { r.input.checked = r.key === kept.said; });
    },
  };
}

/** What the source of an observation says of the same now; null where that is not known here. */
async function said(region, { name, subject, source }) {
  const query = new URLSearchParams({ region, name, source, ...(subject ? { subject } : {}) });
  const reply = await ask(`/v1/evidence?${query}`).catch(() => null);
  return reply?.observations?.at(-1) ?? null;
}

function settle(disputed, value, unit) {
  return unit ? `${disputed}=${value}:${unit}` : `${disputed}=${value}`;
}
