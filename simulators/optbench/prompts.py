"""What a backbone is asked: pure text, from the public view alone (paper, section III-D).

Nothing but the view, what tools returned, and a critique goes in, and equal views give the same bytes. Every style asks
for the same JSON object; they differ in what they show of the evidence and of the contract.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from simulators.optbench.agents import Prompt
from simulators.optbench.model import Task

Style = Literal["direct", "direct-minimal", "direct-nocontract", "tools", "critic", "normalised"]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a style shows: the ledger with its metadata, the bare values, or the normalised view in its place."""

    evidence: Literal["ledger", "values", "normalised"] = "ledger"
    contract: bool = True
    meanings: bool = True
    tools: bool = False


_STYLES: Final[Mapping[Style, _Shown]] = {
    "direct": _Shown(),
    "direct-minimal": _Shown(evidence="values", contract=False, meanings=False),
    "direct-nocontract": _Shown(contract=False),
    "tools": _Shown(tools=True),
    "critic": _Shown(tools=True),
    "normalised": _Shown(evidence="normalised"),
}

_ROLE: Final = (
    "You propose one action for a radio network: whether a control plan may be executed at time t on the evidence held"
    " then. Solve the task, state the plan, and choose the action that the evidence supports."
)

# Section IV-E and figure 5 of the paper; the order is that of eq. (9).
_MEANINGS: Final[tuple[tuple[str, str], ...]] = (
    ("APPLY", "execute the plan: every critical field is supported by current, agreeing, traceable evidence, and every"
              " constraint holds. An irregularity that the contract itself resolves (an alias, a compatible unit, a"
              " current secondary source, a difference within tolerance) does not block."),
    ("ESCALATE", "ask a person: an ambiguity (a name of two fields, a unit missing or of another dimension), a conflict"
                 " beyond tolerance, evidence overwritten by an older event, a provenance that cannot be traced, or"
                 " independent faults of different kinds in different sources."),
    ("RETRY", "ask again: a required source is in a retryable outage with a finite back-off, and nothing covers it."),
    ("HOLD", "wait: required state is not yet current (stale, or under a name or schema that nothing knows)."),
    ("ABSTAIN", "the fallback where none of the others is supported."),
)  # fmt: skip

_READING_THE_CONTRACT: Final = (
    "How to read it: an observed field is supported by the ledger, a planned field is chosen by you (and must equal its"
    " `expr`), a derived field follows from its `expr`. Defaults: unit 1, type number, tolerance 0, critical true."
    " `sources` are in order: the first is the primary, the others may stand in for it while they are current; no other"
    " source counts. `schemas`: the schema identifiers accepted. `min`, `max`: what a value may be."
    " `freshness_ms` is the greatest age at t; the boundary is still fresh. Two values differ materially when they lie"
    " further apart than the larger of `tolerance` (in the field's unit) and `rel_tolerance` (of the larger magnitude)."
    " In names and `aliases`, case does not matter, and a blank or a hyphen is an underscore. A compatible unit is"
    " converted. A field that is not critical never blocks. `window_ms`: the constraint must hold throughout that time"
    " before t, with samples no further apart than `max_gap_ms`."
)

_READING_THE_LEDGER: Final = (
    "One observation a line, in arrival order. `age_ms`: t less the time of measurement; `arrived_ms_ago`: t less the"
    " time of arrival; `unit` null: the source gave none; `parents`: the observations it was computed from. Absent:"
    " quality good, origin live, no version, no schema, no subject, no parents."
)

_LEADING: Final = ("id", "name", "value", "unit", "source")
_DEFAULTS: Final[Mapping[str, Any]] = {
    "version": None, "quality": "good", "schema": None, "subject": None, "parents": [], "origin": "live",
}  # fmt: skip
_TIMES: Final[Mapping[str, str]] = {"event_time_ms": "age_ms", "ingest_time_ms": "arrived_ms_ago"}

_KINDS: Final = ("observed", "planned", "derived")

