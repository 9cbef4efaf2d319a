"""Windowed constraints (eq. 4): a condition must hold at every instant of [t − window, t] (section 4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from xapp.contract import Constraint, Member
from xapp.expression import NoValue
from xapp.integrity.fault import Verdict
from xapp.integrity.monitor import Monitor


class Sustained(NamedTuple):
    """What a window shows. `gap`, `dip`: why nothing, or too little, is known; when it did not hold.

    `samples`: observations that were read, sorted; `until_ms`: the last sample + max_gap_ms, least over the inputs.
    """

    gap: str | None
    dip: str | None
    samples: tuple[str, ...]
    until_ms: int


class _Series(NamedTuple):
    member: Member
    times: list[int]
    verdicts: list[Verdict]

    def at(self, instant: int) -> Verdict | None:
        """The head as of `instant`, where one is known."""
        index = bisect_right(self.times, instant) - 1
        if index < 0 or self.verdicts[index].fault is not None:
            return None
        return self.verdicts[index]


def judge_window(
    constraint: Constraint,
    supports: Mapping[Member, tuple[Verdict, bool]],
    monitor: Monitor,
    now_ms: int,
    holds_with: Callable[[Mapping[str, Any]], bool],
) -> Sustained:
    """Judge a constraint that holds at t over the rest of its window.

    `supports`: each member that the constraint rests on → its supporting verdict, and whether it stands alone (memory,
    an answer).
    `holds_with`: observed values at one instant → whether the constraint holds there; raises NoValue.
    """
    assert constraint.window_ms is not None
    start = now_ms - constraint.window_ms
    gap: str | None = None
    until = []
    series: list[_Series] = []
    instants = {start}
    for member, (support, recalled) in supports.items():
        history = monitor.history(member, support.observation.source, support if recalled else None)
        times = [time for time, _ in history]
        first = max(bisect_right(times, start) - 1, 0)
        one = _Series(member, times[first:], [verdict for _, verdict in history[first:]])
        limit = member.field.freshness_ms if constraint.max_gap_ms is None else constraint.max_gap_ms
        gap = gap or _gap(one, start, now_ms, limit)
        instants.update(time for time in one.times if start < time < now_ms)
        until.append(one.times[-1] + limit)
        series.append(one)
    dip: str | None = None
    for instant in sorted(instants):
        values = _values_at(series, instant)
        if values is None:
            gap = gap or f"nothing is known {now_ms - instant} ms before the decision"
            continue
        try:
            held = holds_with(values)
        except NoValue as error:
            gap = gap or f"has no value {now_ms - instant} ms before the decision: {error}"
            continue
        if not held and dip is None:
            dip = f"did not hold {now_ms - instant} ms before the decision"
    samples = tuple(sorted({v.observation.id for one in series for v in one.verdicts}))
    return Sustained(gap, dip, samples, min(until))


def _gap(series: _Series, start: int, now_ms: int, limit: int) -> str | None:
    name = series.member.field.name
    if series.times[0] > start:
        return f"{name}: nothing is known before {now_ms - series.times[0]} ms ago"
    for earlier, later in zip(series.times, [*series.times[1:], now_ms], strict=True):
        if later - earlier > limit:
            return f"{name}: {later - earlier} ms without a sample, limit {limit} ms"
    for time, verdict in zip(series.times, series.verdicts, strict=True):
        if verdict.fault is not None:
            return f"{name}: nothing is known {now_ms - max(time, start)} ms ago: {verdict.fault.detail}"
    return None


def _values_at(series: list[_Series], instant: int) -> dict[str, Any] | None:
    values: dict[str, Any] = {}
    for one in series:
        verdict = one.at(instant)
        if verdict is None:
            return None
        name, key = one.member.field.name, one.member.key
        if key is None:
            values[name] = verdict.value
        else:
            values.setdefault(name, {})[key] = verdict.value
    return values
