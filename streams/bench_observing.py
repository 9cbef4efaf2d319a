"""What it costs to look on: decisions of a desk with and without its observers, in one run; a part of `make bench`.

In process and without a broker: deciding, and telling what was published, are all there is to measure.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from time import process_time
from types import SimpleNamespace
from typing import Any, Final

import structlog

from streams.bench_decisions import NOW_MS, episode
from streams.decision_log import DecisionLog
from streams.logs import log_to
from streams.metrics import Metrics
from streams.observing import Observer, Observers, Published
from xapp.authorization import decision_json
from xapp.engine import assure
from xapp.model import Decision, Episode

ROUNDS: Final = 10
AT_ONCE: Final = 200
"""Decisions of one round; rounds with and without observers take turns, so that both see the same machine."""


def measure_observing(rounds: int = ROUNDS) -> dict[str, float]:
    """`observing_ratio`: decisions per CPU second with metrics and the decision log, as part of those without;
    `log_line_us`, `metrics_us`: CPU of one decision.
    """
    one = episode()
    published = _published(assure(one), one)
    before = structlog.get_config()
    log_to(io.BytesIO())
    try:
        log, metrics = DecisionLog(), Metrics(SimpleNamespace(), lambda: NOW_MS)  # type: ignore[arg-type]
        bare, seen = [], []
        for _ in range(rounds):
            bare.append(_round(one, published, ()))
            seen.append(_round(one, published, (metrics, log)))
        return {
            "observing_ratio": min(bare) / min(seen),
            "log_line_us": _microseconds(log, published),
            "metrics_us": _microseconds(metrics, published),
        }
    finally:
        structlog.configure(**before)


def _round(one: Episode, published: Published, observers: Iterable[Observer]) -> float:
    """CPU seconds."""
    told = Observers(observers, lambda _: None)
    started = process_time()
    for _ in range(AT_ONCE):
        decision = assure(one)
        decision_json(decision)
        if told:
            told.tell(replace(published, decision=decision))
    return process_time() - started


def _microseconds(observer: Observer, published: Published, count: int = 5_000) -> float:
    started = process_time()
    for _ in range(count):
        observer.published(published)
    return (process_time() - started) / count * 1e6


def _published(decision: Decision, one: Episode) -> Published:
    proposal: dict[str, Any] = dict(one.proposal_raw)
    return Published(
        decision=decision,
        proposal=proposal,
        region="bench",
        partition=0,
        sequence=0,
        attempt=1,
        final=True,
        appended_at_ms=NOW_MS - 3,
        decided_at_ms=NOW_MS,
        published_at_ms=NOW_MS + 4,
        until_ms=None,
        decide_s=0.0002,
        publish_s=0.004,
        record=b"",
    )
