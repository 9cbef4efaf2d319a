"""`wirelessops optbench audit`: the suite's own claims, checked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streams.commands.optbench_answering import FAILED, answering, check_output, put
from streams.commands.optbench_suites import SuiteOptions, suite_of

if TYPE_CHECKING:
    from simulators.optbench.model import Case, Sealed


def audit(options: SuiteOptions) -> int:
    """Says what was checked, a line each, and exits 1 where something does not hold.

    Building a suite has both judges label all its candidates (a disagreement stops it); a folder's episodes are judged
    anew. Then the composition, the hard negatives, and whether a label shows in a view or a prompt.
    """
    from simulators.optbench.mutations import PER_EPISODE, leaks
    from simulators.optbench.realisation import FAMILIES

    with answering() as answer:
        check_output()
        suite = suite_of(options)
        sealed = [case.sealed for case in suite.cases]
        judged, disagreements = _judged(suite.cases)
        shown = leaks(suite.cases)
        plain = [s.family for s in sealed if s.reference == "APPLY" and not _disturbed(s)]
        counts = Counter(s.reference for s in sealed)
        told = (
            f"{judged} episodes of {len({s.family for s in sealed})} of {len(FAMILIES)} families, "
            + ", ".join(f"{n} {action}" for action, n in sorted(counts.items())),
            f"two judges, without a line of code in common: {disagreements} disagreements",
            f"APPLY episodes in whose evidence nothing is irregular: {len(plain)}",
            f"label-only mutations: {PER_EPISODE * len(sealed)}, of which {len(shown)} show in a view or a prompt",
        )
        put("\n".join((*told, *shown[:10], "")))
        if disagreements or plain or shown:
            answer.code = FAILED
    return answer.code


def _judged(cases: Sequence[Case]) -> tuple[int, int]:
    """How many episodes were judged anew, and on how many the judges, or the label, differ."""
    from simulators.optbench.certificate import certify
    from simulators.optbench.oracle import judge

    differing = 0
    for case in cases:
        by_facts, by_view = judge(case.sealed.item, case.sealed.facts), certify(case.view)
        label = (case.sealed.reference, case.sealed.blocked)
        differing += not (label == (by_facts.action, by_facts.blocked) == (by_view.action, by_view.blocked))
    return len(cases), differing


def _disturbed(sealed: Sealed) -> bool:
    facts = sealed.facts
    return bool(facts.outages) or any(exposure.changes or exposure.memory for exposure in facts.exposures)
