"""The book of visits: where the network has been lately, as reports arrive (docs/support-gate.md, "Words")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xapp.contract import Contract, Member
from xapp.evidence.series import ReportColumns
from xapp.model import Report
from xapp.support.component import Component
from xapp.support.terms import Terms


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One partition as the drift alarm looks at it. `visits`: component → visits of all fields; `load`, `cqi`: means of
    what was measured, 0 where nothing was. Compared by identity.
    """

    index: int
    visits: Mapping[Component, int]
    load: float
    cqi: float


@dataclass(frozen=True, slots=True)
class Window:
    """What was asked of a book. `first`: index of the oldest whole partition; per (field, subject) its component at t,
    and the visits of the field in it, in order of time; `profiles`: of the window's partitions, likewise.
    """

    first: int
    components: Mapping[tuple[str, str | None], Component]
    visits: Mapping[tuple[str, str | None], tuple[int, ...]]
    profiles: tuple[Profile, ...]


class SupportBook:
    """See the module. Raises ValueError where the terms are for another contract."""

    def __init__(self, contract: Contract, terms: Terms, *, kept_partitions: int | None = None) -> None:
        raise NotImplementedError

    def observe(self, report: Report | ReportColumns, ingest_ms: int) -> None:
        """Count what of a report counts; `ingest_ms`: when it arrived."""
        raise NotImplementedError

    def window(self, asked: Iterable[Member], t_ms: int) -> Window:
        """The last whole partitions at t, for these members."""
        raise NotImplementedError
