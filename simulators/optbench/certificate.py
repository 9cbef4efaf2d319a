"""The certificate checker: the reference action of an episode from its public view alone (paper, section III).

It reads what every method may read, never what was done to the evidence, and shows for each field that it calls blocked
the observations that say so. It is written from the rules (clauses are cited as "rules, n") and shares no code with the
engine or with the fact-level oracle, so that an error of one is not an error of the other. It judges no plan, and no
windowed constraint, only the fields that one reads. A state that the suite does not realise raises; it is not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, NamedTuple

from simulators.optbench.certificate_admission import Fault, fault, unreplaced, value
from simulators.optbench.certificate_ledger import Field, Ledger, Observation, read
from simulators.optbench.model import Scalar, Verdict

# Rules, 5: what a blocked field is filed under, first match first; each group with its predicate of the reference
# policy (None: no family realises it).
_GROUPS: Final[tuple[tuple[str | None, frozenset[str]], ...]] = (
    ("ambiguous_schema", frozenset({"ambiguous_schema", "ambiguous_unit"})),
    ("material_conflict", frozenset({"conflict", "out_of_order"})),
    ("material_conflict", frozenset({"unknown_source", "unresolved_provenance"})),
    ("retryable_outage", frozenset({"outage"})),
    ("unknown_critical_schema", frozenset({"unknown_schema", "unknown_unit"})),
    ("stale_required_state", frozenset({"stale"})),
    ("stale_required_state", frozenset({"no_value"})),
    ("stale_required_state", frozenset({"missing"})),
    (None, frozenset({"final_outage"})),
)
_RANK: Final = {code: rank for rank, (_, codes) in enumerate(_GROUPS) for code in codes}
_PREDICATE: Final = {code: predicate for predicate, codes in _GROUPS for code in codes}

# Rules, 5: failures of one class are not independent.
_CLASS: Final[dict[str, str]] = {
    "unknown_schema": "schema", "ambiguous_schema": "schema", "unknown_unit": "schema", "ambiguous_unit": "schema",
    "unknown_source": "provenance", "unresolved_provenance": "provenance", "stale": "freshness",
    "outage": "availability", "missing": "availability", "no_value": "domain",
    "conflict": "conflict", "out_of_order": "conflict",
}  # fmt: skip

# Benchmark rules: six predicates in this order, else APPLY.
_POLICY: Final[tuple[tuple[str, str], ...]] = (
    ("ambiguous_schema", "ESCALATE"),
    ("material_conflict", "ESCALATE"),
    ("independent_failures", "ESCALATE"),
    ("retryable_outage", "RETRY"),
    ("unknown_critical_schema", "HOLD"),
    ("stale_required_state", "HOLD"),
)

_OF_ITS_SOURCE: Final = frozenset({"stale", "no_value"})
"""Faults of the head of a source in outage that are that outage, and no second fault (rules, 3)."""


class _Finding(NamedTuple):
    """One reason why a field is blocked. `source` as rules, 5 define it; `observations` decide on independence."""

    code: str
    source: str
    observations: tuple[str, ...]
    cites: tuple[str, ...]


def certify(view: Mapping[str, Any]) -> Verdict:
    """The reference action of a public view (see `Case.view`), its predicate, and what blocks with what shows it.

    `cites`: blocked field → observation ids, `source:NAME` of a source in outage, or `missing:FIELD` where the view
    holds nothing at all. A proposal or deadline in the episode is not read. Raises ValueError, naming the state, for
    one that the suite never realises: subjects, operators' answers, controls, a contract by reference, an observation
    of the future or out of range, a field that only a final outage blocks.
    """
    ledger = read(view["episode"])
    findings = {name: _blocking(ledger, field) for name, field in ledger.fields.items() if field.critical}
    blocked = {name: found for name, found in findings.items() if found}
    filed = {name: _filed(ledger.fields[name], found) for name, found in blocked.items()}
    held = {_PREDICATE[filing.code] for filing in filed.values()}
    if None in held:
        raise ValueError(f"{', '.join(filed)}: blocked by a final outage, which the suite never realises")
    if _independent(ledger, tuple(filed.values())):
        held.add("independent_failures")
    predicate, action = next((row for row in _POLICY if row[0] in held), ("none", "APPLY"))
    cites = {name: tuple(dict.fromkeys(cite for f in found for cite in f.cites)) for name, found in blocked.items()}
    return Verdict(action, predicate, frozenset(blocked), cites)


def _filed(field: Field, findings: Iterable[_Finding]) -> _Finding:
    """The first group, and in it the first source in contract order; strangers come after all of those."""
    order = {source: place for place, source in enumerate(field.sources)}
    return min(findings, key=lambda f: (_RANK[f.code], order.get(f.source, len(order))))


def _independent(ledger: Ledger, filed: Iterable[_Finding]) -> bool:
    """Two fields filed under different classes and different sources, whose observations share no ancestor."""
    return any(
        _CLASS[a.code] != _CLASS[b.code]
        and a.source != b.source
        and not ledger.lineage(a.observations) & ledger.lineage(b.observations)
        for a, b in combinations(filed, 2)
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """What one source says of one field: its head, what remains at the head's event time, what is older."""

    source: str
    head: Observation
    fault: Fault | None
    remaining: tuple[Observation, ...]
    older: tuple[Observation, ...]


