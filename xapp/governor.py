"""The ordered action governor (eq. 9; section 5): a table, first match wins.

Three rows are ours: a proposal that is malformed, expired or denied is answered before its evidence is weighed; what
would be APPLY is held while an operator's switch is in force (docs/control-path.md, "The switch"), and abstained from
where the network has not been often enough (docs/support-gate.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, NamedTuple

from xapp.evidence.ledger import Ledger
from xapp.integrity.fault import CLASSES, FINAL, RETRYABLE, Filing
from xapp.model import Retry, SourceState, Switch, Violation
from xapp.support.carried import SupportVerdict
from xapp.times import utc

_ESCALATED: Final = frozenset(
    {"ambiguous_schema", "ambiguous_unit", "conflict", "out_of_order", "unknown_source", "unresolved_provenance"}
)
_HELD: Final = frozenset(
    {"stale", "causally_stale", "future", "no_value", "out_of_range", "unknown_schema", "unknown_unit", "missing"}
)
_HELD_CONSTRAINTS: Final = frozenset({"gap", "not_sustained"})


KILL_SWITCH: Final = "kill_switch"
SHADOW: Final = "shadow"
SUPPORT: Final = "support"
_UNANSWERABLE: Final = frozenset({"malformed", "expired", "denied"})
_BY_CONTROLS: Final = frozenset({"lease_conflict", "budget"})


@dataclass(frozen=True, slots=True)
class Findings:
    """What the governor decides on. `filings`: blocked critical observed field → what it is filed under.

    `blocking`: violations that block, those of `filings` excepted; `mixed`: the independent pair, where there is one;
    `asked`: what other controls ask for (section 7): HOLD, ESCALATE; `switch`: an operator's, in force;
    `support`: the verdict of the support gate, None where there is none.
    """

    intended: bool
    record_complete: bool
    filings: Mapping[str, Filing] = field(default_factory=dict)
    blocking: tuple[Violation, ...] = ()
    mixed: tuple[str, str] | None = None
    asked: frozenset[str] = frozenset()
    switch: Switch | None = None
    support: SupportVerdict | None = None


# Grounds on which a row applies, in words, and what is in its way where it does not. A row applies where it has one.


def _unanswerable(f: Findings) -> Iterator[str]:
    return (v.told for v in f.blocking if v.code in _UNANSWERABLE)


def _obstacles(f: Findings) -> Iterator[str]:
    if not f.intended:
        yield "the proposer itself does not ask for APPLY"
    if not f.record_complete:
        yield "the record is incomplete"
    yield from (_filed(name, filing) for name, filing in f.filings.items())
    yield from (v.told for v in f.blocking)


def _ready(f: Findings) -> Iterator[str]:
    if not any(_obstacles(f)):
        yield "every field that the action rests on is supported, and every constraint holds"


def _switched(f: Findings) -> Iterator[str]:
    if f.switch is not None and any(_ready(f)):
        yield switched(f.switch).told


def _not_switched(f: Findings) -> str:
    if f.switch is None:
        return "no switch is in force"
    return f"the switch in force ({f.switch.mode}) holds back only what would be APPLY"


def _unsupported(f: Findings) -> Iterator[str]:
    if f.support is not None and not f.support.permits and any(_ready(f)):
        yield unsupported(f.support).told


def _not_unsupported(f: Findings) -> str:
    if f.support is None:
        return "no support gate is set for this contract"
    if f.support.permits:
        return f"{f.support.state}: {f.support.because}"
    return f"{f.support.state}: it abstains only from what would be APPLY"


def _ambiguous(f: Findings) -> Iterator[str]:
    yield from (_filed(name, filing) for name, filing in f.filings.items() if filing.code in _ESCALATED)
    yield from (v.told for v in f.blocking if v.code in _ESCALATED)
    if f.mixed is not None:
        yield f"{f.mixed[0]} and {f.mixed[1]} fail independently"
    if "ESCALATE" in f.asked:
        yield _asked(f)


def _retryable(f: Findings) -> Iterator[str]:
    if not any(_final_outages(f)):
        yield from (_filed(name, filing) for name, filing in f.filings.items() if filing.group == RETRYABLE)


def _not_retryable(f: Findings) -> str:
    return "; ".join(_final_outages(f)) or "no required source is in an outage that may end in time"


def _not_yet_current(f: Findings) -> Iterator[str]:
    if not any(_final_outages(f)):
        yield from (_filed(name, filing) for name, filing in f.filings.items() if filing.code in _HELD)
        yield from (v.told for v in f.blocking if v.code in _HELD_CONSTRAINTS)
    if "HOLD" in f.asked:
        yield _asked(f)


def _not_held(f: Findings) -> str:
    return "; ".join(_final_outages(f)) or "nothing that time or newer evidence alone could mend"


def _final_outages(f: Findings) -> Iterator[str]:
    return (f"{_filed(name, filing)} is final" for name, filing in f.filings.items() if filing.group == FINAL)


def _filed(name: str, filing: Filing) -> str:
    return f"{filing.code} of {name} ({filing.source})"


def _asked(f: Findings) -> str:
    return "; ".join(v.told for v in f.blocking if v.code in _BY_CONTROLS) or "another control asks for it"


def switched(switch: Switch) -> Violation:
    """What an operator's switch files against a decision that would be APPLY."""
    code = KILL_SWITCH if switch.mode == "hold" else SHADOW
    said = f"set by {switch.operator} at {utc(switch.at_ms)}: {switch.reason}"
    return Violation(code, None, None, (), False, True, said)


