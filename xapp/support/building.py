"""A reference map from recordings: what they cover, who is admitted, what drift is (section 5.1).

Of each quarter of the day the newest run of whole partitions that the recordings cover is the reference. What else they
cover of that quarter calibrates the drift limit: those partitions the standard has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from xapp.contract import Contract
from xapp.evidence.series import ReportColumns
from xapp.model import Report
from xapp.support.book import SupportBook
from xapp.support.component import Component
from xapp.support.drift import conformal_limit, fit
from xapp.support.features import features
from xapp.support.reference_map import DriftLimit, ReferenceMap, digest_of
from xapp.support.rule import Rule
from xapp.support.terms import Terms

ALPHA: Final = 0.05
"""The chance that a partition like those of the reference exceeds the limit."""
NEEDED: Final = math.ceil(round(1 / ALPHA - 1, 9))
"""Calibration partitions without which no limit has that level: 19."""
FLOOR: Final = 0.01
"""The least deviation of a feature, all of the order of 1: a hundredth of a share, of a split, of the visits."""
_EVERY: Final = 2**53  # partitions kept while a map is built: all


class Admission(NamedTuple):
    """Whether a field is admitted in a component by the reference gate; `partitions` of it have enough visits."""

    field: str
    component: Component
    partitions: int
    admitted: bool


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
    """A map from what arrived: (report, when it arrived), in order of arrival. `recordings`: the digests of its source.

    A partition is covered where something arrived in it, and in the one before and after it: so neither where a
    recording begins or ends within it. Raises ValueError where the terms are for another contract.
    """
    book = SupportBook(contract, terms, kept_partitions=_EVERY)
    heard: set[int] = set()
    for report, ingest_ms in arrivals:
        heard.add(ingest_ms // terms.partition_ms)
        book.observe(report, ingest_ms)
    covered = sorted(index for index in heard if {index - 1, index + 1} <= heard)
    runs: dict[int, int] = {}
    visits: dict[tuple[str, Component], tuple[int, ...]] = {}
    drift: dict[int, DriftLimit | str] = {}
    for quarter in range(4):
        of_quarter = [index for index in covered if terms.quarter_of_partition(index) == quarter]
        first = _newest_run(of_quarter, terms.rule.partitions)
        if first is None:
            drift[quarter] = f"the recordings cover no {terms.rule.partitions} consecutive partitions of this quarter"
            continue
        runs[quarter] = first
        run = range(first, first + terms.rule.partitions)
        visits |= _by_slot(book, run)
        further = [index for index in of_quarter if index not in run and book.profile(index).visits]
        drift[quarter] = _drift_limit(book, run, further)
    refreshed = previous is None or _is_newer(runs, recordings, terms, previous)
    built = ReferenceMap(
        map_id=map_id,
        version=version,
        contract_id=contract.contract_id,
        contract_digest=contract.digest,
        terms_digest=terms.digest,
        label="REFRESHED" if refreshed else "SMOKE_TEST",
        built_at_ms=built_at_ms,
        expires_at_ms=built_at_ms + terms.expires_after_ms,
        recordings=recordings,
        partitions=terms.rule.partitions,
        runs=runs,
        visits=visits,
        drift=drift,
    )
    return replace(built, digest=digest_of(built))


def admissions(reference_map: ReferenceMap, rule: Rule) -> tuple[Admission, ...]:
    """Every field and component that the reference has visits of, in order, and whether it is admitted."""
    found = []
    for (field, component), visits in sorted(reference_map.visits.items()):
        enough = sum(rule.adequate(visits))
        found.append(Admission(field, component, enough, enough >= rule.min_partitions))
    return tuple(found)


def _is_newer(runs: Mapping[int, int], recordings: Sequence[str], terms: Terms, previous: ReferenceMap) -> bool:
    """Whether a map rests on what the one before it could not: a recording that is new to it, and, in a quarter of the
    day, a reference that reaches further in time or that it had none of. So the same buffer is known however it was
    cut, thinned, reordered or mixed with others. Partitions of other terms cannot be compared.
    """
    if set(recordings) <= set(previous.recordings):
        return False
    if previous.terms_digest != terms.digest:
        return True
    return any(first > previous.runs.get(quarter, -1) for quarter, first in runs.items())


def _newest_run(indices: Sequence[int], length: int) -> int | None:
    """The first of the newest `length` consecutive indices among those, ascending; None where there are none."""
    for end in range(len(indices), length - 1, -1):
        first = indices[end - length]
        if indices[end - 1] - first == length - 1:
            return first
    return None


def _by_slot(book: SupportBook, run: range) -> dict[tuple[str, Component], tuple[int, ...]]:
    counts = [book.visits(index) for index in sorted(run, key=lambda index: index % len(run))]
    keys = sorted({key for count in counts for key in count})
    return {key: tuple(count.get(key, 0) for count in counts) for key in keys}


def _drift_limit(book: SupportBook, run: range, further: Sequence[int]) -> DriftLimit | str:
    """Standardised by the reference, calibrated on further partitions of the same quarter."""
    if len(further) < NEEDED:
        return f"{len(further)} further partitions of this quarter: at least {NEEDED} are needed for a limit"
    if len(run) < 2:
        return "a reference of one partition has no deviation"
    import numpy as np  # only where a map is built

    components = tuple(sorted({c for index in run for c in book.profile(index).visits}))
    standard = fit(np.array([features(book.profile(index), components) for index in run]), FLOOR)
    scores = [standard.score(features(book.profile(index), components)) for index in further]
    limit = conformal_limit(scores, ALPHA)
    assert limit is not None, f"{NEEDED} scores have a limit"
    return DriftLimit(components, standard, limit, len(scores))