def _heads(ledger: Ledger, field: Field) -> Iterator[_Told]:
    """Per source in contract order. An older, good value never stands in for a head that is inadmissible."""
    for source in field.sources:
        own = [o for o in ledger.told(field) if o["source"] == source]
        if not own:
            continue
        newest = max(o["event_time_ms"] for o in own)
        remaining = unreplaced([o for o in own if o["event_time_ms"] == newest])
        last = max(o["ingest_time_ms"] for o in remaining)
        latest = [(fault(ledger, field, o), o) for o in remaining if o["ingest_time_ms"] == last]
        failed, head = min(latest, key=lambda pair: (pair[0] is None, pair[1]["id"]))
        yield _Told(source, head, failed, remaining, tuple(o for o in own if o["event_time_ms"] < newest))


def _blocking(ledger: Ledger, field: Field) -> tuple[_Finding, ...]:
    """Every reason why `field` is blocked; empty where it is supported and not in conflict."""
    heads = tuple(_heads(ledger, field))
    disagreements = tuple(_disagreements(ledger, field, heads))
    failed = tuple(
        _Finding(told.fault.code, told.source, (told.head["id"],), (told.head["id"], *told.fault.shown))
        for told in heads
        if told.fault
    )
    if len(failed) < len(heads):  # supported: what else failed blocks only beside a disagreement
        return (*disagreements, *failed) if disagreements else ()
    if not disagreements and _recalled(ledger, field):
        return ()
    return (*disagreements, *_unsupported(ledger, field, failed))


def _disagreements(ledger: Ledger, field: Field, heads: Sequence[_Told]) -> Iterator[_Finding]:
    """Conflicts, and older events that overwrite a newer value; only admissible observations take part."""
    rivals = [(a.head, b.head) for a, b in combinations(heads, 2)]
    rivals += [pair for told in heads for pair in combinations(told.remaining, 2)]
    overwriting = [(told.head, o) for told in heads for o in told.older if _higher(o, told.head)]
    for code, pairs in (("conflict", rivals), ("out_of_order", overwriting)):
        for a, b in pairs:
            admissible = fault(ledger, field, a) is None and fault(ledger, field, b) is None
            if admissible and _differ(field, value(field, a), value(field, b)):
                yield _Finding(code, a["source"], (a["id"], b["id"]), (a["id"], b["id"]))


def _higher(o: Observation, head: Observation) -> bool:
    mine, newer = o.get("version"), head.get("version")
    return mine is not None and newer is not None and bool(mine > newer)


def _differ(field: Field, one: Scalar, other: Scalar) -> bool:
    """Beyond tolerance (rules, 1): the larger of the two, with slack for rounding. Text is equal or differs."""
    if isinstance(one, str | bool) or isinstance(other, str | bool):
        return one != other
    magnitude = max(abs(one), abs(other))
    tolerance = max(field.tolerance, field.rel_tolerance * magnitude)
    rounding = 1e-9 * max(1.0, magnitude)
    if tolerance > 0:  # nor may rounding hide what a small tolerance tells apart (docs/decisions.md)
        rounding = min(rounding, 1e-3 * tolerance)
    return abs(one - other) > tolerance + rounding


def _recalled(ledger: Ledger, field: Field) -> bool:
    """Whether a memory supports `field`: it passes every check, is newer than all live evidence, and none disagrees."""
    events = (o["event_time_ms"] for o in ledger.told(field) if o["source"] in field.sources)
    newest = max(events, default=-math.inf)
    memories = [o for o in ledger.told(field, live=False) if o["event_time_ms"] > newest]
    values = [value(field, o) for o in memories if fault(ledger, field, o) is None]
    return bool(values) and not any(_differ(field, a, b) for a, b in combinations(values, 2))


def _unsupported(ledger: Ledger, field: Field, failed: Sequence[_Finding]) -> tuple[_Finding, ...]:
    """What blocks a field that nothing supports: its heads' faults, outages, strangers, foreign names, or nothing."""
    out = [s for s in field.sources if s in ledger.out]
    told = ledger.told(field)
    heads = {f.source: f.observations for f in failed}  # what a source in outage last said is the outage's observation
    found = [f for f in failed if not (f.source in out and f.code in _OF_ITS_SOURCE)]
    for s in out:
        code = "outage" if ledger.out[s] else "final_outage"
        found.append(_Finding(code, s, heads.get(s, ()), (f"source:{s}", *heads.get(s, ()))))
    if not failed and not out:  # a stranger must not be able to turn a wait into an alarm
        found += [_Finding("unknown_source", o["source"], (o["id"],), (o["id"],)) for o in told]
    if not told:
        found += [
            _Finding("unknown_schema", field.sources[0], (), (i,))
            for i, o in ledger.held.items()
            if i in ledger.foreign and o["source"] in field.sources
        ]
    return tuple(found) or (_Finding("missing", field.sources[0], (), (f"missing:{field.name}",)),)
