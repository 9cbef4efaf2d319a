"""What a check finds, and how faults are classed and filed (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from xapp.model import Observation


class Fault(NamedTuple):
    """The first check that an observation fails. `at`: ancestors at fault, empty where the fault is its own."""

    code: str
    detail: str
    at: tuple[str, ...] = ()


# code → class (section 5)
CLASSES: Final[dict[str, str]] = {
    "unknown_schema": "schema", "ambiguous_schema": "schema", "unknown_unit": "schema", "ambiguous_unit": "schema",
    "unknown_source": "provenance", "unresolved_provenance": "provenance",
    "stale": "freshness", "future": "freshness", "causally_stale": "freshness",
    "outage": "availability", "missing": "availability",
    "no_value": "domain", "out_of_range": "domain",
    "conflict": "conflict", "out_of_order": "conflict",
}  # fmt: skip

# A field blocked for several reasons is filed under the first group that has one (section 5); outages by their terms
AMBIGUOUS, DISAGREEING, UNPROVEN, RETRYABLE, UNKNOWN, NOT_CURRENT, DOMAIN, MISSING, FINAL = range(9)
GROUPS: Final[dict[str, int]] = {
    "ambiguous_schema": AMBIGUOUS, "ambiguous_unit": AMBIGUOUS,
    "conflict": DISAGREEING, "out_of_order": DISAGREEING,
    "unknown_source": UNPROVEN, "unresolved_provenance": UNPROVEN,
    "unknown_schema": UNKNOWN, "unknown_unit": UNKNOWN,
    "stale": NOT_CURRENT, "future": NOT_CURRENT, "causally_stale": NOT_CURRENT,
    "no_value": DOMAIN, "out_of_range": DOMAIN,
    "missing": MISSING,
}  # fmt: skip


class Verdict(NamedTuple):
    """One observation as evidence of one field. Admissible where `fault` is None; then `value` is in its unit."""

    observation: Observation
    fault: Fault | None
    value: Any
    effective_ms: int


@dataclass(frozen=True, slots=True)
class Filing:
    """What a blocked field is filed under (section 5). `rank`: group, then the source's place in contract order."""

    code: str
    group: int
    source: str
    source_rank: int
    observations: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int]:
        return self.group, self.source_rank
