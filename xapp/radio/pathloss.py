"""Path loss of the urban macro cell (3GPP TR 38.901, table 7.4.1-1, UMa)."""

from __future__ import annotations

from typing import Final

import numpy as np

from xapp.radio.sinr import Floats

BASE_HEIGHT_M: Final = 25.0
USER_HEIGHT_M: Final = 1.5
MIN_DISTANCE_M: Final = 10.0
"""The model's shortest 2-D distance; shorter ones count as this."""

SHADOW_SIGMA_DB: Final = 6.0
SHADOW_DECORRELATION_M: Final = 50.0
"""Shadow fading of UMa NLOS: standard deviation (table 7.4.1-1) and correlation distance (table 7.5-6)."""


def path_loss_db(distance_m: Floats, carrier_ghz: float) -> Floats:
    """UMa NLOS path loss in dB: the larger of its NLOS and LOS formulas, below the break point.

    `distance_m`: 2-D distances, any shape. `carrier_ghz`: 0.5 … 100.
    """
    flat = np.maximum(distance_m, MIN_DISTANCE_M)
    distance = np.hypot(flat, BASE_HEIGHT_M - USER_HEIGHT_M)
    decades = np.log10(distance)
    carrier = 20.0 * np.log10(carrier_ghz)
    los = 28.0 + 22.0 * decades + carrier
    nlos = 13.54 + 39.08 * decades + carrier - 0.6 * (USER_HEIGHT_M - 1.5)
    return np.asarray(np.maximum(los, nlos), dtype=np.float64)
