"""`status`: what the owner of a partition says of it, every second."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from guard_rig import CONTRACT, PARTITIONS, PREFIX, REGION, contracts, guarded, proposal, report

from streams import status
from streams.deciding import History, RegionState
from streams.guard import unix_ms
from streams.messages import StatusMessage
from streams.metrics import render
from streams.publishing import PlainPublisher, PublishError
from streams.status import MOST_SOURCES, Freshness, SourceView, Survey, survey
from streams.topics import partition_of
from xapp.contract_loading import load_contract

OWN = partition_of(REGION, range(PARTITIONS))


async def statuses(bootstrap_servers: str, wanted: Any) -> tuple[dict[int, StatusMessage], dict[str, Any]]:
    """Read `status` until the newest of each partition are as wanted."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(PREFIX + "status", p) for p in range(PARTITIONS)])
        found: dict[int, StatusMessage] = {}
        async with asyncio.timeout(8):
            async for message in consumer:
                found[message.partition] = StatusMessage.model_validate_json(message.value)
                assert message.key == str(found[message.partition].partition).encode()
                if wanted(found):
                    return found, orjson.loads(message.value)
    finally:
        await consumer.stop()
    raise AssertionError("no such status")


async def test_every_partition_is_told_of_with_what_waits_in_it_and_when_its_sources_were_heard() -> None:
    async with guarded(hold_ms=60_000) as (rig, guard):
        event_time_ms = unix_ms() - 40_000
        await rig.send("telemetry", report("r1", 9, event_time_ms, period_ms=50_000))
        await rig.send("proposals", proposal("p1"))
        await rig.wait_for("control", lambda d: d["action"] == "HOLD")
        found, _ = await statuses(
            rig.bootstrap_servers,
            lambda s: len(s) == PARTITIONS and s[OWN].open.HOLD == 1 and s[OWN].sources,
        )
        own = found[OWN]
        assert (own.guard, own.warm, own.why_not_ready, own.decisions, own.records) == ("guard", True, None, 1, 1)
        assert own.behind == dict.fromkeys(("telemetry", "proposals", "queries", "outcomes", "answers"), 0)
        (source,) = own.sources
        assert (source.region, source.source, source.state, source.event_time_ms) == (
            REGION, "e2:gnb-1", "up", event_time_ms,
        )  # fmt: skip
        assert source.limit_ms == CONTRACT["fields"]["cqi"]["freshness_ms"]
        assert source.period_ms == 50_000
        assert own.source_counts == {"up": 0, "outage": 0, "stale": 1}
        others = [status for p, status in found.items() if p != OWN]
        assert all((s.decisions, s.sources, s.open.HOLD) == (0, [], 0) for s in others)
        assert set(guard.statuses) == set(range(PARTITIONS))


async def test_the_status_is_valid_by_its_exported_json_schema() -> None:
    import jsonschema

    from streams.messages import schemas

    async with guarded() as (rig, _):
        _, document = await statuses(rig.bootstrap_servers, lambda s: s)
    jsonschema.Draft202012Validator(schemas()["wirelessops.status/1"]).validate(document)


def contract(name: str, freshness: dict[str, tuple[int, list[str]]], **over: Any) -> Any:
    observed = {"kind": "observed", "unit": "1", "subject": "cell:{cell}", **over}
    fields = {
        field: {**observed, "freshness_ms": ms, "sources": sources}
        for field, (ms, sources) in freshness.items()
    }
    planned = {"x": {"kind": "planned", "unit": "1"}}
    return load_contract({"contract_id": name, "fields": fields | planned})


