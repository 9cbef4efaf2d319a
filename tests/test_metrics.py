"""Metrics: what Prometheus reads is what the guard published."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from guard_rig import PARTITIONS, REGION, Rig, contracts, guarded, proposal, report, running
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from streams.alarm_watch import EscalationBell
from streams.broker import EmbeddedBroker
from streams.guard import Guard, unix_ms
from streams.messages import AnswerMessage, OutcomeMessage
from streams.metrics import BUCKETS_S, OTHER, PREFIX, WORST_SOURCES, Histogram, render
from streams.observing import Published
from streams.settings import GuardSettings
from streams.status import PartitionStatus, SourceView

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(guard: Guard) -> Series:
    text, _ = render(guard)
    return {
        (sample.name.removeprefix(PREFIX), frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, frozenset(labels.items())]


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds. The turn of the loop is given away, nothing is slept on."""
    async with asyncio.timeout(8):
        while not condition():  # noqa: ASYNC110 - of another task's state
            await asyncio.sleep(0.01)


async def busy(rig: Rig) -> Counter[tuple[str, str, str, str]]:
    """Proposals of every kind; what stands on `control`, counted by action, reason, final and switch."""
    await rig.send("telemetry", report("r1", 9))
    await rig.send("telemetry", b"no report")
    for number in range(5):
        await rig.send("proposals", proposal(f"good-{number}", control_key=f"cell:1/ue:{number}/prb"))
    await rig.send("proposals", proposal("kilohertz", plan={"bandwidth": {"value": 8_000, "unit": "kHz"}}))
    await rig.send("proposals", proposal("too-little", plan={"bandwidth": {"value": 0.1, "unit": "MHz"}}))
    await rig.send("proposals", proposal("elsewhere", bindings={"cell": "1", "ue": "8"}))
    for proposal_id in ("good-4", "kilohertz", "too-little", "elsewhere"):
        await rig.wait_for("control", lambda d, wanted=proposal_id: d["proposal_id"] == wanted and d["final"])
    await rig.wait_for("dead-letters")
    found: Counter[tuple[str, str, str, str]] = Counter()
    for message in rig.written["control"]:
        said = rig.opened(message)
        assert said is not None
        blocking = [v["code"] for v in said["violations"] if v["blocking"]]
        found[said["action"], (blocking or ["none"])[0], str(said["final"]).lower(), "live"] += 1
    return found


async def test_decisions_repairs_latencies_and_dead_letters_are_those_that_were_published() -> None:
    async with guarded(hold_ms=200) as (rig, guard):
        published = await busy(rig)
        assert {action for action, *_ in published} >= {"APPLY", "HOLD", "ABSTAIN"}
        await until(lambda: guard.statuses.keys() == set(range(PARTITIONS)))
        series = scraped(guard)
        told = {
            tuple(dict(labels)[name] for name in ("action", "reason", "final", "switch")): count
            for (name, labels), count in series.items()
            if name == "decisions_total"
        }
        assert told == published
        repairs = Counter(
            repair["operator"] for m in rig.written["control"] for repair in (rig.opened(m) or {})["repairs"]
        )
        assert {
            dict(labels)["operator"]: n for (name, labels), n in series.items() if name == "repairs_total"
        } == repairs
        total = sum(published.values())
        assert value(series, "decision_stage_seconds_count", stage="decide") == total
        assert value(series, "decision_stage_seconds_count", stage="publish") == total
        assert value(series, "decision_stage_seconds_count", stage="total") == 8, "one for each proposal"
        assert value(series, "proposals_total") == 8
        assert value(series, "dead_letters_total", topic="telemetry") == 1
        assert value(series, "dead_letters_total", topic="proposals") == 0
        assert value(series, "ready") == 1
        assert value(series, "partitions_owned") == PARTITIONS


async def test_what_waits_and_the_chain_of_records_are_told_of_the_present() -> None:
    async with guarded(hold_ms=60_000) as (rig, guard):
        await rig.send("proposals", proposal("waits"))
        await rig.wait_for("control", lambda d: d["action"] == "HOLD")
        await until(lambda: any(status.open["HOLD"] for status in guard.statuses.values()))
        series = scraped(guard)
        assert value(series, "open_proposals", waits_for="evidence") == 1
        assert value(series, "open_proposals", waits_for="operator") == 0
        chains = [count for (name, _), count in series.items() if name == "record_chain_index"]
        assert sorted(chains) == [0, 0, 0, 1]
        assert value(series, "leases") == 0


async def test_the_age_of_evidence_grows_although_nothing_is_said() -> None:
    clock = SimpleNamespace(ms=unix_ms())
    async with guarded(clock=lambda: clock.ms) as (rig, guard):
        await rig.send("telemetry", report("r1", 9, clock.ms - 2_000))
        await until(lambda: any(status.sources for status in guard.statuses.values()))
        where = {"region": REGION, "source": "e2:gnb-1"}
        assert value(scraped(guard), "evidence_age_seconds", **where) == 2
        clock.ms += 5_000
        assert value(scraped(guard), "evidence_age_seconds", **where) == 7
        assert value(scraped(guard), "evidence_limit_seconds", **where) == 30