_ANSWERS: Final[Mapping[Task, str]] = {
    "WCHW": '{"value": NUMBER, "unit": TEXT}',
    "WCNS": '{"slice_type": "eMBB" | "URLLC", "cqi": INTEGER, "bandwidth": NUMBER (MHz),'
    ' "throughput": NUMBER (Mbit/s)}',
    "WCMSA": '{"predicted_position": {"x": NUMBER (m), "y": NUMBER (m)}, "predicted_cqi": INTEGER,'
    ' "slice_type": "eMBB" | "URLLC", "bandwidth": NUMBER (MHz), "throughput": NUMBER (Mbit/s),'
    ' "qos_satisfied": true | false}',
}


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def _ordered(value: Any) -> Any:
    """The same JSON value with the members of every object by name: equal values give equal bytes."""
    if type(value) in _SCALARS:  # most are
        return value
    if isinstance(value, Mapping):
        return {key: _ordered(inner) for key, inner in sorted(value.items())}
    return [_ordered(inner) for inner in value] if isinstance(value, list | tuple) else value


def _json(value: Any) -> str:
    return _ENCODER.encode(_ordered(value))


def _line(first: Iterable[tuple[str, Any]], rest: Mapping[str, Any]) -> str:
    """One JSON object on one line: `first` in its order, then `rest` by name."""
    return _ENCODER.encode({**{key: _ordered(value) for key, value in first}, **_ordered(rest)})


def _observation(observation: Mapping[str, Any], t_ms: int) -> str:
    first = [(key, observation.get(key)) for key in _LEADING]
    first += [(shown, t_ms - observation[key]) for key, shown in _TIMES.items()]
    told = {key: value for key, value in observation.items() if key not in _LEADING and key not in _TIMES}
    return _line(first, {key: value for key, value in told.items() if key not in _DEFAULTS or value != _DEFAULTS[key]})


def _evidence(view: Mapping[str, Any], shown: _Shown, normalised: Mapping[str, Any] | None) -> Iterable[str]:
    episode = view["episode"]
    observations: Sequence[Mapping[str, Any]] = episode["observations"]
    if shown.evidence == "values":
        yield "# Observed values"
        for o in observations:
            yield _line([(key, o.get(key)) for key in ("name", "value", "unit")], {})
        return
    t_ms = int(episode["decided_at_ms"])
    yield f"# Evidence at t = {t_ms} (Unix time, ms)"
    yield "Sources that are not listed are up."
    for name, status in sorted(episode.get("sources", {}).items()):
        yield _line([("source", name)], status)
    if normalised is None:
        yield f"## Ledger\n{_READING_THE_LEDGER}"
        for o in observations:
            yield _observation(o, t_ms)
    else:
        yield "## Normalised view"
        yield "One observed field a line, in the contract's name and unit, with the observation that supports it."
        for name, entry in sorted(normalised["fields"].items()):
            yield _line([("field", name)], entry)
        for key, value in sorted(normalised.items()):
            if key != "fields":
                yield f"{key}: {_json(value)}"
    if episode.get("controls"):
        yield "## Controls applied lately"
        yield from (_json(control) for control in episode["controls"])


def _of_kind(contract: Mapping[str, Any], *kinds: str) -> list[str]:
    fields = contract["fields"]
    return sorted((name for name in fields if fields[name]["kind"] in kinds), key=lambda n: (_kind_rank(fields[n]), n))


def _kind_rank(field: Mapping[str, Any]) -> int:
    return _KINDS.index(field["kind"])


def _contract(contract: Mapping[str, Any]) -> Iterable[str]:
    yield f"# Execution contract {contract['contract_id']}\n{_READING_THE_CONTRACT}\n## Fields"
    for name in _of_kind(contract, *_KINDS):
        field = dict(contract["fields"][name])
        yield _line([("field", name), ("kind", field.pop("kind"))], field)
    yield "## Constraints"
    for constraint in contract.get("constraints", ()):
        rest = dict(constraint)
        yield _line([("id", rest.pop("id", None)), ("expr", rest.pop("expr", None))], rest)
    yield f"Clocks may differ by {contract.get('max_clock_skew_ms', 0)} ms."


