"""What a check finds, and how faults are classed and filed (section 5)."""

from __future__ import annotations

from typing import Final, NamedTuple


class Fault(NamedTuple):
    """The first check that an observation fails. `at`: ancestors at fault, empty where the fault is its own."""

    code: str
    detail: str
    at: tuple[str, ...] = ()


# code → class (section 5)
CLASSES: Final[dict[str, str]] = {
    "unknown_schema": "schema", "ambiguous_schema": "schema", "unknown_unit": "schema", "ambiguous_unit": "schema",
    "unknown_source": "provenance", "unresolved_provenance": "provenance",
    "stale": "freshness", "future": "freshness",
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
    "stale": NOT_CURRENT, "future": NOT_CURRENT,
    "no_value": DOMAIN, "out_of_range": DOMAIN,
    "missing": MISSING,
}  # fmt: skip