def unsupported(verdict: SupportVerdict) -> Violation:
    """What the support gate files against a decision that would be APPLY."""
    return Violation(SUPPORT, None, None, (), False, True, verdict.because)


class Rule(NamedTuple):
    """One row: its action and name. `grounds`: why it applies, in words, none where it does not; `hindrance`: why not,
    asked only where it does not apply.
    """

    action: str
    name: str
    grounds: Callable[[Findings], Iterator[str]]
    hindrance: Callable[[Findings], str]


UNANSWERABLE: Final = Rule(
    "ABSTAIN",
    "malformed, expired or denied",
    _unanswerable,
    lambda _: "it can be read, its deadline has not passed, and nobody denied it",
)
SWITCHED: Final = Rule("HOLD", "ready, but an operator's switch is in force", _switched, _not_switched)
UNSUPPORTED: Final = Rule("ABSTAIN", "ready, but without support", _unsupported, _not_unsupported)
POLICY: Final[tuple[Rule, ...]] = (
    UNANSWERABLE,
    SWITCHED,
    UNSUPPORTED,
    Rule("APPLY", "ready", _ready, lambda f: "; ".join(_obstacles(f))),
    Rule(
        "ESCALATE",
        "ambiguity, disagreement, independent mixed risks, or a lease to be settled",
        _ambiguous,
        lambda _: "nothing is ambiguous, in dispute or without provenance",
    ),
    Rule("RETRY", "a required source can be asked again", _retryable, _not_retryable),
    Rule("HOLD", "required state is not yet current, or another control holds the key", _not_yet_current, _not_held),
    Rule("ABSTAIN", "no supported action", lambda _: iter(("it is what remains",)), lambda _: ""),
)


def govern(findings: Findings) -> Rule:
    """The first row of the policy that applies; the last one always does."""
    return next(rule for rule in POLICY if any(rule.grounds(findings)))


class Considered(NamedTuple):
    """One row of the policy, held against one set of findings. `because`: what made it apply, or not, in words."""

    action: str
    name: str
    applies: bool
    because: str


def considered(findings: Findings) -> tuple[Considered, ...]:
    """Every row of the policy in order: the first that applies is the one that `govern` takes."""
    rows = []
    for rule in POLICY:
        grounds = tuple(rule.grounds(findings))
        because = "; ".join(grounds) if grounds else rule.hindrance(findings)
        rows.append(Considered(rule.action, rule.name, bool(grounds), because))
    return tuple(rows)


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
