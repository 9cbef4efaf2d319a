"""`status`: what the owner of a partition says of it, every second."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from guard_rig import CONTRACT, PARTITIONS, PREFIX, REGION, guarded, proposal, report

from streams.guard import unix_ms
from streams.messages import StatusMessage
from streams.metrics import render
from streams.status import Freshness, SourceView, count_sources
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


def contract(name: str, freshness: dict[str, tuple[int, list[str]]]) -> Any:
    fields = {
        field: {"kind": "observed", "unit": "1", "subject": "cell:{cell}", "freshness_ms": ms, "sources": sources}
        for field, (ms, sources) in freshness.items()
    }
    planned = {"x": {"kind": "planned", "unit": "1"}}
    return load_contract({"contract_id": name, "fields": fields | planned})


def test_the_limit_of_a_source_is_the_tightest_of_any_field_of_any_contract_that_lists_it() -> None:
    freshness = Freshness(
        [
            contract("a/1", {"one": (900, ["e2:gnb-{cell}"]), "two": (500, ["o1:pm", "e2:gnb-{cell}"])}),
            contract("b/1", {"three": (700, ["o1:pm"]), "four": (50, ["e2:x-{cell}-y"])}),
        ]
    )
    assert freshness.limit_ms("e2:gnb-17") == 500
    assert freshness.limit_ms("o1:pm") == 500
    assert freshness.limit_ms("e2:x-1-y") == 50
    assert freshness.limit_ms("e2:x-1-z") is None
    assert freshness.limit_ms("operator:alice") is None
    assert freshness.limit_ms("e2:gnb-") is None, "a binding is never empty"


@pytest.mark.parametrize(
    ("state", "event_time_ms", "counted"),
    [("up", 9_500, "up"), ("up", 9_000, "up"), ("up", 8_999, "stale"), ("up", None, "stale"), ("outage", 0, "outage")],
)
def test_a_source_is_stale_once_its_age_exceeds_its_limit(state: Any, event_time_ms: Any, counted: str) -> None:
    view = SourceView("north", "a", state, event_time_ms, event_time_ms, 1_000, None)
    expected = {"up": 0, "outage": 0, "stale": 0} | {counted: 1}
    assert count_sources([view], 10_000) == expected


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
