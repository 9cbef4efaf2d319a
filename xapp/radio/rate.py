"""Achievable rate (eq. 2), its inverse, and the channel quality index that a rate stands for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xapp.radio.sinr import linear

PRB_MHZ: Final = 0.18
"""One physical resource block at 15 kHz subcarrier spacing: 12 · 15 kHz (3GPP TS 38.211, 4.4.4.1)."""

# Spectral efficiency of CQI 1 … 15, bit/s/Hz (3GPP TS 38.214, table 5.2.2.1-2)
CQI_EFFICIENCY: Final = (
    0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141,
    2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547,
)  # fmt: skip


def spectral_efficiency(sinr_db: ArrayLike) -> Any:
    """log2(1 + γ) in bit/s/Hz, γ given in dB."""
    return np.log2(1.0 + linear(sinr_db))


def rate_mbps(bandwidth_mhz: ArrayLike, sinr_db: ArrayLike) -> Any:
    """r = W·log2(1 + γ) of eq. (2): Mbit/s from MHz and dB."""
    return np.multiply(bandwidth_mhz, spectral_efficiency(sinr_db))


def bandwidth_mhz(rate: ArrayLike, sinr_db: ArrayLike) -> Any:
    """Bandwidth in MHz that carries `rate` (Mbit/s) at `sinr_db`: eq. (2) solved for W."""
    return np.divide(rate, spectral_efficiency(sinr_db))


def cqi(sinr_db: ArrayLike) -> NDArray[np.int64]:
    """The highest CQI (0 … 15) whose efficiency the channel carries by eq. (2); 0 where it carries none."""
    efficiency = np.asarray(spectral_efficiency(sinr_db), dtype=np.float64)
    return np.searchsorted(np.asarray(CQI_EFFICIENCY), efficiency, side="right").astype(np.int64)
