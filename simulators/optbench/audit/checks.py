"""The audit: every check, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from simulators.optbench.audit.claims import composition, hard_negatives, labels
from simulators.optbench.audit.evidence import evidence_mutations
from simulators.optbench.audit.isolation import imports, objects, runtime
from simulators.optbench.audit.labels import label_mutations
from simulators.optbench.audit.shortcuts import shortcuts
from simulators.optbench.audit.strip import strip_equality
from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.audit.sufficiency import evidence_sufficiency

CHECKS: Final[Mapping[str, Callable[[Subject], Check]]] = {
    "composition": composition,
    "labels": labels,
    "hard-negatives": hard_negatives,
    "label-mutations": label_mutations,
    "evidence-mutations": evidence_mutations,
    "strip-equality": strip_equality,
    "shortcuts": shortcuts,
    "evidence-sufficiency": evidence_sufficiency,
    "isolation-imports": imports,
    "isolation-objects": objects,
    "isolation-runtime": runtime,
}
"""Name → the check. Each fails on its own, and none is a part of another."""


def audited(subject: Subject) -> Iterator[Check]:
    """What each check says of a suite, one by one as it is done."""
    return (check(subject) for check in CHECKS.values())
