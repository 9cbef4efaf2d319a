"""Messages that no one should send, for every topic that a guard reads. The same seed and time give the same bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from streams.chaos import world
from streams.topics import partition_of

READ: Final = ("telemetry", "proposals", "queries", "outcomes", "answers")
"""Topics that guards read and others write."""
OWN: Final = ("control", "records")
"""Topics that only guards write, and read back: a foreign writer's bytes must do no harm there."""
REGIONS: Final = tuple(f"fuzz-{n}" for n in range(12))
_STRANGE: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1.5, 1e308, -(2**63), 2**64 - 1, 2**70, "", " ", "x", "\u0000", "é\u202e", "a" * 300, [],
    {}, [[]], [None], {"": None}, {"value": None}, [{"a": 1}], "NaN", 10**11 - 1, 10**14, "1790000000000",
)  # fmt: skip
_NOT_JSON: Final = (b"NaN", b"Infinity", b"-Infinity", b"{", b"}", b"\xff\xfe", b"\xef\xbb\xbf{}", b"nul", b"'a'", b"")


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """One message. `partition` of None: where its key belongs."""

    key: bytes | None
    value: bytes | None
    partition: int | None
    headers: list[tuple[str, bytes | None]]


def fuzz(topic: str, number: int, seed: int, partitions: int, now_ms: int) -> Iterator[Fuzzed]:
    """So many messages for a topic (its name without prefix)."""
    chance = random.Random(f"{seed}/{topic}")
    for n in range(number):
        valid = _VALID[topic](f"fuzz-{topic}-{seed}-{n}", now_ms, chance)
        if topic in OWN:
            del valid[chance.choice(["proposal_id", "sequence", "action"])]
        value = _value(valid, chance)
        key: bytes | None = chance.choice(REGIONS).encode()
        partition = None
        where = chance.random()
        if where < 0.02:
            key = chance.choice([None, b"", b"\xff\xfe", b"a" * 300, b"line\nbreak"])
        elif where < 0.05 and partitions > 1:
            assert key is not None
            right = partition_of(key.decode(), range(partitions))
            partition = (right + chance.randrange(1, partitions)) % partitions
        yield Fuzzed(key, value, partition, _headers(chance))


def _value(valid: Mapping[str, Any], chance: random.Random) -> bytes | None:
    """Bytes made of a valid message, some of which stay valid."""
    whole = orjson.dumps(valid)
    ways: dict[Callable[[], bytes | None], int] = {
        lambda: None: 4,
        lambda: chance.randbytes(chance.randrange(1, 200)): 12,
        lambda: whole[: chance.randrange(len(whole))]: 14,
        lambda: chance.choice(_NOT_JSON): 4,
        lambda: _flipped(whole, chance): 10,
        lambda: _swapped(whole, chance): 6,
        lambda: orjson.dumps(_mutated(valid, chance), option=orjson.OPT_NON_STR_KEYS): 40,
        lambda: _json(chance.choice(_STRANGE)): 4,
        lambda: _deep(chance): 1,
        lambda: _huge(valid, chance): 1 if chance.random() < 0.1 else 0,
        lambda: whole: 4,
    }
    return chance.choices(list(ways), weights=list(ways.values()))[0]()


def _flipped(whole: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(whole))
    return whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :]


def _swapped(whole: bytes, chance: random.Random) -> bytes:
    """A number that is none, or a key twice."""
    if chance.random() < 0.5:
        return whole.replace(b"1790", chance.choice([b"NaN", b"Infinity", b"0x1", b"01", b"1e400", b"--1"]))
    return b'{"format":' + _json(chance.choice(_STRANGE)) + b"," + whole[1:]


def _mutated(valid: Mapping[str, Any], chance: random.Random) -> Any:
    """One place, at any depth, gone or strange."""
    document: Any = orjson.loads(orjson.dumps(valid))
    place, key = _place(document, chance)
    if chance.random() < 0.3:
        del place[key]
    elif isinstance(place, dict) and chance.random() < 0.1:
        place[str(chance.choice(_STRANGE))] = chance.choice([s for s in _STRANGE if s != 2**70])
    else:
        place[key] = chance.choice([s for s in _STRANGE if s != 2**70])
    return document


def _place(document: Any, chance: random.Random) -> tuple[Any, Any]:
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.3:
            return place, key
        place = inner


