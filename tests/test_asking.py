"""Laws of asking a source in outage: bounded, spaced, once for all, forgotten as soon as it is heard."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streams.asking import ANSWER_MS, Asks
from xapp.model import Retry, SourceState

T0 = 1_790_000_000_000
SOURCE = "rt:north"


@dataclass(frozen=True)
class Said:
    """What `next_request` reads of a decision."""

    decision_id: str
    retry: Retry


def outage(left: int, after_ms: int | None = 100) -> dict[str, SourceState]:
    return {SOURCE: SourceState("outage", True, after_ms, left)}


def ask(asks: Asks, states: dict[str, SourceState], t_ms: int, name: str = "d") -> Any:
    state = asks.terms(states, t_ms)[SOURCE]
    said: Any = Said(f"{name}/{t_ms}", Retry(SOURCE, state.retry_after_ms or 0, state.retries_left))
    asked = asks.next_request(said, t_ms)
    if asked is not None:
        asks.note(asked)
    return asked


@given(st.integers(0, 6), st.integers(0, 5_000), st.integers(1, 1_000))
def test_a_source_is_asked_as_often_as_it_allows_and_no_more(left: int, after_ms: int, spacing_ms: int) -> None:
    asks, states, t = Asks(spacing_ms), outage(left, after_ms), T0
    times: list[int] = []
    while asks.terms(states, t)[SOURCE].retries_left > 0:
        asked = ask(asks, states, t)
        assert asked is not None
        times.append(t)
        assert asks.terms(states, t)[SOURCE].retries_left == left - len(times) + 1  # it may still answer
        t = asked.until_ms + 1
    assert len(times) == left
    for number, (before, after) in enumerate(pairwise(times)):
        wait = after_ms << number
        assert after - before > max(wait, spacing_ms)
        assert after - before <= max(wait + wait // 4, spacing_ms) + ANSWER_MS + 1


def test_while_an_answer_may_come_nobody_asks_again_and_the_rest_of_the_back_off_is_what_remains() -> None:
    asks, states = Asks(1), outage(3, 1_000)
    asked = ask(asks, states, T0)
    assert ask(asks, states, T0 + 1, "other") is None
    assert asks.terms(states, T0 + 500)[SOURCE].retry_after_ms == asked.until_ms - T0 - 500
    assert ask(asks, states, asked.until_ms) is None
    assert ask(asks, states, asked.until_ms + 1) is not None


def test_a_source_that_is_heard_begins_anew() -> None:
    asks, states = Asks(1), outage(1)
    asked = ask(asks, states, T0)
    assert asks.terms(states, asked.until_ms + 1)[SOURCE].retries_left == 0
    asks.heard(SOURCE)
    assert asks.terms(states, asked.until_ms + 1) == states


def test_a_source_without_a_finite_back_off_or_that_cannot_be_asked_is_left_as_it_is() -> None:
    asks = Asks(1)
    ask(asks, outage(3), T0)
    final = {SOURCE: SourceState("outage", False, None, 0)}
    assert asks.terms(final, T0 + 10_000) == final
    assert asks.terms(outage(3, None), T0 + 10_000)[SOURCE].retry_after_ms is None


def test_the_jitter_follows_from_the_decision_alone_and_spreads() -> None:
    waits = set()
    for name in range(50):
        first, second = Asks(1), Asks(1)
        one, other = ask(first, outage(1, 10_000), T0, str(name)), ask(second, outage(1, 10_000), T0, str(name))
        assert one == other
        waits.add(one.until_ms)
    assert len(waits) > 40


def test_a_snapshot_takes_back_what_was_asked_since() -> None:
    asks, states = Asks(1), outage(3)
    before = asks.snapshot()
    ask(asks, states, T0)
    asks.restore(before)
    assert asks.terms(states, T0) == states
