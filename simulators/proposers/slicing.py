"""A slice xApp: bandwidth for each user from the last SINR seen, with headroom, by eq. (2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simulators.proposers.base import DEADLINE_MS, Draft
from xapp.model import Report
from xapp.radio.rate import bandwidth_mhz

HEADROOM_DB: Final = 3.9
"""What the xApp's author keeps for fading between report and execution."""
_SINR_NAMES: Final = ("SINR", "L1M.RS-SINR")
_READ: Final = {**dict.fromkeys(_SINR_NAMES, "sinr"), "capacity": "capacity", "min_rate": "min_rate"}


@dataclass(frozen=True, slots=True)
class Loop:
    """One control loop: the users of a slice of a cell, planned together or (`single`) one alone."""

    cell: str
    slice_id: str
    users: tuple[str, ...]
    single: bool


class SliceXapp:
    """Proposes for every loop each `period_ms`, the loops spread over the period.

    Naive as they come: the value that arrived last counts, from whatever source, of whatever age, in whatever unit.
    `deadline_ms`: of each proposal, after it was made; None: it has none.
    """

    def __init__(
        self,
        loops: Sequence[Loop],
        start_ms: int,
        period_ms: int = 500,
        name: str = "xapp:slice-prb",
        deadline_ms: int | None = DEADLINE_MS,
    ) -> None:
        self.name = name
        self.deadline_ms = deadline_ms
        self._period_ms = period_ms
        self._loops = [(start_ms + period_ms * i // len(loops), loop) for i, loop in enumerate(loops)]
        self._seen: dict[tuple[str, str], float] = {}

    def see(self, report: Report, now_ms: int) -> None:
        for m in report.measurements:
            field = _READ.get(m.name)
            if field is not None and isinstance(m.value, int | float):
                self._seen[field, m.subject or report.subject or ""] = float(m.value)

    def due(self, now_ms: int) -> list[Draft]:
        drafts: list[Draft] = []
        for i, (at, loop) in enumerate(self._loops):
            if at <= now_ms:
                self._loops[i] = (at + ((now_ms - at) // self._period_ms + 1) * self._period_ms, loop)
                draft = self._plan(loop)
                if draft is not None:
                    drafts.append(draft)
        return drafts

    def _plan(self, loop: Loop) -> Draft | None:
        """A plan that fits, as far as the xApp knows; None where nothing was seen yet or nothing fits."""
        place = f"cell:{loop.cell}/slice:{loop.slice_id}"
        promised, capacity = self._seen.get(("min_rate", place)), self._seen.get(("capacity", place))
        sinrs = [self._seen.get(("sinr", f"cell:{loop.cell}/ue:{user}")) for user in loop.users]
        if promised is None or capacity is None:
            return None
        shares: dict[str, float] = {}
        for user, sinr in zip(loop.users, sinrs, strict=True):
            if sinr is None:
                return None
            shares[user] = max(0.01, round(float(bandwidth_mhz(promised, sinr - HEADROOM_DB)), 3))
        if loop.single:
            (user,) = loop.users
            if shares[user] > capacity / 2:
                return None
            return Draft(
                "slicing/1",
                {"cell": loop.cell, "slice": loop.slice_id, "ue": user},
                f"{place}/ue:{user}/prb",
                {"bandwidth": {"value": shares[user], "unit": "MHz"}},
            )
        if sum(shares.values()) > capacity:
            return None
        return Draft(
            "slicing-multi/1",
            {"cell": loop.cell, "slice": loop.slice_id, "ue": loop.users},
            f"{place}/prb",
            {"bandwidth": {"value": shares, "unit": "MHz"}},
        )