def test_the_limit_of_a_source_is_the_tightest_of_any_field_of_any_contract_that_lists_it_and_that_it_reports() -> None:
    freshness = Freshness(
        [
            contract("a/1", {"one": (900, ["e2:gnb-{cell}"]), "two": (500, ["o1:pm", "e2:gnb-{cell}"])}),
            contract("b/1", {"three": (700, ["o1:pm"]), "four": (50, ["e2:x-{cell}-y"])}),
        ]
    )
    everything = {"one", "two", "three", "four"}
    assert freshness.limit_ms("e2:gnb-17", everything) == 500
    assert freshness.limit_ms("e2:gnb-17", {"one", "three"}) == 900
    assert freshness.limit_ms("o1:pm", everything) == 500
    assert freshness.limit_ms("o1:pm", {"three"}) == 700
    assert freshness.limit_ms("e2:x-1-y", everything) == 50
    for nothing in ({"other"}, set[str]()):  # an outage is told of by a source that never reported
        assert freshness.limit_ms("o1:pm", nothing) == 500
    for stranger in ("e2:x-1-z", "operator:alice"):
        assert freshness.limit_ms(stranger, everything) is None
    assert freshness.limit_ms("e2:gnb-", everything) is None, "a binding is never empty"


async def test_a_source_is_not_stale_by_the_limit_of_what_it_never_reports() -> None:
    """Names are the contract's, and their aliases, however they are written; a source is known by its own region."""
    documents = [
        contract("a/1", {"sinr": (800, ["e2:{cell}"])}),
        contract("b/1", {"load": (30_000, ["e2:{cell}"])}, aliases=["prb load"]),
    ]
    both = {one.contract_id: one for one in documents}
    now_ms = unix_ms()
    states = {region: RegionState(region, both, History(600_000, 10), 200) for region in ("north", "south")}
    for region, name in (("north", "PRB-load"), ("south", "sinr")):
        measured = [{"name": name, "value": 1, "unit": "1"}]
        states[region].ingest(report("r", 9, now_ms - 5_000, source="e2:1", measurements=measured), now_ms - 5_000)
    found = await survey(SimpleNamespace(states=states), Freshness(documents), now_ms)  # type: ignore[arg-type]
    assert {view.region: (view.limit_ms, view.standing(now_ms)) for view in found.worst} == {
        "north": (30_000, "up"),
        "south": (800, "stale"),
    }


@pytest.mark.parametrize(
    ("state", "event_time_ms", "counted"),
    [("up", 9_500, "up"), ("up", 9_000, "up"), ("up", 8_999, "stale"), ("up", None, "stale"), ("outage", 0, "outage")],
)
def test_a_source_is_stale_once_its_age_exceeds_its_limit(state: Any, event_time_ms: Any, counted: str) -> None:
    view = SourceView("north", "a", state, event_time_ms, event_time_ms, 1_000, None)
    assert view.standing(10_000) == counted


async def test_sources_are_listed_worst_first_and_strangers_not_at_all() -> None:
    async with guarded(
        document={
            **CONTRACT,
            "fields": {
                **CONTRACT["fields"],
                "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["a", "b", "c"], "subject": "cell:{cell}/ue:{ue}"},
            },
        }
    ) as (rig, guard):
        now_ms = unix_ms()
        for name, age_ms in (("a", 100), ("b", 20_000), ("c", 5_000), ("stranger", 25_000)):
            await rig.send("telemetry", report("r", 9, now_ms - age_ms, source=name))
        outage = {
            "format": "wirelessops.source-status/1", "source": "a", "status": "outage", "event_time_ms": now_ms,
            "retryable": False,
        }  # fmt: skip
        await rig.send("telemetry", orjson.dumps(outage))
        found, _ = await statuses(
            rig.bootstrap_servers, lambda s: OWN in s and any(v.state == "outage" for v in s[OWN].sources)
        )
        assert [(v.source, v.state) for v in found[OWN].sources] == [("a", "outage"), ("b", "up"), ("c", "up")]
        assert guard.counters.dead_letters.total() == 0


