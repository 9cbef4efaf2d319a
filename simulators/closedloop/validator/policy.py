"""The clean policy of a regime, computed a second time by backward induction: no episode is run."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.validator.design import CHANNELS, CREDITS, STEPS
from simulators.closedloop.validator.reading import Floats

CAPS: Final = (0, 1, 2, 3, 5, 7, 9, 12)
VALUES: Final = np.array([0.5, 0.75, 1.0, 1.3, 1.6, 2.0])
LEVELS: Final = np.array([-1.5, -0.9, -0.3, 0.3, 0.9, 1.5])


@cache
def policy(regime: int) -> NDArray[np.int8]:
    """The action of each state, int8[24, 111, 6], of docs/study.md, "The loop"."""
    from scipy.special import gammaln, pdtrc, xlogy

    loads = np.exp(0.35 * LEVELS)
    means = regime * loads / loads.mean()
    counts = np.arange(max(CAPS) + 1)
    exactly: Floats = np.exp(xlogy(counts[:, None], means) - gammaln(counts[:, None] + 1) - means).mean(axis=1)
    beyond: Floats = np.append(1.0, pdtrc(counts[:-1, None], means).mean(axis=1))  # at least so many
    unmet = regime - np.concatenate(([0.0], np.cumsum(beyond[1:])))
    worth = VALUES * (counts**0.6)[:, None]
    credits = np.arange(CREDITS)
    actions = np.empty((STEPS, CREDITS, CHANNELS), dtype=np.int8)
    best = np.zeros((CREDITS, CHANNELS))
    for step in reversed(range(STEPS)):
        onward = 0.5 * best + 0.5 * best.mean(axis=1, keepdims=True)
        values = np.empty((len(CAPS), CREDITS, CHANNELS))
        for action, cap in enumerate(CAPS):
            limit = np.minimum(cap, credits)
            value = -0.10 * (unmet[limit] + cap)[:, None] * np.ones(CHANNELS)
            for served in range(cap + 1):
                chance = np.where(served < limit, exactly[served], np.where(served == limit, beyond[served], 0.0))
                value += chance[:, None] * (worth[served] + onward[np.maximum(credits - served, 0)])
            values[action] = value.round(9)
        actions[step] = values.argmax(axis=0)
        best = values.max(axis=0)
    return actions


def digest(table: NDArray[np.int8]) -> str:
    """`sha256:` and the hash of a policy's bytes."""
    return "sha256:" + hashlib.sha256(table.tobytes()).hexdigest()
