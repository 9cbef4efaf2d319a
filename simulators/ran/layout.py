"""Where everything stands: sites, users, slices and their policies. Drawn once from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulators.ran.losses import CORNER_PERIOD_MS, Corner
from simulators.ran.shadowing import ShadowMaps
from xapp.radio.pathloss import path_loss_db
from xapp.radio.sinr import Floats

SITE_DISTANCE_M: Final = 500.0  # urban macro, 3GPP TR 38.901, table 7.2-1
CARRIER_GHZ: Final = 3.5
_AREA_M: Final = 900.0
MAX_CELLS: Final = 7

SHARED, SINGLE, MOBILE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of every cell: id, bandwidth, the rate promised to each user, how many users start in it."""

    slice_id: str
    capacity_mhz: float
    min_rate_mbps: float
    users: int


SLICES: Final = (Slice("1", 9.0, 2.0, 4), Slice("2", 4.0, 1.0, 2), Slice("3", 7.0, 0.5, 4))
"""Three slices of one 20 MHz carrier: several users planned together, users planned one by one, users on the move."""

USERS_PER_CELL: Final = sum(s.users for s in SLICES)


@dataclass(frozen=True, slots=True)
class Layout:
    """Sites (cells, 2) and user anchors (users, 2) in m; home cell and slice per user, corner per mobile user."""

    sites: Floats
    anchors: Floats
    home: NDArray[np.int64]
    slice_of: NDArray[np.int64]
    walk_radius_m: Floats
    walk_speed_m_s: Floats
    walk_phase: Floats
    corner_of: dict[int, Corner]
    shadows: ShadowMaps

    @property
    def cells(self) -> int:
        return len(self.sites)

    @property
    def users(self) -> int:
        return len(self.anchors)

    def gain_db(self, positions: Floats) -> Floats:
        """Large-scale channel gain, (users, cells) in dB."""
        distance = np.linalg.norm(positions[:, None, :] - self.sites[None, :, :], axis=2)
        return -path_loss_db(distance, CARRIER_GHZ) - self.shadows.loss_db(positions)


def hexagon(cells: int) -> Floats:
    """Sites of one ring of a hexagonal grid round the first, in m. `cells`: 3 … 7; each is a neighbour of the next."""
    angles = np.pi / 3 * np.arange(MAX_CELLS - 1)
    ring = SITE_DISTANCE_M * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([np.zeros((1, 2)), ring])[:cells]


def draw_layout(seed: int, cells: int) -> Layout:
    """Ten users in each of `cells` cells (3 … 7). Users camp on the cell that is best where they stand.

    Raises ValueError for another number of cells.
    """
    if not 3 <= cells <= MAX_CELLS:
        raise ValueError(f"{cells} cells: 3 to {MAX_CELLS} are modelled")
    rng = np.random.default_rng([seed, 1])
    sites = hexagon(cells)
    empty = np.zeros((0, 2))
    nobody = np.zeros(0)
    shadows = ShadowMaps(rng, cells, _AREA_M)
    bare = Layout(sites, empty, nobody.astype(np.int64), nobody.astype(np.int64), nobody, nobody, nobody, {}, shadows)
    anchors: list[Floats] = []
    slices: list[int] = []
    corners: dict[int, Corner] = {}
    for cell in range(cells):
        for index, spec in enumerate(SLICES):
            if index == MOBILE:
                far = (cell + 1) % cells
                corner = Corner(cell, far, int(rng.integers(CORNER_PERIOD_MS)))
                corners |= {len(slices) + i: corner for i in range(spec.users)}
                anchors.append(_corner_places(rng, bare, cell, far, spec.users))
            else:
                anchors.append(_camping_places(rng, bare, cell, spec.users))
            slices += [index] * spec.users
    users = len(slices)
    slice_of = np.asarray(slices, dtype=np.int64)
    mobile = slice_of == MOBILE
    return Layout(
        sites=sites,
        anchors=np.concatenate(anchors),
        home=np.repeat(np.arange(cells), USERS_PER_CELL),
        slice_of=slice_of,
        walk_radius_m=np.where(mobile, 4.0, rng.uniform(5.0, 15.0, users)),
        walk_speed_m_s=np.where(mobile, 0.3, rng.uniform(0.3, 0.9, users)),
        walk_phase=rng.uniform(0.0, 2 * np.pi, users),
        corner_of=corners,
        shadows=shadows,
    )


def _camping_places(rng: np.random.Generator, bare: Layout, cell: int, users: int) -> Floats:
    """Places within 150 m of a site where it is the best cell, by the widest margin of many that were tried."""
    tried = 60 * users
    radius, angle = rng.uniform(40.0, 150.0, tried), rng.uniform(0.0, 2 * np.pi, tried)
    places = bare.sites[cell] + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    gain = bare.gain_db(places)
    margin = gain[:, cell] - np.delete(gain, cell, axis=1).max(axis=1)
    return _spread(rng, places, np.minimum(margin, 15.0), users)


def _corner_places(rng: np.random.Generator, bare: Layout, near: int, far: int, users: int) -> Floats:
    """Places between two sites where both are equally strong and no third comes close."""
    tried = 2000
    along, across = rng.uniform(0.25, 0.75, (tried, 1)), rng.uniform(-120.0, 120.0, (tried, 1))
    direction = bare.sites[far] - bare.sites[near]
    normal = np.array([-direction[1], direction[0]]) / np.linalg.norm(direction)
    places = bare.sites[near] + along * direction + across * normal
    gain = bare.gain_db(places)
    weaker = np.minimum(gain[:, near], gain[:, far])
    third = np.delete(gain, [near, far], axis=1).max(axis=1)
    score = np.minimum(weaker - third, 12.0) - 4.0 * np.abs(gain[:, near] - gain[:, far])
    return _spread(rng, places, score, users)


def _spread(rng: np.random.Generator, places: Floats, score: Floats, users: int) -> Floats:
    """`users` of the best places, drawn from twice as many."""
    best = np.argsort(-score, kind="stable")[: 2 * users]
    return np.asarray(places[rng.permutation(best)[:users]], dtype=np.float64)
