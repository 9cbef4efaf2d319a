"""Evidence sufficiency: the evidence alone gives every label, to a rule engine that shares no code with the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simulators.optbench.audit.isolation import imported
from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.certificate import certify

ENGINE: Final = "simulators.optbench.certificate"
"""The certificate checker, written from the rules."""

_MAY_NOT_SHARE: Final = ("simulators.optbench.oracle", "simulators.optbench.realisation", "xapp")
_EPOCH_MS: Final = 1_700_000_000_000


def evidence_sufficiency(subject: Subject) -> Check:
    """The checker's action for what is evidence in a view, and nothing else, is the reference of every episode.

    It is shown contract, sources and observations under one name and at one time for all (`neutral`); no question. That
    it is independent is checked too: it imports nothing of the oracle, of the families, or of the engine.
    """
    failures = [
        f"{ENGINE} is no independent engine: it imports {module}"
        for module in sorted(imported([ENGINE]))
        if module.startswith(_MAY_NOT_SHARE)
    ]
    shared = len(failures)
    for case in subject.cases:
        try:
            found = certify(neutral(case.view)).action
        except (ValueError, LookupError, TypeError) as error:
            failures.append(f"{case.episode_id}: its evidence is judged by no rule: {error}")
            continue
        if found != case.sealed.reference:
            failures.append(f"{case.episode_id}: its evidence says {found}, its label is {case.sealed.reference}")
    wrong = len(failures) - shared
    return Check(
        "evidence-sufficiency",
        f"evidence sufficiency: {len(subject.cases) - wrong} of {len(subject.cases)} references follow from the "
        "evidence alone, by the certificate checker",
        {"episodes": len(subject.cases), "reproduced": len(subject.cases) - wrong, "shared_modules": shared},
        tuple(failures),
    )


def neutral(view: Mapping[str, Any]) -> dict[str, Any]:
    """What is evidence in a view: one name and one time for all, each source's versions from 0, no task."""
    episode = view["episode"]
    earlier = episode["decided_at_ms"] - _EPOCH_MS
    first: dict[str, int] = {}
    for told in episode["observations"]:
        first[told["source"]] = min(first.get(told["source"], told["version"]), told["version"])
    observations = [
        {
            **told,
            "event_time_ms": told["event_time_ms"] - earlier,
            "ingest_time_ms": told["ingest_time_ms"] - earlier,
            "version": told["version"] - first[told["source"]],
        }
        for told in episode["observations"]
    ]
    return {
        "episode": {
            "decided_at_ms": _EPOCH_MS,
            "contract": episode["contract"],
            "sources": episode["sources"],
            "observations": observations,
        }
    }
