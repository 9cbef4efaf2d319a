"""The clean policy of a regime: exact backward induction, and the hash of its table. Source: section 3.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.loop import (
    ACTIONS,
    CAP_COST,
    CAPS,
    CREDIT,
    EXPONENT,
    HORIZON,
    LOADS,
    STATES,
    TRANSITION,
    UNMET_COST,
    VALUES,
    demand_law,
)
from xapp import address

DECIMALS = 9
"""Of an action value: differences below it come from the order of additions, and no action may hang on them."""


def fit(regime: float) -> NDArray[np.int8]:
    """The best action of each state under `action_values`: int8[STATES]; of equal ones the lowest.

    `regime`: mean demand, PRB per step, > 0. The load of an episode is latent: the policy plans as if a load were drawn
    anew at each step, so with the mixture of the six Poisson laws. It does not infer the load from what was served,
    and is optimal among policies of (step, credit, channel class) only for that mixture.
    """
    best: NDArray[np.int8] = action_values(regime).argmax(axis=-1).astype(np.int8)
    return best


def action_values(regime: float) -> NDArray[np.float64]:
    """Expected reward from each state to the end of the window after each action: float64[STATES, ACTIONS].

    Each is rounded to DECIMALS, and the step before builds on the rounded ones. The demand law is not truncated: demand
    at or above what can be served counts by P(demand ≥ that) and by the expected unmet demand.
    """
    law = np.mean([demand_law(regime * load, max(CAPS)) for load in LOADS], axis=0)
    at_least = 1 - np.concatenate(([0.0], np.cumsum(law)))  # P(demand ≥ k), k = 0…max(CAPS)
    unmet = regime * float(np.mean(LOADS)) - np.concatenate(([0.0], np.cumsum(at_least[1:])))  # by what can be served
    worth = np.outer(np.arange(max(CAPS) + 1) ** EXPONENT, VALUES)
    transition = np.array(TRANSITION)
    found = np.empty((*STATES, ACTIONS))
    best = np.zeros((CREDIT + 1, len(VALUES)))
    for step in reversed(range(HORIZON)):
        onward = (best[:, None, :] * transition).sum(axis=-1)
        for credit in range(CREDIT + 1):
            for action, cap in enumerate(CAPS):
                limit = min(cap, credit)
                chances = np.append(law[:limit], at_least[limit])
                gain = worth[: limit + 1] + onward[credit - limit : credit + 1][::-1]
                value = (chances[:, None] * gain).sum(axis=0) - UNMET_COST * unmet[limit] - CAP_COST * cap
                found[step, credit, :, action] = value.round(DECIMALS)
        best = found[step].max(axis=-1)
    return found


def digest(policy: NDArray[np.int8]) -> str:
    """`sha256:` and the hash of the table's bytes in C order."""
    return address.digest(np.ascontiguousarray(policy, dtype=np.int8).tobytes())
