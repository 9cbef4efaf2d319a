"""Check 2: the event time lies neither ahead of the clocks nor further back than δ (eq. 5; the boundary is fresh).

What the contract's own control moves must also have been measured since the last control (section 7).
"""

from xapp.contract import Field
from xapp.integrity.fault import Fault
from xapp.model import Observation


def ahead(event_time_ms: int, clock_ms: int, skew_ms: int) -> bool:
    """Whether it was measured later than a clock may have shown."""
    return event_time_ms > clock_ms + skew_ms


def check_future(observation: Observation, now_ms: int, skew_ms: int) -> Fault | None:
    event = observation.event_time_ms
    if ahead(event, now_ms, skew_ms):
        return Fault("future", f"measured {event - now_ms} ms after the decision")
    if ahead(event, observation.ingest_time_ms, skew_ms):
        return Fault("future", f"measured {event - observation.ingest_time_ms} ms after it arrived")
    return None


def check_age(event_time_ms: int, now_ms: int, freshness_ms: int) -> Fault | None:
    age = now_ms - event_time_ms
    return Fault("stale", f"{age} ms old, limit {freshness_ms} ms") if age > freshness_ms else None


def check_causality(event_time_ms: int, moved_ms: int | None, field: Field) -> Fault | None:
    """`moved_ms`: when a control last moved the network. Measured at that very instant is not before it."""
    if moved_ms is None or not field.moved_by_control or event_time_ms >= moved_ms:
        return None
    return Fault("causally_stale", f"measured {moved_ms - event_time_ms} ms before the last control was applied")
