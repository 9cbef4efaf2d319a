"""What a suite claims of itself: labels that two judges bear out, hard negatives, and the published composition."""

from __future__ import annotations

from collections import Counter

from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.model import Sealed
from simulators.optbench.realisation import FAMILIES
from simulators.optbench.suite_checks import WHOLE, composition_fault, label_fault


def labels(subject: Subject) -> Check:
    """Each episode judged anew, by its facts and by its view. Building a suite did so for all its candidates."""
    faults = [f"{case.episode_id}: {fault}" for case in subject.cases if (fault := label_fault(case)) is not None]
    return Check(
        "labels",
        f"labels that one of the two judges does not bear out: {len(faults)} of {len(subject.cases)}",
        {"episodes": len(subject.cases), "not_borne_out": len(faults)},
        tuple(faults),
    )


def hard_negatives(subject: Subject) -> Check:
    """Section III-C: something is irregular in the evidence of every APPLY episode."""
    applied = [case for case in subject.cases if case.sealed.reference == "APPLY"]
    plain = [f"{case.episode_id}: nothing is irregular" for case in applied if not _disturbed(case.sealed)]
    return Check(
        "hard-negatives",
        f"APPLY episodes in whose evidence nothing is irregular: {len(plain)} of {len(applied)}",
        {"apply_episodes": len(applied), "plain": len(plain)},
        tuple(plain),
    )


def composition(subject: Subject) -> Check:
    """The quotas of a whole suite; of a part of one it says what is there."""
    sealed = [case.sealed for case in subject.cases]
    families = len({one.family for one in sealed})
    actions = Counter(one.reference for one in sealed)
    counted = ", ".join(f"{count} {action}" for action, count in sorted(actions.items()))
    fault = composition_fault(subject.cases) if len(sealed) == WHOLE else None
    stands = "" if len(sealed) == WHOLE else "; a part of a suite, whose composition is not judged"
    return Check(
        "composition",
        f"{len(sealed)} episodes of {families} of {len(FAMILIES)} families, {counted}{stands}",
        {"episodes": len(sealed), "families": families, **{action: actions[action] for action in sorted(actions)}},
        () if fault is None else (fault,),
    )


def _disturbed(sealed: Sealed) -> bool:
    facts = sealed.facts
    return bool(facts.outages) or any(exposure.changes or exposure.memory for exposure in facts.exposures)
