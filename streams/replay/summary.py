"""What a replay found, as one document and as lines to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streams.replay.recorded import Tally
from xapp.governor import SUPPORT
from xapp.model import ACTIONS, Decision
from xapp.support.rule import SEVERITY, State

SHOWN: Final = 20
"""Unreadable places that the summary names; all are counted."""
SHORT: Final = 10
"""Fields and components that the summary names as short of support."""
_SHORT_IN: Final[Mapping[State, str]] = {
    "REFERENCE_ABSTAIN": "the reference map has too few visits here",
    "RUNTIME_ABSTAIN": "the current window has too few visits here",
}


@dataclass(slots=True)
class Gating:
    """Counts over decisions that a support gate was asked about. `vetoed`: what would be APPLY but for it."""

    states: Counter[str] = field(default_factory=Counter)
    applies: int = 0
    vetoed: int = 0
    short: Counter[str] = field(default_factory=Counter)
    because: Counter[str] = field(default_factory=Counter)

    def count(self, decision: Decision) -> None:
        """Add one decision, if a gate was asked."""
        support = decision.support
        if support is None:
            return
        self.states[support.state] += 1
        self.applies += decision.action == "APPLY"
        if {v.code for v in decision.violations if v.blocking} != {SUPPORT}:
            return
        self.vetoed += 1
        self.because[_SHORT_IN[support.state] if support.short else support.because] += 1
        self.short.update(list(dict.fromkeys(f"{one.field} in {one.component.text}" for one in support.short)))

    def document(self) -> dict[str, Any]:
        """The counts, by name; of what was short and why that which is said most often."""
        return {
            "states": {state: self.states[state] for state in SEVERITY if self.states[state]},
            "would_apply": self.applies + self.vetoed,
            "vetoed": self.vetoed,
            "because": dict(self.because.most_common(SHORT)),
            "short": dict(self.short.most_common(SHORT)),
        }


@dataclass(slots=True)
class Verdicts:
    """Counts over decisions. A violation counts once per decision that lists it, as often as it stands there."""

    actions: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(ACTIONS, 0)))
    blocking: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)

    def count(self, decision: Decision) -> None:
        """Add one decision."""
        self.actions[decision.action] += 1
        for violation in decision.violations:
            kind = self.blocking if violation.blocking else self.resolved if violation.resolved else self.other
            kind[violation.code] += 1
        for repair in decision.repairs:
            self.repairs[repair.operator] += 1

    def document(self) -> dict[str, Any]:
        """The counts, by name."""
        codes = sorted({*self.blocking, *self.resolved, *self.other})
        return {
            "actions": {action: self.actions[action] for action in ACTIONS},
            "violations": {
                code: {"blocking": self.blocking[code], "resolved": self.resolved[code], "other": self.other[code]}
                for code in codes
            },
            "repairs": dict(sorted(self.repairs.items())),
        }


def summary(
    form: str, files: list[str], tally: Tally, proposals: int, verdicts: Verdicts, gating: Gating | None = None
) -> dict[str, Any]:
    """The summary of a foreign recording. `gating`: of the support gate, where there was one."""
    return {
        "format": form,
        "files": files,
        "rows": tally.rows,
        "reports": tally.reports,
        "observations": tally.observations,
        "unreadable": {
            "count": len(tally.unreadable),
            "first": [{"file": u.file, "line": u.line, "reason": u.reason} for u in tally.unreadable[:SHOWN]],
        },
        "recording": dict(sorted(tally.findings.items())),
        "proposals": proposals,
        **verdicts.document(),
        **gated(gating),
    }


def gated(gating: Gating | None) -> dict[str, Any]:
    """What a summary says of the support gate; nothing without one."""
    return {} if gating is None else {SUPPORT: gating.document()}


def lines(document: dict[str, Any]) -> list[str]:
    """A summary as lines to read."""
    out = [f"format        {document['format']}: {', '.join(document['files'])}"]
    if "rows" in document:
        counts = f"{document['rows']} rows → {document['reports']} reports, {document['observations']} observations"
        out.append(f"read          {counts}")
    unreadable = document["unreadable"]
    out.append(f"unreadable    {unreadable['count']}")
    out += [f"              {u['file']}: line {u['line']}: {u['reason']}" for u in unreadable["first"]]
    if unreadable["count"] > len(unreadable["first"]):
        out.append(f"              … and {unreadable['count'] - len(unreadable['first'])} more")
    if "recording" in document:
        out.append("recording     " + _counts(document["recording"]))
    if "live" in document:
        out.append("live          " + _counts(document["live"]))
        out += [f"              differs: {place}" for place in document["differing"]]
    out.append(f"proposals     {document['proposals']}")
    out.append("actions       " + _counts(document["actions"]))
    out.append("violations    " + ("none" if not document["violations"] else ""))
    for code, kinds in document["violations"].items():
        out.append(f"  {code:<24} " + "  ".join(f"{kind} {count:>6}" for kind, count in kinds.items()))
    out.append("repairs       " + _counts(document["repairs"]))
    if SUPPORT in document:
        out += _support_lines(document[SUPPORT])
    return [line.rstrip() for line in out]


def _support_lines(support: dict[str, Any]) -> list[str]:
    out = ["support       " + _counts(support["states"])]
    out.append(f"              vetoed {support['vetoed']} of {support['would_apply']} that would be APPLY")
    for title in ("because", "short"):
        out += [f"  {title:<10} {count:>7}  {what}" for what, count in support[title].items()]
    return out


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
