"""`wirelessops optbench audit`: the suite's own claims, checked again, and whether more than evidence tells of them."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from streams.commands.answering import FAILED, NotRun, answering, check_output, put
from streams.commands.optbench_suites import SuiteOptions, suite_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulators.optbench.audit.subject import Check, Subject
    from simulators.optbench.suite import Suite

FORMAT: Final = "wirelessops.optbench-audit/1"
_SHOWN: Final = 5
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class SeededLeak:
    """A leak to plant before the audit: its kind, in which share of the items, and under one family alone if named.

    None: not said.
    """

    kind: str | None = None
    share: float | None = None
    family: str | None = None


def audit(options: SuiteOptions, as_json: bool = False, leak: SeededLeak = SeededLeak()) -> int:
    """Says what each check did, a line each, and then what fails; or all of it as one document. Exits 1 where one does.

    Building a suite has both judges label all its candidates (a disagreement stops it); here each episode is judged
    anew, and audited for leaks (`simulators.optbench.audit`). Exit 2, in a line, for a suite or a leak that is none.
    """
    from simulators.optbench.audit.checks import audited
    from simulators.optbench.audit.subject import Subject

    with answering() as answer:
        check_output()
        check_leak(leak)
        suite = suite_of(options)
        subject = with_leak(Subject(suite.cases, suite.manifest["seed"]), leak)
        gc.freeze()  # a suite is many objects, and stays: the collector need not walk it each time
        try:
            checks = tuple(audited(subject))
        except (LookupError, TypeError, ValueError) as error:
            if options.directory is None:
                raise
            told = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
            raise NotRun(f"{options.directory}: an episode is not as this version makes them: {told}") from error
        finally:
            gc.unfreeze()
        put(_document(suite, leak, checks) if as_json else _lines(checks))
        if not all(check.passed for check in checks):
            answer.code = FAILED
    return answer.code


def check_leak(leak: SeededLeak) -> None:
    """Raises NotRun for a leak that cannot be planted, before minutes of work."""
    from simulators.optbench.audit.leaks import LEAKS
    from simulators.optbench.realisation import FAMILIES

    if leak.kind is None:
        if leak != SeededLeak():
            raise NotRun("--leak-share and --leak-family say how much of a leak is planted: --seed-leak says which")
        return
    if leak.kind not in LEAKS:
        raise NotRun(f"no leak {leak.kind!r}: {', '.join(LEAKS)}")
    if leak.share is not None and not 0 < leak.share <= 1:
        raise NotRun(f"--leak-share is a share above 0, at most 1, and not {leak.share}")
    if leak.family is not None and leak.family not in (names := [family.name for family in FAMILIES]):
        raise NotRun(f"no family {leak.family!r}: {', '.join(names)}")


def with_leak(subject: Subject, leak: SeededLeak) -> Subject:
    """The subject, with a leak planted if one is asked for."""
    from simulators.optbench.audit.leaks import seeded

    if leak.kind is None:
        return subject
    return seeded(subject, leak.kind, 1.0 if leak.share is None else leak.share, leak.family)


def _lines(checks: Sequence[Check]) -> str:
    told = [check.told for check in checks]
    failing = [check for check in checks if not check.passed]
    for check in failing:
        told += [f"{check.name} fails: {failure}" for failure in check.failures[:_SHOWN]]
        if len(check.failures) > _SHOWN:
            told.append(f"{check.name} fails: and {len(check.failures) - _SHOWN} more")
    told.append(f"{len(checks) - len(failing)} of {len(checks)} checks pass")
    return "\n".join((*told, ""))


def _document(suite: Suite, leak: SeededLeak, checks: Sequence[Check]) -> bytes:
    document = {
        "format": FORMAT,
        "suite": suite.digest,
        "split": suite.manifest["split"],
        "seed": suite.manifest["seed"],
        "seeded_leak": None if leak.kind is None else leak,
        "checks": [
            {
                "name": check.name, "passed": check.passed, "told": check.told, "counts": check.counts,
                "failures": check.failures,
            }
            for check in checks
        ],
        "passed": all(check.passed for check in checks),
    }  # fmt: skip
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
