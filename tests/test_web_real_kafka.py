"""The page on a real Kafka: two guards share the partitions, either serves all of them, transactions included."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from guard_rig import contracts, proposal, report
from real_kafka import RealKafka
from web_rig import BEARER, TWO_SOURCES, Page, free_port, serving, tokens_file

from streams.guard import Guard, unix_ms
from streams.settings import GuardSettings
from streams.topics import partition_of
from streams.web.board import Board
from streams.web.feed import Feed
from xapp.signing import KnownKeys, Signer, open_envelope

ONE, TWO = Signer.of_seed(bytes(32)), Signer.of_seed(bytes(31) + b"\1")
REGIONS = {partition_of(region, range(4)): region for region in "abcdefghijklmnop"}
WAIT_S = 40.0


def guard(kafka: RealKafka, name: str, signer: Signer, tokens: Path) -> Guard:
    settings = GuardSettings.of(
        bootstrap_servers=kafka.bootstrap_servers, prefix=kafka.prefix, guard_name=name, web_port=free_port(),
        session_timeout_ms=6_000, hold_ms=60_000, operator_tokens=tokens,
    )  # fmt: skip
    trusted = KnownKeys([ONE.public_key, TWO.public_key])
    return Guard(settings, contracts(TWO_SOURCES), signer=signer, trusted=trusted)


async def record(page: Page, identity: str) -> bytes:
    async with page.http.get(f"/v1/decisions/{identity}/record") as reply:
        assert reply.status == 200
        return await reply.read()


async def test_either_guard_serves_the_decisions_records_and_switches_of_all(kafka: RealKafka, tmp_path: Path) -> None:
    tokens = tokens_file(tmp_path)
    async with asyncio.timeout(WAIT_S), serving(guard(kafka, "one", ONE, tokens)) as one:
        await one.guard.until_ready()
        async with serving(guard(kafka, "two", TWO, tokens)) as two:
            await one.board(lambda b: {p["guard"] for p in b["partitions"]} == {"one", "two"})
            await two.guard.until_ready()
            for region in REGIONS.values():
                await one.rig.send("proposals", proposal(f"p-{region}"), key=region.encode())
            for page in (one, two):
                board = await page.board(lambda b: len(b["open"]) == 4)
                assert {d["guard"] for d in board["decisions"]} == {"one", "two"}
                assert {d["signed_by"] for d in board["decisions"]} == {ONE.keyid, TWO.keyid}
                assert all(d["believed"] for d in board["decisions"])
            for n in range(3):  # later transactions, so that what is looked for stands among their ends
                for region in REGIONS.values():
                    key = region.encode()
                    await one.rig.send("telemetry", report(f"{region}/{n}", 9), key=key)
                    await one.rig.send("proposals", proposal(f"q{n}-{region}"), key=key)
            for page in (one, two):
                board = await page.board(lambda b: not b["open"] and len(b["decisions"]) >= 20)
                for said in board["decisions"]:
                    envelope = open_envelope(await record(page, said["id"]))
                    assert orjson.loads(envelope.payload)["decision_id"] == said["decision_id"]
                    assert envelope.verify(KnownKeys([ONE.public_key, TWO.public_key])) is None
            status, done = await two.post("/v1/switch", {"mode": "hold", "reason": "r"}, BEARER)
            assert (status, done["partitions"], done["failed"]) == (200, [0, 1, 2, 3], [])
            await one.board(lambda b: b["switches"] and b["switches"][0]["partitions"] == [0, 1, 2, 3])
            for region in REGIONS.values():
                await one.rig.send("proposals", proposal(f"r-{region}"), key=region.encode())
            board = await two.board(lambda b: len(b["open"]) == 4)
            assert {d["switched"] for d in board["open"]} == {"hold"}


async def test_what_waits_for_a_person_is_on_a_new_board_however_much_was_decided_since(
    kafka: RealKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(WAIT_S), serving(guard(kafka, "one", ONE, tokens_file(tmp_path))) as page:
        await page.guard.until_ready()
        waits = await page.escalated("waits")
        for n in range(30):
            await page.rig.send("proposals", proposal(f"p{n}", control_key=f"k{n}", contract_ref="none/1"))
        whole = await page.board(lambda b: len(b["decisions"]) == 31)
        monkeypatch.setattr("streams.web.feed.DECISIONS", 20)
        feed = Feed(page.guard.settings, lambda: Board(page.guard.trusted), unix_ms)

        async def partitions() -> range:
            return range(4)

        task = asyncio.create_task(feed.run(partitions))
        try:
            await feed.caught_up.wait()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert [orjson.loads(said)["id"] for said in feed.board.open()] == [waits["id"]]
        newest = [orjson.loads(said)["id"] for said in feed.board.decisions()]
        assert newest == [said["id"] for said in whole["decisions"]][-len(newest) :]
        assert 5 <= len(newest) <= 20
