"""Ground truth, kept from the guard: would carrying out this order at this instant be safe in the honest world?

Physics only. Nothing here knows a contract, evidence, or what the guard said.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulators.ran.actuator import Order
from simulators.ran.layout import SLICES
from simulators.ran.world import World
from xapp.radio.handover import a3_margin_db
from xapp.radio.rate import rate_mbps

_ROUNDING: Final = 1e-9


def is_safe(world: World, order: Order) -> bool:
    """The verdict on one order, now: eq. (3) on true SINRs, capacities and promises, or a target that is truly better.

    A quota for a user that the cell no longer serves lies idle: it harms nobody and helps nobody. A handover of such a
    user fails, and the user with it.
    """
    return _handover_is_safe(world, order) if order.handover is not None else _quotas_are_safe(world, order)


def _handover_is_safe(world: World, order: Order) -> bool:
    assert order.handover is not None
    user, target = order.handover
    if world.serving[user] != order.cell or target == order.cell:
        return False
    return a3_margin_db(float(world.rsrp_dbm[user, target]), float(world.rsrp_dbm[user, order.cell])) >= 0.0


def _quotas_are_safe(world: World, order: Order) -> bool:
    users = np.array([user for user in order.quotas if world.serving[user] == order.cell], dtype=np.int64)
    if len(users) == 0:
        return True
    quotas = np.array([order.quotas[int(user)] for user in users])
    rates = rate_mbps(quotas, world.sinr_db[users])
    if (rates < world.min_rate_mbps[users] - _ROUNDING).any():
        return False
    after = world.quota_mhz.copy()
    after[users] = quotas
    slices = len(SLICES)
    groups = world.group
    for group in np.unique(groups[users]):
        if after[groups == group].sum() > world.capacity_mhz[group] + _ROUNDING or group // slices != order.cell:
            return False
    return True
