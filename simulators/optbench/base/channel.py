"""WirelessBench's radio channel: what its ray tracing tool says of a position.

A region's base station stands at the origin of the region's coordinates, 13.5 m above the user; that height is not
published, but follows from every published path loss. Whether the line of sight is free depends on a map that is not
published either: generated items draw it by the probability of 3GPP TR 38.901, table 7.4.2-1 (UMi, street canyon).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final

from simulators.optbench.base.rules import cqi_of_snr

CARRIER_HZ: Final = 2.4e9
BANDWIDTH_HZ: Final = 20e6
TX_POWER_DBM: Final = 30.0
NOISE_DBM: Final = -174.0 + 10.0 * math.log10(BANDWIDTH_HZ) + 8.0
HEIGHT_M: Final = 13.5
SUBCARRIERS: Final = 1272
"""Of 20 MHz at 15 kHz spacing: 106 resource blocks (TS 38.101-1, table 5.3.2-1). RSRP is the power of one."""


@dataclass(frozen=True, slots=True)
class RayTracing:
    """What the tool returns for one position: CQI, dB, dBm, dB, and whether the line of sight is free."""

    cqi: int
    snr_db: float
    rx_power_dbm: float
    path_loss_db: float
    has_los: bool


def path_loss_db(x_m: float, y_m: float, has_los: bool) -> float:
    """Loss from the base station to a user at (x, y), in dB: free space, and 20 dB and a steeper slope behind walls."""
    distance_m = math.hypot(x_m, y_m, HEIGHT_M)
    loss = 20.0 * math.log10(distance_m) + 20.0 * math.log10(CARRIER_HZ) - 147.55
    return loss if has_los else loss + 20.0 + 30.0 * math.log10(max(distance_m / 100.0, 0.1))


def ray_tracing(x_m: float, y_m: float, has_los: bool) -> RayTracing:
    """The channel at (x, y)."""
    loss = path_loss_db(x_m, y_m, has_los)
    rx_power = TX_POWER_DBM - loss
    snr = rx_power - NOISE_DBM
    return RayTracing(cqi_of_snr(snr), snr, rx_power, loss, has_los)


def rsrp_dbm(rx_power_dbm: float) -> float:
    """RSRP of a received power that is spread evenly over the subcarriers, in dBm."""
    return rx_power_dbm - 10.0 * math.log10(SUBCARRIERS)


def draw_line_of_sight(rng: random.Random, x_m: float, y_m: float) -> bool:
    """Whether a user at (x, y) sees the base station."""
    distance_m = math.hypot(x_m, y_m)
    near = min(18.0 / distance_m, 1.0) if distance_m > 0.0 else 1.0
    return rng.random() < near + math.exp(-distance_m / 36.0) * (1.0 - near)


def cell_load(item_id: str) -> float:
    """Share of the cell's resource blocks in use, in %; drawn from the item's id, and nothing depends on it."""
    return float(random.Random(f"load:{item_id}").randint(20, 90))
