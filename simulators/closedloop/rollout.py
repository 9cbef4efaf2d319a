"""Episodes of the loop under policies, counted: aggregate traces, occupancy, and the features of the drift alarm.

Policies meet common random numbers: the same channels and demands. Everything here is integer counting over episodes
(the means of `Aggregates` divide such counts), so neither how policies are cut into calls nor threads can change a bit.

Source: section 3.1 (aggregate traces: visits and a histogram of actions, never the policy, the steps or a fault).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.draws import Exogenous, Uniforms, exogenous
from simulators.closedloop.loop import (
    ACTIONS,
    CAPS,
    CHANNELS,
    COMPONENTS,
    CREDIT,
    EPISODES,
    HORIZON,
    QUARTERS,
    STATES,
    component_table,
)

Counts = NDArray[np.int64]
Policies = NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class Aggregates:
    """What the drift alarm sees of each partition. Shares are of all its steps; at credit 0 a step has no component."""

    visits: NDArray[np.float64]
    """Share of the steps in each component: float64[partitions, COMPONENTS]; the rest had no credit."""
    actions: NDArray[np.float64]
    """Share of the steps with each action: float64[partitions, ACTIONS]."""
    credit: NDArray[np.float64]
    """Mean credit in PRB at the end of each quarter of the window: float64[partitions, QUARTERS]."""
    unmet: NDArray[np.float64]
    """Mean unmet demand in PRB per step: float64[partitions]."""

    def features(self) -> NDArray[np.float64]:
        """All of them side by side: float64[partitions, 37]."""
        return np.column_stack((self.visits, self.actions, self.credit, self.unmet))


def traces(policies: Policies, regime: float, drawn: Uniforms, partitions: int) -> Counts:
    """The histogram of chosen actions per policy, partition and component: int64[K, partitions, COMPONENTS, ACTIONS].

    Visits are its sum over actions. `policies`: int8[K, STATES]; `drawn`: float64[partitions · 160, DRAWS], the
    partitions in order. Raises ValueError for other shapes.
    """
    outside = _outside(regime, drawn, partitions)
    slot = (component_table().astype(np.int64) + 1).ravel() * ACTIONS  # the first of each partition: no component
    size = (COMPONENTS + 1) * ACTIONS
    start = _partition(partitions) * size
    found = np.empty((len(policies), partitions, COMPONENTS, ACTIONS), dtype=np.int64)
    for place, policy in enumerate(_checked(policies)):
        visited = _walk(policy, outside)
        keys = start + slot[visited] + policy.ravel()[visited]
        counts = np.bincount(keys.ravel(), minlength=partitions * size)
        found[place] = counts.reshape(partitions, COMPONENTS + 1, ACTIONS)[:, 1:]
    return found


def occupancy(policy: Policies, regime: float, drawn: Uniforms) -> Counts:
    """Visits of each state over all episodes: int64[STATES]; their sum is HORIZON · episodes.

    `policy`: int8[STATES]; `drawn`: float64[episodes, DRAWS]. Raises ValueError for other shapes.
    """
    (table,) = _checked(policy[None])
    visited = _walk(table, exogenous(regime, drawn))
    return np.bincount(visited.ravel(), minlength=table.size).reshape(STATES)


def aggregates(policy: Policies, regime: float, drawn: Uniforms, partitions: int) -> Aggregates:
    """The features of the drift alarm. Arguments and errors as for `traces`, with one policy: int8[STATES]."""
    outside = _outside(regime, drawn, partitions)
    (table,) = _checked(policy[None])
    visited = _walk(table, outside)
    credit = visited // CHANNELS % (CREDIT + 1)
    action = table.ravel()[visited]
    served = np.minimum(np.minimum(outside.demand, np.array(CAPS)[action]), credit)
    left = credit - served
    steps = EPISODES * HORIZON

    def per_partition(values: Counts) -> Counts:
        sums: Counts = values.reshape(partitions, EPISODES).sum(axis=1)
        return sums

    return Aggregates(
        visits=traces(policy[None], regime, drawn, partitions)[0].sum(axis=2) / steps,
        actions=np.column_stack([per_partition((action == number).sum(axis=0)) for number in range(ACTIONS)]) / steps,
        credit=np.column_stack([per_partition(row) for row in left[HORIZON // QUARTERS - 1 :: HORIZON // QUARTERS]])
        / EPISODES,
        unmet=per_partition((outside.demand - served).sum(axis=0)) / steps,
    )


def _walk(policy: Policies, outside: Exogenous) -> Counts:
    """The cells that episodes visit: int64[HORIZON, episodes]."""
    caps = np.array(CAPS)[policy].reshape(HORIZON, -1)
    visited = np.empty((HORIZON, outside.channel.shape[1]), dtype=np.int64)
    credit = np.full(outside.channel.shape[1], CREDIT)
    for step in range(HORIZON):
        state = credit * CHANNELS + outside.channel[step]
        visited[step] = state + step * caps.shape[1]
        credit = np.maximum(credit - np.minimum(outside.demand[step], caps[step][state]), 0)
    return visited


def _partition(partitions: int) -> Counts:
    """The partition of each episode."""
    return np.repeat(np.arange(partitions), EPISODES)


def _outside(regime: float, drawn: Uniforms, partitions: int) -> Exogenous:
    if len(drawn) != partitions * EPISODES:
        raise ValueError(f"{len(drawn)} episodes: {partitions} partitions have {partitions * EPISODES}")
    return exogenous(regime, drawn)


def _checked(policies: Policies) -> Policies:
    if policies.shape[1:] != STATES:
        raise ValueError(f"policies of the shape {policies.shape}: must be [K, {', '.join(map(str, STATES))}]")
    if policies.size and not (policies.min() >= 0 and policies.max() < ACTIONS):
        raise ValueError(f"a policy with an action outside 0 to {ACTIONS - 1}")
    return policies
