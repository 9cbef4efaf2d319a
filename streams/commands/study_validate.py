"""`wirelessops study validate`: the 56 checks of the saved rows, by code that shares none with the runner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streams.commands.answering import FAILED, NotRun, answering, check_output, put
from streams.commands.printing import printable

if TYPE_CHECKING:
    from simulators.closedloop.validator.checks import Outcome

_SHOWN: Final = 3
"""Faults of a check that are told; of the others their number is."""


def validate(folder: Path) -> int:
    """Tells how many checks of each group pass, and of one that fails what is wrong, with file and row.

    Exit codes: 0 and EXECUTED where all pass; 1 where some fail; 2 with the reason where the folder holds no finished
    study.
    """
    from simulators.closedloop.validator.checks import validate as check
    from simulators.closedloop.validator.reading import Unreadable, load

    with answering() as answer:
        check_output()
        try:
            saved = load(folder)
        except Unreadable as error:
            raise NotRun(printable(f"{folder}: no finished study: {error}")) from None
        outcomes = check(saved)
        failing = [outcome for outcome in outcomes if outcome.faults]
        put("".join(f"{line}\n" for line in (*_counts(outcomes), *_faults(failing))))
        if failing:
            answer.code = FAILED
        else:
            put("EXECUTED\n")
    return answer.code


def _counts(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for group in dict.fromkeys(outcome.check.group for outcome in outcomes):
        of_group = [not outcome.faults for outcome in outcomes if outcome.check.group == group]
        yield f"{group}: {sum(of_group)} of {len(of_group)}"


def _faults(failing: Sequence[Outcome]) -> Iterator[str]:
    for outcome in failing:
        for fault in outcome.faults[:_SHOWN]:
            yield printable(f"{outcome.check.full_name}: {fault}")
        if (more := len(outcome.faults) - _SHOWN) > 0:
            yield f"{outcome.check.full_name}: and {more} more"
