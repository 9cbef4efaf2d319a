"""The ordered action governor (eq. 9; section 5): a table, first match wins.

Row 0 is ours: a proposal that is malformed, expired or denied is answered before its evidence is weighed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, NamedTuple

from xapp.evidence.ledger import Ledger
from xapp.integrity.fault import CLASSES, FINAL, RETRYABLE, Filing
from xapp.model import Retry, SourceState, Violation

_ESCALATED: Final = frozenset(
    {"ambiguous_schema", "ambiguous_unit", "conflict", "out_of_order", "unknown_source", "unresolved_provenance"}
)
_HELD: Final = frozenset(
    {"stale", "causally_stale", "future", "no_value", "out_of_range", "unknown_schema", "unknown_unit", "missing"}
)
_HELD_CONSTRAINTS: Final = frozenset({"gap", "not_sustained"})


@dataclass(frozen=True, slots=True)
class Findings:
    """What the governor decides on. `filings`: blocked critical observed field → what it is filed under.

    `blocking`: violations that block, those of `filings` excepted; `mixed`: the independent pair, where there is one;
    `asked`: what other controls ask for (section 7): HOLD, ESCALATE.
    """

    intended: bool
    record_complete: bool
    filings: Mapping[str, Filing] = field(default_factory=dict)
    blocking: tuple[Violation, ...] = ()
    mixed: tuple[str, str] | None = None
    codes: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()


def _unanswerable(f: Findings) -> bool:
    return bool(f.codes & {"malformed", "expired", "denied"})


def _ready(f: Findings) -> bool:
    return f.intended and f.record_complete and not f.filings and not f.blocking


def _ambiguous(f: Findings) -> bool:
    return (
        any(filing.code in _ESCALATED for filing in f.filings.values())
        or any(v.code in _ESCALATED for v in f.blocking)
        or f.mixed is not None
        or "ESCALATE" in f.asked
    )


def _no_final_outage(f: Findings) -> bool:
    return all(filing.group != FINAL for filing in f.filings.values())


def _retryable(f: Findings) -> bool:
    return any(filing.group == RETRYABLE for filing in f.filings.values()) and _no_final_outage(f)


def _not_yet_current(f: Findings) -> bool:
    held = any(filing.code in _HELD for filing in f.filings.values())
    return ((held or bool(f.codes & _HELD_CONSTRAINTS)) and _no_final_outage(f)) or "HOLD" in f.asked


class Rule(NamedTuple):
    """One row: the action where `applies`, and its name."""

    action: str
    name: str
    applies: Callable[[Findings], bool]


POLICY: Final[tuple[Rule, ...]] = (
    Rule("ABSTAIN", "malformed, expired or denied", _unanswerable),
    Rule("APPLY", "ready", _ready),
    Rule("ESCALATE", "ambiguity, disagreement, independent mixed risks, or a lease to be settled", _ambiguous),
    Rule("RETRY", "a required source can be asked again", _retryable),
    Rule("HOLD", "required state is not yet current, or another control holds the key", _not_yet_current),
    Rule("ABSTAIN", "no supported action", lambda _: True),
)


def govern(findings: Findings) -> Rule:
    """The first row of the policy that applies; the last one always does."""
    return next(rule for rule in POLICY if rule.applies(findings))


def independent_risks(filings: Mapping[str, Filing], ledger: Ledger) -> tuple[str, str] | None:
    """Two blocked fields filed under different classes and sources, whose observations share no ancestor (row 2)."""
    lineages = {name: _lineage(filing, ledger) for name, filing in filings.items()}
    for (one, a), (other, b) in combinations(filings.items(), 2):
        if CLASSES[a.code] != CLASSES[b.code] and a.source != b.source and not lineages[one] & lineages[other]:
            return one, other
    return None


def _lineage(filing: Filing, ledger: Ledger) -> frozenset[str]:
    found = set(filing.observations)
    for observation_id in filing.observations:
        found.update(ancestor.id for ancestor in ledger.ancestors(ledger.arrived[observation_id]))
    return frozenset(found)


def retry_terms(filings: Mapping[str, Filing], sources: Mapping[str, SourceState]) -> Retry:
    """The longest back-off among the filed retryable outages, then the smaller name (row 3)."""
    asked = {filing.source for filing in filings.values() if filing.group == RETRYABLE}
    name = min(asked, key=lambda s: (-(sources[s].retry_after_ms or 0), s))
    return Retry(name, sources[name].retry_after_ms or 0, sources[name].retries_left)
