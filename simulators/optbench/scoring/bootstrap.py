"""Confidence intervals: the percentiles of bootstrap means, stratified by task (paper, section V-B)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulators.optbench.model import TASKS
from simulators.optbench.scoring.metrics import Floats, Metric
from simulators.optbench.scoring.outcome import Outcome

DRAWS: Final = 10_000
PERCENTILES: Final = (2.5, 97.5)


class Interval(NamedTuple):
    """A metric, or a difference of two, over the episodes themselves, and its 95 % bootstrap interval.

    All NaN where the metric is undefined, over the episodes or in any draw of them.
    """

    mean: float
    low: float
    high: float


_UNDEFINED: Final = Interval(math.nan, math.nan, math.nan)


def interval(outcomes: Sequence[Outcome], metric: Metric, draws: int = DRAWS, seed: int = 0) -> Interval:
    """The interval of one method's metric: episodes resampled within each task, `draws` times."""
    if not outcomes:
        return _UNDEFINED
    return _interval(metric(outcomes), metric.combine(_resampled(_by_task(outcomes), metric, draws, seed)))


def paired_difference(
    a: Sequence[Outcome], b: Sequence[Outcome], metric: Metric, draws: int = DRAWS, seed: int = 0
) -> Interval:
    """The interval of metric(a) − metric(b): each draw takes the same episodes of both.

    Raises ValueError where `a` and `b` are not outcomes of the same episodes, each once.
    """
    others = {outcome.episode_id: outcome for outcome in b}
    ids = [outcome.episode_id for outcome in a]
    if not len(set(ids)) == len(ids) == len(b) == len(others) or set(ids) != set(others):
        raise ValueError("a paired difference needs outcomes of the same episodes, each once")
    if not a:
        return _UNDEFINED
    ours = _by_task(a)
    theirs = [[others[outcome.episode_id] for outcome in stratum] for stratum in ours]
    drawn = [metric.combine(_resampled(strata, metric, draws, seed)) for strata in (ours, theirs)]
    return _interval(metric(a) - metric(b), drawn[0] - drawn[1])


def _by_task(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    strata = ([outcome for outcome in outcomes if outcome.task == task] for task in TASKS)
    return [stratum for stratum in strata if stratum]


def _resampled(strata: Sequence[Sequence[Outcome]], metric: Metric, draws: int, seed: int) -> Floats:
    """The metric's sums over each draw; shape (draws, parts)."""
    sums = [
        _counts(len(stratum), draws, seed, position).astype(np.float64) @ np.array([*map(metric.parts, stratum)])
        for position, stratum in enumerate(strata)
    ]
    return np.asarray(np.sum(sums, axis=0))


@lru_cache(maxsize=8)  # 4 MB for 200 episodes: drawn once for all metrics and methods of a suite
def _counts(size: int, draws: int, seed: int, position: int) -> NDArray[np.uint16]:
    """How often each of `size` episodes is in each draw; shape (draws, size), each row summing to `size`."""
    random = np.random.default_rng([seed, position])
    counts = random.multinomial(size, np.full(size, 1.0 / size), size=draws).astype(np.uint16)
    counts.flags.writeable = False
    return counts


def _interval(mean: float, drawn: Floats) -> Interval:
    if math.isnan(mean) or bool(np.isnan(drawn).any()):
        return _UNDEFINED
    low, high = np.percentile(drawn, PERCENTILES)
    return Interval(mean, float(low), float(high))
