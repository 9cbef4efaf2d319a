"""Signal to interference and noise (eq. 1), and the decibel arithmetic under it.

All functions take and return numpy arrays (or scalars) of equal shape unless they say otherwise.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

THERMAL_NOISE_DBM_HZ: Final = -174.0
"""kT at 290 K, in dBm per Hz."""


def linear(db: ArrayLike) -> Any:
    """10^(x/10): a ratio from dB, or mW from dBm."""
    return np.power(10.0, np.divide(db, 10.0))


def decibel(ratio: ArrayLike) -> Any:
    """10·log10(x): dB from a ratio, or dBm from mW. Positive input."""
    return 10.0 * np.log10(ratio)


def noise_dbm(bandwidth_hz: float, noise_figure_db: float) -> float:
    """Receiver noise N₀ in dBm over `bandwidth_hz` (> 0)."""
    return THERMAL_NOISE_DBM_HZ + 10.0 * float(np.log10(bandwidth_hz)) + noise_figure_db


def sinr_db(received_dbm: Floats, serving: NDArray[np.int64], load: Floats, noise: float) -> Floats:
    """γ of eq. (1) in dB, one value per user.

    `received_dbm`: (users, cells), power P_j·h_uj received from each cell at full load. `serving`: (users,), column of
    the serving cell b. `load`: (cells,), share of its resources that each cell transmits on, in [0, 1]: the power by
    which it interferes, averaged over the band. `noise`: N₀ in dBm.
    """
    power = linear(received_dbm)
    users = np.arange(len(serving))
    signal = power[users, serving]
    interference = power @ load - signal * load[serving]
    return np.asarray(decibel(signal / (linear(noise) + interference)), dtype=np.float64)