LISTED = {**CONTRACT, "fields": {**CONTRACT["fields"], "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["e2:{cell}"]}}}


def many_sources(regions: int, sources: int, now_ms: int) -> Any:
    """Books of so many regions with so many sources each, every one a second older than the one before."""
    states = {}
    for number in range(regions):
        state = states[f"r{number}"] = RegionState(f"r{number}", contracts(LISTED), History(600_000, 10), 200)
        for source in range(sources):
            age_ms = 1_000 * (number * sources + source)
            state.ingest(report("r", 9, now_ms - age_ms, source=f"e2:{source}"), now_ms - age_ms)
    return SimpleNamespace(states=states)


async def test_of_many_sources_the_worst_are_listed_all_are_counted_and_others_run_meanwhile() -> None:
    now_ms, longest, turns = unix_ms(), 0.0, 0

    async def others() -> None:
        nonlocal longest, turns
        while True:
            began_s = time.thread_time()
            await asyncio.sleep(0)
            longest, turns = max(longest, time.thread_time() - began_s), turns + 1

    other = asyncio.create_task(others())
    found = await survey(many_sources(200, 20, now_ms), Freshness(contracts(LISTED).values()), now_ms)
    other.cancel()
    assert [(now_ms - (view.event_time_ms or 0)) // 1_000 for view in found.worst] == [*range(3_999, 3_499, -1)]
    assert found.counts == {"up": 31, "stale": 3_969, "outage": 0}, "the limit is 30 s"
    assert found.omitted == 4_000 - MOST_SOURCES
    assert turns > 10
    assert longest < found.busy_s / 3


async def test_many_sources_are_looked_at_less_often_than_a_status_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Counter[int]()

    async def long(books: Any, *_: Any) -> Survey:
        looked[books.partition] += 1
        return Survey(busy_s=0.05)

    monkeypatch.setattr(status, "EVERY_S", 0.05)
    monkeypatch.setattr(status, "survey", long)
    async with guarded() as (_, guard):
        seen = set[int]()
        async with asyncio.timeout(8):
            while len(seen) < 10:  # statuses, each of its own moment
                seen |= {one.at_ms for partition, one in guard.statuses.items() if partition == OWN}
                await asyncio.sleep(0.01)
    assert 1 <= looked[OWN] <= 3


async def test_a_source_with_an_endless_name_keeps_no_status_from_being_written() -> None:
    async with guarded(document=LISTED) as (rig, guard):
        for name in ("e2:" + "x" * 900_000, "e2:\x00\n", "e2:1"):
            await rig.send("telemetry", report("r", 9, source=name))
        found, _ = await statuses(rig.bootstrap_servers, lambda s: OWN in s and s[OWN].sources)
        assert [view.source for view in found[OWN].sources] == ["e2:1"]
        assert guard.ready
        assert guard.counters.dead_letters.total() == 0


async def test_a_guard_whose_batches_are_refused_is_ready_at_no_moment_between_its_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(*_: Any) -> None:
        raise PublishError("the disk is full")

    monkeypatch.setattr("streams.guard._AGAIN_S", 0.05)
    async with guarded() as (rig, guard):
        assert guard.ready
        with monkeypatch.context() as full:
            full.setattr(PlainPublisher, "publish", refused)
            await rig.send("proposals", proposal("p1"))
            seen = set[str | None]()
            async with asyncio.timeout(8):
                while guard.counters.reopened < 4:
                    await asyncio.sleep(0)
                    seen |= {guard.why_not_ready()} if guard.counters.reopened else set()
            assert None not in seen
            assert f"a batch of partition {OWN} could not be written: the disk is full" in seen
            assert guard.why_dead() is None
        await rig.decision("p1")
        assert guard.ready


async def test_a_switch_in_force_is_told_of_until_it_is_live_again() -> None:
    async with guarded() as (rig, guard):

        async def switch(mode: str, region: str | None) -> None:
            document = {
                "format": "wirelessops.switch/1", "switch_id": f"s-{mode}", "mode": mode, "region": region,
                "operator": "alice", "reason": "storm", "at_ms": unix_ms(),
            }  # fmt: skip
            await rig.send("answers", orjson.dumps(document))

        await switch("hold", REGION)
        found, _ = await statuses(rig.bootstrap_servers, lambda s: OWN in s and s[OWN].switches)
        (told,) = found[OWN].switches
        assert (told.region, told.mode, told.operator, told.reason) == (REGION, "hold", "alice", "storm")
        text = render(guard)[0].decode()
        assert 'ricxapp_wirelessops_switched_partitions{mode="hold"} 1.0' in text
        await switch("live", REGION)
        await statuses(rig.bootstrap_servers, lambda s: OWN in s and s[OWN].at_ms > told.at_ms and not s[OWN].switches)
