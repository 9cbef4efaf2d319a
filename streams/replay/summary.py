"""What a replay found, as one document and as lines to read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from streams.replay.recorded import Tally
from xapp.model import ACTIONS, Decision

SHOWN: Final = 20
"""Unreadable places that the summary names; all are counted."""


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


def summary(form: str, files: list[str], tally: Tally, proposals: int, verdicts: Verdicts) -> dict[str, Any]:
    """The summary of a foreign recording."""
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
    }


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
    return [line.rstrip() for line in out]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
