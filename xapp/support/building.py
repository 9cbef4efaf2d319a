"""A reference map from recordings: what they cover, who is admitted, what drift is (section 5.1)."""

from __future__ import annotations

from collections.abc import Iterable

from xapp.contract import Contract
from xapp.evidence.series import ReportColumns
from xapp.model import Report
from xapp.support.component import Component
from xapp.support.reference_map import ReferenceMap
from xapp.support.rule import Rule
from xapp.support.terms import Terms


def build(
    contract: Contract,
    terms: Terms,
    arrivals: Iterable[tuple[Report | ReportColumns, int]],
    *,
    map_id: str,
    version: int,
    built_at_ms: int,
    recordings: tuple[str, ...],
    previous: ReferenceMap | None = None,
) -> ReferenceMap:
    """A map from what arrived: (report, when it arrived), in order of arrival."""
    raise NotImplementedError


def admissions(reference_map: ReferenceMap, rule: Rule) -> tuple[tuple[str, Component, int, bool], ...]:
    """Of each field and component: (field, component, partitions with enough visits, whether it is admitted)."""
    raise NotImplementedError
