"""What cannot be used becomes a dead letter with its place, the reason and its bytes; the stream goes on."""

from __future__ import annotations

import hashlib

import orjson
import pytest
from guard_rig import Rig, carried, guarded, proposal, report

from streams.deadletters import carried_value, dead_letter
from streams.guard import unix_ms
from streams.messages import DeadLetterMessage

DEEP = b"[" * 10_000 + b"]" * 10_000


async def decided_afterwards(rig: Rig) -> None:
    await rig.send("telemetry", report("good", 9))
    await rig.send("proposals", proposal("good"))
    assert (await rig.decision("good"))["action"] == "APPLY"


BAD_TELEMETRY = {
    "not JSON": (b"\xff\x00{", "JSON"),
    "not an object": (b"[1]", "object"),
    "nesting 10,000 deep": (b'{"format":' + DEEP + b"}", ""),
    "nesting 101 deep": (b'{"x":' + b"[" * 100 + b"]" * 100 + b"}", "deep"),
    "NaN": (report("r", 1).replace(b'"value":1', b'"value":NaN'), "JSON"),
    "unknown format": (report("r", 1, format="other/1"), "format"),
    "text for a time": (report("r", 1, event_time_ms="now"), "event_time_ms"),
    "a time in seconds": (report("r", 1, event_time_ms=1_790_000_000), "seconds"),
    "a time in microseconds": (report("r", 1, event_time_ms=1_790_000_000_000_000), "microseconds"),
    "a list as value": (report("r", [1]), "value"),
    "no source": (report("r", 1, source=None), "source"),
    "a tombstone": (None, "tombstone"),
    "an empty value": (b"", "empty"),
}

BAD_PROPOSALS = {
    "not JSON": (b"{", "JSON"),
    "not an object": (b'"p"', "object"),
    "no proposal_id": (b"{}", "proposal_id"),
    "a number as proposal_id": (proposal("p").replace(b'"p"', b"7", 1), "proposal_id"),
    "NaN": (proposal("p").replace(b'"value":8', b'"value":NaN'), "JSON"),
    "nesting 10,000 deep": (b'{"proposal_id":"p","plan":' + DEEP + b"}", ""),
    "a tombstone": (None, "tombstone"),
}


@pytest.mark.parametrize(
    ("topic", "value", "reason"),
    [pytest.param("telemetry", *bad, id=f"telemetry: {name}") for name, bad in BAD_TELEMETRY.items()]
    + [pytest.param("proposals", *bad, id=f"proposals: {name}") for name, bad in BAD_PROPOSALS.items()]
    + [pytest.param("queries", b'{"kind":"none"}', "kind", id="queries: unknown kind")],
)
async def test_bad_input_becomes_a_dead_letter_and_the_stream_goes_on(
    topic: str, value: bytes | None, reason: str
) -> None:
    async with guarded() as (rig, guard):
        sent = await rig.send(topic, value)
        letter = await rig.dead_letter(sent)
        DeadLetterMessage.model_validate_json(letter["message"].value)
        assert letter["format"] == "wirelessops.dead-letter/1"
        assert carried(letter) == value
        assert letter["key"] == "bm9ydGg="
        assert reason in letter["reason"]
        await decided_afterwards(rig)
        assert guard.stats()["dead_letters"] == len(rig.written["dead-letters"]) == 1
        assert len(rig.decisions()) == 1


@pytest.mark.parametrize("topic", ["telemetry", "proposals", "queries"])
@pytest.mark.parametrize("key", [None, b"\xff", b"x" * 250])
async def test_a_message_whose_key_names_no_region_is_a_dead_letter(topic: str, key: bytes | None) -> None:
    async with guarded() as (rig, _):
        letter = await rig.dead_letter(await rig.send(topic, proposal("p1"), key=key))
        assert "region" in letter["reason"]
        await decided_afterwards(rig)


async def test_a_region_written_to_a_partition_that_is_not_its_own_is_a_dead_letter() -> None:
    async with guarded() as (rig, _):
        own = await rig.send("telemetry", report("r1", 9))
        other = await rig._producer.send_and_wait(
            own.topic, report("r2", 3), key=b"north", partition=(own.partition + 1) % 4
        )
        letter = await rig.dead_letter(other)
        assert f"belongs to partition {own.partition}" in letter["reason"]
        await decided_afterwards(rig)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("topic", ["telemetry", "proposals"])
async def test_a_message_of_10_mb_is_a_dead_letter_and_the_stream_goes_on(topic: str, first: bool) -> None:
    """Not the first of its partition, it is dropped by the embedded broker itself; its offset is reported all the same.

    That broker drops the message after one of its own size, too: the second one sent is that message.
    """
    huge = b'{"proposal_id":"' + b"x" * 10_000_000 + b'"}'
    async with guarded() as (rig, _):
        if not first:
            await rig.send("telemetry", report("before", 1))
            await rig.send("proposals", proposal("before"))
            await rig.decision("before")
        letters = [await rig.dead_letter(await rig.send(topic, value)) for value in (huge, b"displaced")]
        assert [letter["value"] for letter in letters] == [None, None]
        if first:
            assert "10000018 bytes" in letters[0]["reason"]
            assert letters[0]["value_sha256"] == hashlib.sha256(huge).hexdigest()
        await decided_afterwards(rig)


async def test_a_report_repeated_with_the_same_content_is_dropped_and_counted() -> None:
    async with guarded() as (rig, guard):
        value = report("r1", 9)
        for _ in range(3):
            await rig.send("telemetry", value)
        await rig.send("proposals", proposal("p1"))
        assert (await rig.decision("p1"))["used"] == {"cqi": ["r1#0"]}
        assert guard.stats()["repeated_reports"] == 2
        assert guard.stats()["observations"] == 1
        assert rig.written["dead-letters"] == []


async def test_a_report_id_repeated_with_other_content_is_a_dead_letter_and_the_first_stays() -> None:
    async with guarded() as (rig, _):
        at = unix_ms()
        await rig.send("telemetry", report("r1", 9, event_time_ms=at))
        letter = await rig.dead_letter(await rig.send("telemetry", report("r1", 3, event_time_ms=at)))
        assert "r1" in letter["reason"]
        reply = await rig.ask(kind="as_of", query_id="q", subject="cell:1/ue:7", name="cqi")
        assert [o["value"] for o in reply["observations"]] == [9]


async def test_unknown_keys_of_telemetry_are_ignored_and_counted() -> None:
    async with guarded() as (rig, guard):
        await rig.send("telemetry", report("r1", 9, vendor="x", colletStartTime=3))
        await rig.send("proposals", proposal("p1"))
        assert (await rig.decision("p1"))["action"] == "APPLY"
        assert guard.stats()["unknown_keys"] == 2


def test_a_value_too_large_for_a_letter_is_named_by_its_length_and_digest() -> None:
    value = b"x" * 100_000
    place = {"topic": "t", "partition": 1, "offset": 2, "timestamp_ms": 3, "key": b"k", "reason": "because"}
    small = DeadLetterMessage.model_validate_json(dead_letter(**place, value=value, max_bytes=50_000))
    assert small.value is None
    assert small.value_bytes == 100_000
    assert small.value_sha256 == hashlib.sha256(value).hexdigest()
    assert "not carried" in small.reason
    whole = DeadLetterMessage.model_validate_json(dead_letter(**place, value=value, max_bytes=200_000))
    assert carried_value(whole) == value
    assert len(orjson.dumps(small.model_dump())) < 50_000
