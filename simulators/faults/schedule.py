"""Which fault strikes where and when in a run: drawn from a seed, with the changes of the network that go with it.

A stale report harms only where the network has moved on since. So whatever makes reports stale comes with a blockage
of the cell's stationary users; what misstates a value harms by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulators.faults.base import Fault, Scope
from simulators.faults.brownout import Brownout
from simulators.faults.conflict import Disagree
from simulators.faults.freshness import Delay, Freeze, Reorder
from simulators.faults.schema import Rewrite, recounted, renamed
from simulators.ran.emission import Service
from simulators.ran.layout import Layout
from simulators.ran.losses import Blockage, Corner
from simulators.ran.reports import cell_id, source, user_id
from xapp.model import SourceState

WINDOW_MS: Final = 2800
_PITCH_MS: Final = 4200
_LEAD_MS: Final = 1500
_TRAIL_MS: Final = 500
_RETRYABLE: Final = SourceState("outage", retryable=True, retry_after_ms=300, retries_left=3)
_FINAL: Final = SourceState("outage", retryable=False)

Make = Callable[[str, int, int], Fault]
"""(cell id, start, seed) → the fault."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One variant of a fault on a cell's performance reports. `blocked`: a blockage goes with it."""

    make: Make
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults of a run, and the blockages that the world must have."""

    faults: tuple[Fault, ...]
    blockages: tuple[Blockage, ...]


def _scope(
    cell: str, start_ms: int, service: Service, interfaces: Sequence[str] = (), users: frozenset[str] | None = None
) -> Scope:
    """A window of a service of a cell. `interfaces`: "e2", "o1" or both; none given means all its sources."""
    names = frozenset(_sources(interfaces, service, cell)) if interfaces else None
    return Scope(cell, frozenset({service}), start_ms, start_ms + WINDOW_MS, names, users)


def _sources(interfaces: Sequence[str], service: Service, cell: str) -> list[str]:
    return [source("e2" if interface == "e2" else "o1", service, cell) for interface in interfaces]


def _brownout(service: Service, state: SourceState, *interfaces: str) -> Make:
    def make(cell: str, start_ms: int, seed: int) -> Fault:
        names = _sources(interfaces, service, cell)
        scope = _scope(cell, start_ms, service, interfaces)
        return Brownout(scope, harmful=len(names) > 1, sources=names, state=state)

    return make


_SINR_NAMES: Final = ("SINR", "L1M.RS-SINR")
_STALE: Final = (0, 1400, 1600, 1800, 2000)
_JITTER: Final = (0, 40, 80, 120)

_HOUR_MS: Final = 3_600_000


def _freeze(*interfaces: str) -> Make:
    return lambda cell, at, seed: Freeze(_scope(cell, at, "kpm", interfaces), harmful=len(interfaces) > 1)


def _delay(delay_ms: int, ahead_ms: int = 0) -> Make:
    return lambda cell, at, seed: Delay(_scope(cell, at, "kpm"), harmful=True, delay_ms=delay_ms, ahead_ms=ahead_ms)


def _reorder(delays_ms: tuple[int, ...], *, harmful: bool) -> Make:
    return lambda cell, at, seed: Reorder(_scope(cell, at, "kpm"), harmful=harmful, delays_ms=delays_ms, seed=seed)


def _skew(ahead_ms: int) -> Make:
    return lambda cell, at, seed: Delay(_scope(cell, at, "kpm"), harmful=False, ahead_ms=ahead_ms)


def _disagree(offset_db: float, *, harmful: bool) -> Make:
    return lambda cell, at, seed: Disagree(
        _scope(cell, at, "kpm", ["o1"]), harmful=harmful, names=_SINR_NAMES, offset=offset_db
    )


def _promise_in_gigabits(*, declared: bool) -> Make:
    change = {"min_rate": recounted("Gbit/s", declared=declared)}
    return lambda cell, at, seed: Rewrite(_scope(cell, at, "policy"), harmful=True, changes=change)


def _alias() -> Make:
    changes = {"SINR": renamed("ue_sinr"), "CQI": renamed("wb_cqi")}
    return lambda cell, at, seed: Rewrite(_scope(cell, at, "kpm", ["e2"]), harmful=False, changes=changes)


def _unknown_name() -> Make:
    changes = {name: renamed("DRB.SinrDlV2") for name in _SINR_NAMES}
    return lambda cell, at, seed: Rewrite(_scope(cell, at, "kpm"), harmful=True, changes=changes)


# Four strike at a time, on four cells; the next four follow. A run begins at the group that its seed names; any four
# groups in a row hold each kind at least three times, and at least once where it harms.
DECK: Final[tuple[tuple[Entry, ...], ...]] = (
    (
        Entry(_freeze("e2", "o1"), blocked=True),
        Entry(_brownout("kpm", _RETRYABLE, "e2")),
        Entry(_disagree(8.0, harmful=True)),
        Entry(_promise_in_gigabits(declared=False)),
    ),
    (
        Entry(_brownout("kpm", _RETRYABLE, "e2", "o1"), blocked=True),
        Entry(_freeze("e2")),
        Entry(_disagree(-1.0, harmful=False)),
        Entry(_promise_in_gigabits(declared=True)),
    ),
    (
        Entry(_delay(2000), blocked=True),
        Entry(_reorder(_JITTER, harmful=False)),
        Entry(_disagree(8.0, harmful=True)),
        Entry(_alias()),
    ),
    (
        Entry(_delay(2000, ahead_ms=_HOUR_MS), blocked=True),
        Entry(_brownout("kpm", _FINAL, "e2", "o1"), blocked=True),
        Entry(_disagree(8.0, harmful=True)),
        Entry(_promise_in_gigabits(declared=False)),
    ),
    (
        Entry(_reorder(_STALE, harmful=True), blocked=True),
        Entry(_unknown_name(), blocked=True),
        Entry(_skew(30)),
        Entry(_brownout("kpm", _RETRYABLE, "o1")),
    ),
)

_RSRP: Final = "L1M.SS-RSRPNrNbr"


def _mobility(cell: str, start_ms: int, seed: int, users: frozenset[str]) -> tuple[Fault, ...]:
    """What can befall the RSRP reports of a group of users who stay where they are."""
    both, second = _scope(cell, start_ms, "mobility", (), users), _scope(cell, start_ms, "mobility", ["o1"], users)
    return (
        Rewrite(both, harmful=True, changes={_RSRP: recounted("W", declared=True)}),
        Disagree(second, harmful=True, names=[_RSRP], offset=15.0),
        Rewrite(both, harmful=True, changes={_RSRP: recounted("W", declared=False)}),
    )


def _mobility_harmless(cell: str, start_ms: int, seed: int) -> tuple[Fault, ...]:
    scope, first, second = (_scope(cell, start_ms, "mobility", which) for which in ((), ("e2",), ("o1",)))
    return (
        Reorder(scope, harmful=False, delays_ms=_JITTER, seed=seed),
        _brownout("mobility", _RETRYABLE, "e2")(cell, start_ms, seed),
        Disagree(second, harmful=False, names=[_RSRP], offset=-1.0),
        Rewrite(first, harmful=False, changes={_RSRP: renamed("ss_rsrp_neighbour")}),
    )


def draw_schedule(layout: Layout, start_ms: int, seconds: float, seed: int) -> Schedule:
    """The faults of a run of `seconds` from `start_ms` on. The first group strikes however short the run is."""
    rng = np.random.default_rng([seed, 3])
    faults: list[Fault] = []
    blockages: list[Blockage] = []
    blocked_last: set[int] = set()
    slots = max(1, int((seconds * 1000 - _LEAD_MS - _TRAIL_MS) // _PITCH_MS))
    for slot in range(slots):
        start = start_ms + _LEAD_MS + slot * _PITCH_MS + 10 * int(rng.integers(40))
        entries = sorted(DECK[(seed + slot) % len(DECK)], key=lambda entry: not entry.blocked)
        free = [int(cell) for cell in rng.permutation(layout.cells)]
        blocked: set[int] = set()
        for entry in entries:
            cell = next((c for c in free if not (entry.blocked and c in blocked_last)), None)
            if cell is None:
                continue
            free.remove(cell)
            faults.append(entry.make(cell_id(cell), start, int(rng.integers(2**31))))
            if entry.blocked:
                blocked.add(cell)
                blockages.append(Blockage(cell, start, start + WINDOW_MS))
        blocked_last = blocked
    faults += _mobility_faults(layout, start_ms, seconds, rng)
    return Schedule(tuple(faults), tuple(blockages))


def _mobility_faults(layout: Layout, start_ms: int, seconds: float, rng: np.random.Generator) -> list[Fault]:
    """One fault after another on the users' RSRP: harmful ones where a group stays, harmless ones always."""
    groups: dict[Corner, set[int]] = {}
    for user, corner in layout.corner_of.items():
        groups.setdefault(corner, set()).add(user)
    corners = list(groups)
    found: list[Fault] = []
    harmful = 0
    last = start_ms + int(seconds * 1000) - WINDOW_MS - _TRAIL_MS
    for turn, at in enumerate(range(start_ms + _LEAD_MS, last, WINDOW_MS)):
        order = [corners[int(i)] for i in rng.permutation(len(corners))]
        settled = [(c, cell) for c in order if (cell := c.open_cell(at - 300, at + WINDOW_MS + 300)) is not None]
        struck = -1
        if settled:
            corner, struck = settled[0]
            users = frozenset(user_id(user) for user in groups[corner])
            variants = _mobility(cell_id(struck), at, int(rng.integers(2**31)), users)
            found.append(variants[harmful % len(variants)])
            harmful += 1
        others = [cell for cell in range(layout.cells) if cell != struck]
        variants = _mobility_harmless(cell_id(others[int(rng.integers(len(others)))]), at, int(rng.integers(2**31)))
        found.append(variants[turn % len(variants)])
    return found
