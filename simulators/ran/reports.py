"""Reports of every cell node: E2 (primary), a trace collector over O1 (secondary), and A1 policies.

Names are those of 3GPP TS 28.552 and 38.215 where these have one; units are always stated.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from simulators.ran.emission import Emission, Service
from simulators.ran.layout import MOBILE, SLICES
from simulators.ran.world import World
from xapp.model import Measurement, Report
from xapp.radio.rate import PRB_MHZ, cqi, rate_mbps
from xapp.radio.sinr import Floats

POLICY_SOURCE: Final = "a1:policy"
POLICY_PERIOD_MS: Final = 200
MEASURED: Final[tuple[Service, ...]] = ("kpm", "mobility")
INTERFACES: Final[tuple[Literal["e2", "o1"], ...]] = ("e2", "o1")
MIN_PERIOD_MS: Final = 100
MAX_PERIOD_MS: Final = 1000
_RESOLUTION_DB: Final = 1  # decimals of a reported level
_SINR_RANGE_DB: Final = (-23.0, 40.0)  # what SS-SINR can report, 3GPP TS 38.133, 10.1.16.1


def cell_id(cell: int) -> str:
    """The id on the wire of a cell's index."""
    return str(cell + 1)


def user_id(user: int) -> str:
    """The id on the wire of a user's index."""
    return str(user + 1)


def index_of(identity: str) -> int:
    """The index of an id on the wire. Raises ValueError."""
    return int(identity) - 1


def source(interface: Literal["e2", "o1"], service: Service, cell: str) -> str:
    """A source's id: the primary ("e2") or the trace collector ("o1") of a cell's DU (performance) or CU (mobility).

    Policies come from one source for all cells.
    """
    if service == "policy":
        return POLICY_SOURCE
    return f"{interface}:gnb-{'du' if service == 'kpm' else 'cu'}-{cell}"


class Reporter:
    """Makes the reports that fall due. `period_ms` (100 … 1000) is that of E2 and O1 alike.

    `first_number`: of each source's first report. Raises ValueError for a period outside.
    """

    def __init__(self, world: World, period_ms: int = MIN_PERIOD_MS, first_number: int = 1) -> None:
        if not MIN_PERIOD_MS <= period_ms <= MAX_PERIOD_MS:
            raise ValueError(f"period of {period_ms} ms: {MIN_PERIOD_MS} to {MAX_PERIOD_MS} are modelled")
        self._world = world
        self._period_ms = period_ms
        self._next_ms = world.now_ms
        self._next_policy_ms = world.now_ms
        self._first_number = first_number
        self._sequence: dict[str, int] = {}

    def due(self) -> list[Emission]:
        """Reports due at the world's time: of each cell, E2 before O1. A period that was missed is not made up for."""
        now, emissions = self._world.now_ms, []
        if now >= self._next_policy_ms:
            self._next_policy_ms = _following(self._next_policy_ms, now, POLICY_PERIOD_MS)
            emissions += [self._policy(cell) for cell in range(self._world.layout.cells)]
        if now >= self._next_ms:
            self._next_ms = _following(self._next_ms, now, self._period_ms)
            for cell in range(self._world.layout.cells):
                for service in MEASURED:
                    emissions += [self._report(cell, service, "e2"), self._report(cell, service, "o1")]
        return emissions

    def of_source(self, name: str) -> list[Emission]:
        """A fresh report of one source, out of turn; empty for a source that is none of this network's."""
        cells = range(self._world.layout.cells)
        if name == POLICY_SOURCE:
            return [self._policy(cell) for cell in cells]
        return [
            self._report(cell, service, interface)
            for cell in cells
            for service in MEASURED
            for interface in INTERFACES
            if name == source(interface, service, cell_id(cell))
        ]

    def _report(self, cell: int, service: Service, interface: Literal["e2", "o1"]) -> Emission:
        primary = interface == "e2"
        measured = self._performance(cell, primary) if service == "kpm" else self._mobility(cell)
        return self._emit(cell, service, source(interface, service, cell_id(cell)), measured, self._period_ms)

    def _emit(
        self, cell: int, service: Service, name: str, measurements: list[Measurement], period_ms: int | None
    ) -> Emission:
        number = self._sequence.get(name, self._first_number - 1) + 1
        self._sequence[name] = number
        report = Report(
            report_id=f"{name}/{number}",
            source=name,
            event_time_ms=self._world.now_ms,
            measurements=tuple(measurements),
            version=number,
            subject=f"cell:{cell_id(cell)}",
            period_ms=period_ms,
        )
        return Emission(cell_id(cell), service, report)

    def _performance(self, cell: int, primary: bool) -> list[Measurement]:
        world, prefix = self._world, f"cell:{cell_id(cell)}"
        served = np.flatnonzero(world.serving == cell)
        sinr = world.sinr_db[served]
        found: list[Measurement] = []
        subjects = [f"{prefix}/ue:{user_id(int(user))}" for user in served]
        reported = sinr.clip(*_SINR_RANGE_DB).round(_RESOLUTION_DB)
        found += _column("SINR" if primary else "L1M.RS-SINR", "dB", subjects, reported)
        if primary:
            rate = rate_mbps(world.allocated_mhz[served], sinr) * 1000
            found += _column("CQI", "1", subjects, cqi(sinr).astype(np.float64))
            found += _column("DRB.UEThpDl", "kbit/s", subjects, np.asarray(rate).round())
            found.append(Measurement("RRU.PrbTotDl", round(100 * float(world.load[cell]), 1), "%"))
        for index, spec in enumerate(SLICES):
            subject = f"{prefix}/slice:{spec.slice_id}"
            members = served[world.layout.slice_of[served] == index]
            capacity = float(world.capacity_mhz[cell * len(SLICES) + index])
            found.append(Measurement("capacity", capacity, "MHz", subject=subject))
            found.append(Measurement("users", len(members), "1", subject=subject))
            if primary:
                used = float(world.allocated_mhz[members].sum()) / PRB_MHZ
                found.append(Measurement("RRU.PrbUsedDl", round(used, 1), "PRB", subject=subject))
        return found

    def _mobility(self, cell: int) -> list[Measurement]:
        world = self._world
        served = np.flatnonzero((world.serving == cell) & (world.layout.slice_of == MOBILE))
        found: list[Measurement] = []
        for other in range(world.layout.cells):
            name = "L1M.SS-RSRP" if other == cell else "L1M.SS-RSRPNrNbr"
            subjects = [f"ue:{user_id(int(user))}/cell:{cell_id(other)}" for user in served]
            found += _column(name, "dBm", subjects, world.rsrp_dbm[served, other].round(_RESOLUTION_DB))
        return found

    def _policy(self, cell: int) -> Emission:
        prefix = f"cell:{cell_id(cell)}"
        rates = [
            Measurement("min_rate", spec.min_rate_mbps, "Mbit/s", subject=f"{prefix}/slice:{spec.slice_id}")
            for spec in SLICES
        ]
        return self._emit(cell, "policy", POLICY_SOURCE, rates, None)


def _column(name: str, unit: str, subjects: list[str], values: Floats) -> list[Measurement]:
    return [Measurement(name, value, unit, subject=s) for s, value in zip(subjects, values.tolist(), strict=True)]


def _following(planned_ms: int, now_ms: int, period_ms: int) -> int:
    """The next multiple of the period after now, in step with what was planned."""
    return planned_ms + ((now_ms - planned_ms) // period_ms + 1) * period_ms
