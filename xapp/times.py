"""Times are Unix milliseconds, UTC, in [10^11, 10^14) (rules, section 1): what lies outside is in another unit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

EARLIEST_MS: Final = 10**11  # 1973; below it, a time in seconds
LATEST_MS: Final = 10**14  # the year 5138; from it on, a time in µs or ns


def time_fault(value: int) -> str | None:
    """Why `value` is no time in ms, and which unit it probably is in; None where it is one."""
    if EARLIEST_MS <= value < LATEST_MS:
        return None
    looks = ""
    if 10**8 <= value < EARLIEST_MS:
        looks = ": it looks like seconds"
    elif LATEST_MS <= value < 10**17:
        looks = ": it looks like microseconds"
    elif 10**17 <= value < 10**20:
        looks = ": it looks like nanoseconds"
    return f"{value} is no time in milliseconds since 1970, in [10^11, 10^14){looks}"


def utc(t_ms: int) -> str:
    """A time as people read it: `2026-11-30 20:00:00 UTC`. Raises ValueError or OverflowError beyond the year 9999."""
    return datetime.fromtimestamp(t_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
