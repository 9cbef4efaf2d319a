"""What the page keeps by itself where the broker is the embedded one: what waits stays answerable, within a bound."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition
from guard_rig import PREFIX, proposal
from test_cli_answer import types
from web_rig import Page, served, tokens_file

from streams.observing import Published
from streams.web.kept_records import KeptRecords
from xapp.signing import open_envelope

PASSING = 26
"""Proposals with a record of 400 kB each: 10 MB pass, of which the broker keeps 5."""
LIMIT = 1_000_000


class Seen:
    """All that the guard published."""

    def __init__(self) -> None:
        self.all: list[Published] = []

    def published(self, published: Published) -> None:
        self.all.append(published)


async def pass_ten_megabytes(page: Page) -> None:
    """Through the partition of the region; each proposal is malformed, so its decision is final."""
    names = [f"passing{n}" for n in range(PASSING)]
    for name in names:
        await page.rig.send("proposals", proposal(name, note=secrets.token_hex(150_000)))
    for name in names:
        await page.rig.decision(name)


async def oldest_record(page: Page) -> int:
    """The first offset that the broker holds."""
    tp = TopicPartition(PREFIX + "records", page.rig.partition_of_region())
    consumer = AIOKafkaConsumer(bootstrap_servers=page.rig.bootstrap_servers)
    await consumer.start()
    try:
        found: dict[TopicPartition, int] = await consumer.beginning_offsets([tp])
        return found[tp]
    finally:
        await consumer.stop()


async def test_what_waits_is_opened_and_answered_after_the_broker_dropped_it(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        seen, small, none = Seen(), KeptRecords(lambda: True, LIMIT), KeptRecords(lambda: False)
        for observer in (seen, small, none):
            page.guard.observe(observer)
        said = await page.escalated("p1")
        await pass_ten_megabytes(page)
        assert sum(len(published.record) for published in seen.all) > 10_000_000
        assert await oldest_record(page) > 0, "the broker dropped the first"

        status, opened = await page.get(f"/v1/decisions/{said['id']}")
        assert (status, opened["summary"]["proposal_id"]) == (200, "p1")
        status, envelope = await page.get(f"/v1/decisions/{said['id']}/record")
        assert status == 200
        assert orjson.loads(open_envelope(orjson.dumps(envelope)).payload)["proposal_id"] == "p1"

        partition, waiting = said["partition"], seen.all[0]
        assert 0 < small.size <= LIMIT
        assert small.find(partition, waiting.event_id) == waiting.record
        assert small.find(partition, seen.all[1].event_id) is None, "the oldest that is closed went first"
        assert small.find(partition, seen.all[-1].event_id) == seen.all[-1].record
        assert none.size == 0, "a real Kafka keeps its records itself"

        typed = await types(page.rig.bootstrap_servers, "p1", "deny")
        assert typed.exit_code == 1
        assert "holds none before offset" in typed.stderr
        assert "the guard's page (run --web-port) still answers what waits" in typed.stderr

        asked: dict[str, Any] = {"decision": said["id"], "verdict": "approve", "reason": "drive test"}
        assert (await page.post("/v1/answers", asked | {"settles": ["cqi=12:1"]}))[0] == 200
        assert (await page.final("p1"))["action"] == "APPLY"
        async with asyncio.timeout(2):
            while seen.all[-1].decision.proposal_id != "p1":  # noqa: ASYNC110 - it is told after it stands
                await asyncio.sleep(0.01)
        assert small.find(partition, waiting.event_id) is not None, "it is the newest of those that are closed"


async def test_what_waits_has_a_bound_too_and_the_oldest_goes_first(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        seen, tiny = Seen(), KeptRecords(lambda: True, 6_000)
        for observer in (seen, tiny):
            page.guard.observe(observer)
        for n in range(8):
            await page.escalated(f"p{n}")
        found = [tiny.find(one.partition, one.event_id) == one.record for one in seen.all]
        assert 0 < tiny.size <= 6_000
        assert sorted(found) == found, "what is kept is the newest"
        assert 0 < sum(found) < len(found)
