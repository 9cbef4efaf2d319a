"""Sharing a slice's bandwidth among its users: quotas first, then what is left in equal parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xapp.radio.rate import PRB_MHZ, bandwidth_mhz
from xapp.radio.sinr import Floats


def allocate_mhz(
    quota_mhz: Floats, demand_mbps: Floats, sinr_db: Floats, group: NDArray[np.int64], capacity_mhz: Floats
) -> Floats:
    """Bandwidth of each user in MHz, in whole resource blocks but for a quota's own fraction.

    `group`: per user, the index of its (cell, slice) in `capacity_mhz`. A user gets its demand within its quota, and an
    equal part of what the quotas leave, up to its demand. Quotas beyond the capacity are cut in proportion.
    """
    wanted = bandwidth_mhz(demand_mbps, sinr_db)
    assured = np.minimum(quota_mhz, wanted)
    groups = len(capacity_mhz)
    total = np.bincount(group, weights=assured, minlength=groups)
    assured = assured * np.minimum(1.0, capacity_mhz / np.maximum(total, 1e-9))[group]
    left = np.maximum(capacity_mhz - np.bincount(group, weights=assured, minlength=groups), 0.0)
    hungry = wanted > assured
    waiting = np.bincount(group, weights=hungry.astype(np.float64), minlength=groups)
    part = np.floor(left / np.maximum(waiting, 1.0) / PRB_MHZ) * PRB_MHZ
    return np.asarray(assured + np.where(hungry, np.minimum(part[group], wanted - assured), 0.0), dtype=np.float64)
