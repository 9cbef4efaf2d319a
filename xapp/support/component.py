"""A component: where the network is when it is measured (docs/support-gate.md, "Words").

Place, quarter of the day, load half, CQI third (sections 4.1 and 5.1 of the paper, with credit read as load).
"""

from __future__ import annotations

from typing import Final, NamedTuple

ANY: Final = "any"
"""The label of an axis that nothing is known of."""
LABELS: Final[dict[int, tuple[str, ...]]] = {1: ("low", "high"), 2: ("low", "middle", "high")}
"""Number of splits → the labels between them."""

QUARTER_MS: Final = 21_600_000  # a quarter of a day: 6 h
_MINUTE_MS: Final = 60_000


class Component(NamedTuple):
    """`quarter`: 0…3; `load`: `low`, `high` or `any`; `cqi`: `low`, `middle`, `high` or `any`."""

    place: str
    quarter: int
    load: str
    cqi: str

    @property
    def text(self) -> str:
        """What a person reads, and what orders components: `cell:1, quarter 2, load low, cqi high`."""
        place = self.place or "the network"
        return f"{place}, quarter {self.quarter}, load {self.load}, cqi {self.cqi}"

    def document(self) -> dict[str, str | int]:
        """Its JSON form."""
        return self._asdict()


def place_of(subject: str | None) -> str:
    """The `cell:` and `slice:` segments of a subject, in their order; a subject with neither is its own place.

    What has no subject is of the network as a whole, whose place is the empty text.
    """
    if subject is None:
        return ""
    return "/".join(s for s in subject.split("/") if s.startswith(("cell:", "slice:"))) or subject


def cell_of(place: str) -> str | None:
    """The cell that a place lies in; None where it names none."""
    return next((segment for segment in place.split("/") if segment.startswith("cell:")), None)


def quarter_of(t_ms: int, utc_offset_min: int) -> int:
    """The quarter of the local day, 0…3: [00, 06), [06, 12), [12, 18), [18, 24)."""
    return (t_ms + utc_offset_min * _MINUTE_MS) // QUARTER_MS % 4
