"""Losses that come and go: bodies and vehicles in the way, and street corners. Exact functions of time.

Both change at `RAMP_DB_S`; together with slow drift of a link (`DRIFT_DB_S`) and of the cells' load (`LOAD_DB_S`) no
SINR moves faster than 4 dB/s, the bound that the shipped contracts state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RAMP_DB_S: Final = 3.6
DRIFT_DB_S: Final = 0.15
LOAD_DB_S: Final = 0.1
MAX_SLOPE_DB_S: Final = RAMP_DB_S + 2 * DRIFT_DB_S + LOAD_DB_S
"""Serving link and strongest interferer may drift apart while a ramp and a change of load add to it: 4 dB/s."""

_BLOCKED_HOLD_MS: Final = 300
CORNER_DEPTH_DB: Final = 8.0
"""Loss behind a corner after its first metres (order of ITU-R P.1411, 4.1: 10 dB and more)."""
CORNER_DWELL_MS: Final = 2200
_CLEARLY_DB: Final = 3.5  # more than the two cells differ where the corner users stand
_CORNER_RAMP_MS: Final = round(2 * CORNER_DEPTH_DB / RAMP_DB_S * 1000)
CORNER_PERIOD_MS: Final = 2 * (_CORNER_RAMP_MS + CORNER_DWELL_MS)


@dataclass(frozen=True, slots=True)
class Blockage:
    """Something moves between a cell and its stationary users (3GPP TR 38.901, 7.6.4, slowed to `RAMP_DB_S`).

    The loss grows from `start_ms` to `end_ms`, stays 300 ms, and goes as it came.
    """

    cell: int
    start_ms: int
    end_ms: int

    @property
    def over_ms(self) -> int:
        """When its loss has gone."""
        return 2 * self.end_ms - self.start_ms + _BLOCKED_HOLD_MS

    def loss_db(self, now_ms: int) -> float:
        """Excess loss on the link to `cell`, ≥ 0."""
        peak = (self.end_ms - self.start_ms) * RAMP_DB_S / 1000
        falling = peak - (now_ms - self.end_ms - _BLOCKED_HOLD_MS) * RAMP_DB_S / 1000
        return max(0.0, min((now_ms - self.start_ms) * RAMP_DB_S / 1000, peak, falling))


@dataclass(frozen=True, slots=True)
class Corner:
    """A walk to and fro round a street corner: now the link to `near` is in the open, now the link to `far`."""

    near: int
    far: int
    phase_ms: int

    def tilt_db(self, now_ms: int) -> float:
        """Excess loss of `near` less that of `far`, in [-8, 8] dB: a trapezoid over `CORNER_PERIOD_MS`."""
        at = (now_ms + self.phase_ms) % CORNER_PERIOD_MS
        half = _CORNER_RAMP_MS + CORNER_DWELL_MS
        rising = at < half
        ramp = min(at % half, _CORNER_RAMP_MS) * RAMP_DB_S / 1000 - CORNER_DEPTH_DB
        return min(ramp, CORNER_DEPTH_DB) if rising else -min(ramp, CORNER_DEPTH_DB)

    def open_cell(self, start_ms: int, end_ms: int) -> int | None:
        """The cell that is in the open by more than 3.5 dB all the time from start to end; None where none is."""
        tilts = [self.tilt_db(at) for at in range(start_ms, end_ms + 1, 100)]
        if max(tilts) < -_CLEARLY_DB:
            return self.near
        return self.far if min(tilts) > _CLEARLY_DB else None
