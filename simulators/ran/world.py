"""The honest world: what the network really is at an instant. Deterministic in its seed and its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulators.ran.layout import MOBILE, SLICES, Layout
from simulators.ran.losses import DRIFT_DB_S, LOAD_DB_S, Blockage
from simulators.ran.scheduler import allocate_mhz
from xapp.radio.sinr import Floats, noise_dbm, sinr_db

CARRIER_MHZ: Final = 20.0
TX_POWER_DBM: Final = 46.0  # urban macro, 3GPP TR 36.942, table 4.8
RESOURCE_ELEMENTS: Final = 106 * 12  # 20 MHz at 15 kHz, 3GPP TS 38.101-1, table 5.3.2-1
NOISE_FIGURE_DB: Final = 9.0  # of a handset, 3GPP TR 38.901, table 7.8-1
_BACKGROUND_LOAD: Final = 0.45
_BACKGROUND_SWING: Final = 0.15


class World:
    """State of all cells and users at `now_ms` (Unix ms). `step` moves it on; orders change it at once.

    Users and cells are indices here; ids on the wire are the index plus one, as text.
    """

    def __init__(self, layout: Layout, start_ms: int, blockages: Sequence[Blockage] = ()) -> None:
        self.layout = layout
        self.now_ms = start_ms
        self.blockages = tuple(blockages)
        self.capacity_mhz: Floats = np.tile([s.capacity_mhz for s in SLICES], layout.cells)
        self.min_rate_mbps: Floats = np.array([s.min_rate_mbps for s in SLICES])[layout.slice_of]
        self.demand_mbps: Floats = self.min_rate_mbps * 1.5
        self.serving: NDArray[np.int64] = layout.home.copy()
        self.quota_mhz: Floats = np.array([s.capacity_mhz / (2 * s.users) for s in SLICES])[layout.slice_of]
        self._start_ms = start_ms
        self._noise = noise_dbm(CARRIER_MHZ * 1e6, NOISE_FIGURE_DB)
        self._gain = layout.gain_db(self._positions())
        self._load = self._wanted_load(np.zeros(layout.users))
        for user, corner in layout.corner_of.items():
            self.serving[user] = corner.near if corner.tilt_db(start_ms) < 0 else corner.far
        self._measure()

    def step(self, dt_ms: int) -> None:
        """Move on by `dt_ms` (≥ 0). No link drifts faster than `DRIFT_DB_S`, no load than `LOAD_DB_S`."""
        if dt_ms <= 0:
            return
        self.now_ms += dt_ms
        reach = DRIFT_DB_S * dt_ms / 1000
        self._gain += np.clip(self.layout.gain_db(self._positions()) - self._gain, -reach, reach)
        factor = 10 ** (LOAD_DB_S * dt_ms / 1000 / 10)
        self._load = np.clip(self._wanted_load(self.allocated_mhz), self._load / factor, self._load * factor)
        self._measure()

    def advance_to(self, now_ms: int) -> None:
        """Step to a point in time; one that has passed changes nothing."""
        self.step(now_ms - self.now_ms)

    def block(self, blockages: Sequence[Blockage]) -> None:
        """Let more blockages come; those that are over are forgotten."""
        self.blockages = (*(one for one in self.blockages if self.now_ms < one.over_ms), *blockages)

    def set_quota(self, user: int, mhz: float) -> None:
        """Give a user a guaranteed bandwidth."""
        self.quota_mhz[user] = mhz

    def hand_over(self, user: int, target: int) -> None:
        """Let another cell serve a user."""
        self.serving[user] = target
        self._measure()

    @property
    def group(self) -> NDArray[np.int64]:
        """Per user, the index of its (serving cell, slice) in `capacity_mhz`."""
        return np.asarray(self.serving * len(SLICES) + self.layout.slice_of, dtype=np.int64)

    @property
    def load(self) -> Floats:
        """Per cell, the share of its resources that it transmits on."""
        return self._load

    def _positions(self) -> Floats:
        layout = self.layout
        seconds = (self.now_ms - self._start_ms) / 1000
        angle = layout.walk_phase + layout.walk_speed_m_s / layout.walk_radius_m * seconds
        walk = layout.walk_radius_m[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.asarray(layout.anchors + walk, dtype=np.float64)

    def _excess_db(self) -> Floats:
        excess = np.zeros_like(self._gain)
        stationary = self.layout.slice_of != MOBILE
        for blockage in self.blockages:
            loss = blockage.loss_db(self.now_ms)
            if loss > 0.0:
                excess[stationary & (self.layout.home == blockage.cell), blockage.cell] += loss
        for user, corner in self.layout.corner_of.items():
            tilt = corner.tilt_db(self.now_ms)
            excess[user, corner.near if tilt > 0 else corner.far] += abs(tilt)
        return excess

    def _wanted_load(self, allocated_mhz: Floats) -> Floats:
        cells = np.arange(self.layout.cells)
        seconds = (self.now_ms - self._start_ms) / 1000
        swing = _BACKGROUND_SWING * np.sin(2 * np.pi * (seconds / (17.0 + 3.0 * cells) + cells / 7.0))
        used = np.bincount(self.serving, weights=allocated_mhz, minlength=self.layout.cells) / CARRIER_MHZ
        return np.asarray(np.clip(_BACKGROUND_LOAD + swing + 0.2 * used, 0.05, 1.0), dtype=np.float64)

    def _measure(self) -> None:
        received = TX_POWER_DBM + self._gain - self._excess_db()
        self.rsrp_dbm: Floats = received - 10 * np.log10(RESOURCE_ELEMENTS)
        self.sinr_db: Floats = sinr_db(received, self.serving, self._load, self._noise)
        self.allocated_mhz: Floats = allocate_mhz(
            self.quota_mhz, self.demand_mbps, self.sinr_db, self.group, self.capacity_mhz
        )
