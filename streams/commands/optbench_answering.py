"""What commands of `wirelessops optbench` tell on standard error of their rows, and of a run that was stopped."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from simulators.optbench.agents import Bundle
from streams.commands.answering import FAILED, Answer

RESUMABLE: Final = "a run with --results can be resumed"
RESUMED: Final = "the same command goes on from here"


def tell_failed(answer: Answer, row: str, failed: Mapping[str, str]) -> None:
    """Says of a row on how many episodes its calls failed for good, where any did; there is exit code 1 for it."""
    if failed:
        why = next(iter(failed.values()))
        sys.stderr.write(f"{row}: calls failed on {len(failed)} episodes; the first: {why}\n")
        answer.code = FAILED


def tell_invalid(row: str, bundles: Sequence[Bundle], told: frozenset[str]) -> None:
    """Says of a row how many outputs are invalid, besides those of the episodes `told`, where any are, and why one is.

    They are no fault of the run: they count.
    """
    reasons = [bundle.invalid for bundle in bundles if bundle.invalid is not None and bundle.episode_id not in told]
    if reasons:
        outputs = "1 invalid output" if len(reasons) == 1 else f"{len(reasons)} invalid outputs"
        sys.stderr.write(f"{row}: {outputs}; the first: {reasons[0]}\n")