async def test_only_the_worst_sources_are_told_one_by_one() -> None:
    async with guarded() as (_, guard):
        await until(lambda: guard.statuses.keys() == set(range(PARTITIONS)))
        now_ms = unix_ms()
        views = [SourceView("r", f"s{n}", "up", now_ms - 1_000 * n, now_ms, 10_000, None) for n in range(200)]
        was: PartitionStatus = guard.statuses[0]
        told = {name: getattr(was, name) for name in PartitionStatus.__slots__}
        guard.statuses[0] = PartitionStatus(**(told | {"sources": views}))  # type: ignore[index]
        series = scraped(guard)
    ages = {dict(labels)["source"] for (name, labels) in series if name == "evidence_age_seconds"}
    assert ages == {f"s{n}" for n in range(200 - WORST_SOURCES, 200)}


async def test_ever_new_sources_do_not_make_ever_new_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.metrics.MOST_NAMED", 50)
    told = set[tuple[str, str]]()
    async with guarded() as (_, guard):
        await until(lambda: guard.statuses.keys() == set(range(PARTITIONS)))
        now_ms, was = unix_ms(), guard.statuses[0]
        for number in range(40):
            views = [
                SourceView(f"r{number}", f"s{n}", "up", now_ms - 60_000 * (number + 1) - n, now_ms, 10_000, None)
                for n in range(20)
            ]
            guard.statuses[0] = replace(was, sources=views)  # type: ignore[index]
            series = scraped(guard)
            ages = [dict(labels) for name, labels in series if name == "evidence_age_seconds"]
            told |= {(labels["region"], labels["source"]) for labels in ages}
        assert value(series, "evidence_age_seconds", region=OTHER, source=OTHER) >= 40 * 60
    assert len(told) == 51


async def test_what_can_be_counted_is_told_as_0_before() -> None:
    """An alert on `increase` never hears of a series that begins at 1."""
    guard = Guard(GuardSettings.embedded("localhost:1"), contracts(), observers=[Breaking()])
    guard.observe(EscalationBell())
    series = scraped(guard)
    for name, label, values in (
        ("observer_failures_total", "observer", {"Metrics", "Breaking", "EscalationBell"}),
        ("outcomes_total", "outcome", set(get_args(OutcomeMessage.model_fields["outcome"].annotation))),
        ("answers_total", "verdict", set(get_args(AnswerMessage.model_fields["verdict"].annotation))),
    ):
        found = {dict(labels)[label]: count for (known, labels), count in series.items() if known == name}
        assert found == dict.fromkeys(values, 0)


async def test_the_text_is_what_promtool_takes() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    async with guarded(hold_ms=200) as (rig, guard):
        await busy(rig)
        await until(lambda: any(status.sources for status in guard.statuses.values()))
        text, content_type = render(guard)
    assert content_type.startswith("text/plain; version=0.0.4")
    check = [promtool, "check", "metrics"]
    found = await asyncio.to_thread(subprocess.run, check, input=text, capture_output=True, check=False)
    assert (found.returncode, found.stderr.decode()) == (0, "")


async def test_names_begin_as_those_of_an_xapp_and_every_help_is_a_sentence() -> None:
    async with guarded() as (_, guard):
        families = [*text_string_to_metric_families(render(guard)[0].decode())]
    own = [family for family in families if not family.name.startswith("process_")]
    assert all(family.name.startswith("ricxapp_wirelessops_") for family in own)
    assert all(family.documentation.endswith(".") and " " in family.documentation for family in own)


class Breaking:
    """An observer that fails, and says how often it was told."""

    def __init__(self) -> None:
        self.told = 0

    def published(self, published: Published) -> None:
        self.told += 1
        raise RuntimeError("a bug of an observer")


async def test_a_failing_observer_is_counted_logged_once_and_harms_no_decision(capsys: Any) -> None:
    breaking = Breaking()
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(broker.bootstrap_servers, hold_ms=100)
        guard = Guard(settings, contracts(), observers=[breaking])
        rig = Rig(broker.bootstrap_servers)
        async with running(guard):
            await rig.open()
            await rig.send("telemetry", report("r1", 9))
            for number in range(3):
                await rig.send("proposals", proposal(f"p{number}", control_key=f"k{number}"))
                await rig.wait_for("control", lambda d, n=number: d["proposal_id"] == f"p{n}" and d["final"])
            await until(lambda: breaking.told >= 3)
            series = scraped(guard)
        await rig.close()
    assert value(series, "observer_failures_total", observer="Breaking") == breaking.told
    assert capsys.readouterr().out.count("an observer failed") == 1


@given(st.lists(st.floats(0, 100, allow_nan=False)))
def test_buckets_hold_what_was_at_most_so_long(seconds: list[float]) -> None:
    histogram = Histogram()
    for second in seconds:
        histogram.observe(second)
    assert histogram.buckets() == [
        *((str(bound), sum(s <= bound for s in seconds)) for bound in BUCKETS_S),
        ("+Inf", len(seconds)),
    ]