def _format(view: Mapping[str, Any], shown: _Shown) -> Iterable[str]:
    contract = view["episode"]["contract"]
    plan = ", ".join(
        f'{_json(name)}: {{"value": VALUE, "unit": TEXT | null}}' for name in _of_kind(contract, "planned", "derived")
    )
    yield "# Reply"
    yield "One JSON object and nothing else, whatever format the task asks for; a unit is \"1\" where there is none:"
    yield '{"action": ' + " | ".join(f'"{name}"' for name, _ in _MEANINGS) + ","
    yield f' "answer": {_ANSWERS[view["task"]["task"]]},'
    yield f' "plan": {{{plan}}}' + ("," if shown.contract else "}")
    if shown.contract:
        yield ' "fields": {FIELD: {"state": "supported" | "blocked", "observation": ID | null}}}'
        yield (
            "`fields`: for each of "
            + ", ".join(_of_kind(contract, "observed"))
            + ": whether the evidence supports it, and by which observation."
        )
    yield "Give the answer and the plan also where the action is not APPLY."


def propose(
    view: Mapping[str, Any],
    style: Style,
    *,
    extra_observations: Sequence[Mapping[str, Any]] = (),
    normalised: Mapping[str, Any] | None = None,
) -> Prompt:
    """The prompt that asks for a proposal on the public view `view` (`Case.view`).

    `extra_observations`: what tools returned, in the form of the ledger, shown after it (styles `tools` and `critic`
    only). `normalised`: the lineage-preserving canonical view with a member `fields` (style `normalised`, and required
    there). Raises ValueError where one is given to a style that does not show it, or missing.
    """
    shown = _STYLES[style]
    if extra_observations and not shown.tools:
        raise ValueError(f"style {style} shows no tool observations")
    if (shown.evidence == "normalised") != (normalised is not None):
        raise ValueError("style normalised, and no other, shows a normalised view")
    task = view["task"]
    system = [_ROLE]
    if shown.meanings:
        system += ["Actions, the first that fits:", *(f"{name}: {meaning}" for name, meaning in _MEANINGS)]
    lines = [f"# Task ({task['task']})", str(task["question"])]
    if task["input"]:
        lines.append(f"Input: {_json(task['input'])}")
    lines += _evidence(view, shown, normalised)
    if extra_observations:
        lines += ["## Observations of tools, in the same form"]
        lines += [_observation(o, int(view["episode"]["decided_at_ms"])) for o in extra_observations]
    if shown.contract:
        lines += _contract(view["episode"]["contract"])
    lines += _format(view, shown)
    return Prompt(str(view["episode_id"]), (("system", "\n".join(system)), ("user", "\n".join(lines))))


def revise(
    view: Mapping[str, Any],
    previous_text: str,
    critiques: Sequence[tuple[str, str]],
    round: int,
    *,
    style: Style = "critic",
    extra_observations: Sequence[Mapping[str, Any]] = (),
) -> Prompt:
    """The prompt that asks to revise `previous_text`, the backbone's own reply to `propose` or to the last `revise`.

    `critiques`: (disputed name as in `Prompt.disputed`, the sentence that says why). `round` counts revisions from 1.
    Only the previous reply is shown, not the rounds before it: it carries all that they left.
    """
    asked = propose(view, style, extra_observations=extra_observations)
    lines = ["A check against the ledger and the contract disputes this:"]
    lines += [f"- {name}: {sentence}" for name, sentence in critiques]
    lines.append("Revise what you find wrong, keep the rest as it is, and reply with the whole JSON object again.")
    return Prompt(
        asked.episode_id,
        (*asked.messages, ("assistant", previous_text), ("user", "\n".join(lines))),
        purpose="revise",
        round=round,
        disputed=tuple(name for name, _ in critiques),
    )
