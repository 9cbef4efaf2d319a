"""`wirelessops optbench audit`: the suite's own claims, checked again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from streams.commands.optbench_answering import FAILED, answering, check_output, put
from streams.commands.optbench_suites import SuiteOptions, suite_of

if TYPE_CHECKING:
    from simulators.optbench.model import Sealed


def audit(options: SuiteOptions) -> int:
    """Says what was checked, a line each, and what does not hold; exits 1 where something does not.

    Building a suite has both judges label all its candidates (a disagreement stops it); here each episode is judged
    anew. Then the hard negatives, the composition of a whole suite, and whether a label shows in a view or a prompt.
    """
    from simulators.optbench.mutations import PER_EPISODE, leaks
    from simulators.optbench.realisation import FAMILIES
    from simulators.optbench.suite_checks import WHOLE, composition_fault, label_fault

    with answering() as answer:
        check_output()
        cases = suite_of(options).cases
        sealed = [case.sealed for case in cases]
        faults = [(case.episode_id, fault) for case in cases if (fault := label_fault(case)) is not None]
        shown = leaks(cases)
        plain = [case.episode_id for case in cases if case.sealed.reference == "APPLY" and not _disturbed(case.sealed)]
        composed = composition_fault(cases) if len(cases) == WHOLE else "it is a part of one"
        counts = Counter(s.reference for s in sealed)
        told = (
            f"{len(cases)} episodes of {len({s.family for s in sealed})} of {len(FAMILIES)} families, "
            + ", ".join(f"{n} {action}" for action, n in sorted(counts.items())),
            f"composed as a whole suite: {'yes' if composed is None else composed}",
            f"labels that one of the two judges does not bear out: {len(faults)}",
            f"APPLY episodes in whose evidence nothing is irregular: {len(plain)}",
            f"label-only mutations: {PER_EPISODE * len(sealed)}, of which {len(shown)} show in a view or a prompt",
        )
        failing = [f"{one}: {fault}" for one, fault in faults]
        failing += [f"{one}: nothing is irregular" for one in plain] + shown
        put("\n".join((*told, *failing[:10], "")))
        if failing or (composed is not None and len(cases) == WHOLE):
            answer.code = FAILED
    return answer.code


def _disturbed(sealed: Sealed) -> bool:
    facts = sealed.facts
    return bool(facts.outages) or any(exposure.changes or exposure.memory for exposure in facts.exposures)
