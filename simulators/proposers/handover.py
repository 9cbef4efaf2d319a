"""A handover xApp: event A3 with a time to trigger, on the last RSRPs seen and its own clock."""

from __future__ import annotations

from typing import Final

from simulators.proposers.base import DEADLINE_MS, Draft
from xapp.model import Report
from xapp.radio.handover import a3_margin_db

OFFSET_DB: Final = 3.2
TRIGGER_MS: Final = 640
"""A3 offset and TimeToTrigger (3GPP TS 38.331); the next longer than the contract's 480 ms."""
_AGAIN_AFTER_MS: Final = 500
_SERVING, _NEIGHBOUR = "L1M.SS-RSRP", "L1M.SS-RSRPNrNbr"


class HandoverXapp:
    """Proposes to move a user to its best neighbour once that was better for the trigger time, and again each 500 ms.

    Naive as they come: it counts time by its own clock whether or not anything new arrived, and takes numbers for dBm.
    """

    name = "xapp:handover"
    deadline_ms: int | None = DEADLINE_MS

    def __init__(self) -> None:
        self._rsrp: dict[str, dict[str, float]] = {}
        self._serving: dict[str, str] = {}
        self._better_since: dict[str, tuple[str, int]] = {}
        self._quiet_until: dict[str, int] = {}

    def see(self, report: Report, now_ms: int) -> None:
        for m in report.measurements:
            if m.name not in (_SERVING, _NEIGHBOUR) or not isinstance(m.value, int | float) or m.subject is None:
                continue
            user, _, cell = m.subject.removeprefix("ue:").partition("/cell:")
            self._rsrp.setdefault(user, {})[cell] = float(m.value)
            if m.name == _SERVING and self._serving.get(user) != cell:
                self._serving[user] = cell
                self._better_since.pop(user, None)

    def due(self, now_ms: int) -> list[Draft]:
        drafts: list[Draft] = []
        for user, serving in self._serving.items():
            rsrp = self._rsrp[user]
            target = max((cell for cell in rsrp if cell != serving), key=lambda c: rsrp[c], default=serving)
            if target == serving or a3_margin_db(rsrp[target], rsrp[serving]) < OFFSET_DB:
                self._better_since.pop(user, None)
                continue
            since = self._better_since.setdefault(user, (target, now_ms))
            if since[0] != target:
                self._better_since[user] = (target, now_ms)
            elif now_ms - since[1] >= TRIGGER_MS and now_ms >= self._quiet_until.get(user, 0):
                self._quiet_until[user] = now_ms + _AGAIN_AFTER_MS
                bindings = {"ue": user, "serving": serving, "target": target}
                drafts.append(Draft("handover/1", bindings, f"ue:{user}/serving_cell", {}))
        return drafts
