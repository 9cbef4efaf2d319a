"""WirelessBench's published arithmetic of network slicing and mobility (its WCNS and WCMSA tasks).

Python's `round` (half to even) is the benchmark's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice: what it has, and what one user may get of it, all in MHz."""

    capacity_mhz: float
    least_mhz: float
    most_mhz: float


SLICES: Final[dict[str, Slice]] = {"eMBB": Slice(90.0, 6.0, 20.0), "URLLC": Slice(30.0, 1.0, 5.0)}


def bandwidth_mhz(slice_type: str, users: int) -> float:
    """What one new user of the slice gets beside its `users` (≥ 0): the fair share, kept in the slice's range, in MHz.

    Raises KeyError for a slice that does not exist.
    """
    part = SLICES[slice_type]
    return round(min(max(part.capacity_mhz / (users + 1), part.least_mhz), part.most_mhz), 2)


def throughput_mbit_s(bandwidth_mhz: float, cqi: int) -> float:
    """WirelessBench's rate, in Mbit/s, of a bandwidth (MHz, as rounded) at a CQI (1 to 15), which it reads as dB."""
    return round(10 * bandwidth_mhz * math.log10(1 + 10 ** (cqi / 10)), 2)


def predicted_m(previous_m: float, current_m: float) -> float:
    """Where a coordinate will be (m), the last step repeated."""
    return round(2 * current_m - previous_m, 2)


def qos_satisfied(throughput_mbit_s: float, min_rate_mbit_s: float) -> bool:
    """True where the throughput reaches the rate that the service needs."""
    return throughput_mbit_s >= min_rate_mbit_s


def cqi_of_snr(snr_db: float) -> int:
    """The CQI (1 to 15) of an SNR in dB, linear between −10 and 30 dB."""
    return round(1 + 14 * (min(max(snr_db, -10.0), 30.0) + 10.0) / 40.0)
