"""Shadow fading that is a place's own: spatially correlated maps (Gudmundson, Electronics Letters 27(23), 1991)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from xapp.radio.pathloss import SHADOW_DECORRELATION_M, SHADOW_SIGMA_DB
from xapp.radio.sinr import Floats

GRID_M: Final = 25.0
"""Half the decorrelation distance of the urban macro model: what lies between is interpolated."""


class ShadowMaps:
    """One map per cell over a square area: excess loss in dB, normal with the model's standard deviation.

    Correlation decays as exp(-Δ/d) along each axis (the separable form of Gudmundson's model).
    """

    def __init__(self, rng: np.random.Generator, cells: int, half_width_m: float) -> None:
        self._half = half_width_m
        size = int(np.ceil(2 * half_width_m / GRID_M)) + 2
        steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        root = np.linalg.cholesky(np.exp(-steps * GRID_M / SHADOW_DECORRELATION_M))
        white = rng.standard_normal((cells, size, size))
        self._maps: Floats = SHADOW_SIGMA_DB * (root @ white @ root.T)
        self._cells: NDArray[np.int64] = np.arange(cells)

    def loss_db(self, positions: Floats) -> Floats:
        """Shadow loss, (users, cells) in dB, at `positions`, (users, 2) in m; bilinear, held at the area's edge."""
        last = self._maps.shape[1] - 1
        scaled = np.clip((positions + self._half) / GRID_M, 0.0, last - 1e-9)
        corner = scaled.astype(np.int64)
        x, y = corner[:, 0, None], corner[:, 1, None]
        fx, fy = (scaled - corner)[:, 0, None], (scaled - corner)[:, 1, None]
        at, maps = self._cells, self._maps
        near = maps[at, x, y] * (1 - fx) + maps[at, x + 1, y] * fx
        far = maps[at, x, y + 1] * (1 - fx) + maps[at, x + 1, y + 1] * fx
        return np.asarray(near * (1 - fy) + far * fy, dtype=np.float64)