def _deep(chance: random.Random) -> bytes:
    depth = chance.choice([50, 99, 101, 1000, 20_000])
    return b'{"a":' * depth + b"1" + b"}" * depth if chance.random() < 0.5 else b"[" * depth + b"]" * depth


def _huge(valid: Mapping[str, Any], chance: random.Random) -> bytes:
    size = chance.choice([10_000, 100_000, 900_000])
    return orjson.dumps({**valid, "padding": "x" * size})


def _json(value: Any) -> bytes:
    return str(value).encode() if isinstance(value, int) and abs(value) >= 2**64 else orjson.dumps(value)


def _headers(chance: random.Random) -> list[tuple[str, bytes | None]]:
    if chance.random() < 0.9:
        return []
    names = ("ce_id", "ce_type", "content-type", "", "\u2603", "x" * 200)
    return [(chance.choice(names), chance.choice([None, b"", b"\xff", b"1"])) for _ in range(chance.randrange(1, 5))]


def _telemetry(message_id: str, now_ms: int, chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.2:
        return dict(orjson.loads(world.status(chance.choice([world.GNB, world.AUX]), True, now_ms)))
    measured = {"name": "load", "value": 5, "unit": "1", "subject": "ue:steady-0"}
    return {
        "format": "wirelessops.telemetry/1",
        "report_id": message_id,
        "source": world.GNB,
        "event_time_ms": now_ms,
        "version": 1,
        "schema": None,
        "quality": "good",
        "period_ms": 100,
        "measurements": [measured, {**measured, "name": "RRU.PrbTotDl", "id": f"{message_id}/x", "parents": []}],
    }


def _proposal(message_id: str, now_ms: int, chance: random.Random) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(world.proposal(message_id, chance.randrange(1000), 0, now_ms))
    return document | {"deadline_ms": now_ms + chance.randrange(2000), "evidence": ["x"], "intent": "APPLY"}


def _query(message_id: str, now_ms: int, chance: random.Random) -> dict[str, Any]:
    document: dict[str, Any] = {"format": "wirelessops.query/1", "query_id": message_id}
    if chance.random() < 0.5:
        return {**document, "kind": "view", "contract_ref": world.ONE, "bindings": {"ue": "steady-0"}}
    times = {"event_time_ms": now_ms, "ingest_time_ms": now_ms}
    return {**document, "kind": "as_of", "name": "load", "subject": "ue:steady-0", **times}


def _outcome(message_id: str, now_ms: int, chance: random.Random) -> dict[str, Any]:
    ids = {"decision_id": message_id, "proposal_id": message_id}
    what = chance.choice(["applied", "refused", "effect", "no_effect"])
    return {"format": "wirelessops.outcome/1", **ids, "outcome": what, "at_ms": now_ms, "detail": None}


def _answer(message_id: str, now_ms: int, chance: random.Random) -> dict[str, Any]:
    ids = {"answer_id": message_id, "decision_id": message_id, "proposal_id": message_id}
    settled = {"field": "load", "subject": "ue:split", "value": 5, "unit": "1", "observations": ["x"]}
    verdict = chance.choice(["approve", "deny"])
    said = {"verdict": verdict, "operator": "fuzz", "reason": "none", "at_ms": now_ms, "settles": [settled]}
    return {"format": "wirelessops.answer/1", **ids, **said}


def _decision(message_id: str, now_ms: int, chance: random.Random) -> dict[str, Any]:
    return {
        "format": "wirelessops.decision/1",
        "decision_id": message_id,
        "proposal_id": message_id,
        "action": chance.choice(["APPLY", "HOLD"]),
        "attempt": 1,
        "final": True,
        "sequence": chance.choice([0, 10**6]),
        "region": chance.choice(REGIONS),
        "decided_at_ms": now_ms,
        "proposal_digest": "0" * 64,
        "evidence": {"topic": "x", "partition": 0, "offset": 0},
        "record": {"digest": "x"},
    }


_VALID: Final[Mapping[str, Callable[[str, int, random.Random], dict[str, Any]]]] = {
    "telemetry": _telemetry,
    "proposals": _proposal,
    "queries": _query,
    "outcomes": _outcome,
    "answers": _answer,
    "control": _decision,
    "records": _decision,
}
