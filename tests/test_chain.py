"""The chain of records: whatever is done to it shows, by name; and what nothing was done to shows nothing."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xapp.address import digest
from xapp.chain import Chain, ChainError, Checkpoint, Finding, Link, Shown, audit

PARTITION = 3


def payloads(count: int, partition: int = PARTITION) -> list[bytes]:
    chain = Chain(partition)
    made = []
    for number in range(count):
        payload, chain = chain.append(orjson.dumps({"decision_id": f"d{number}"}))
        made.append(payload)
    return made


def shown(made: list[bytes], *, forged: frozenset[int] = frozenset()) -> list[Shown]:
    """As a verifier reads them; `forged`: lines whose signature is bad."""
    return [
        Shown(Link.read(orjson.loads(payload)), digest(payload), line, f"record at line {line}", line not in forged)
        for line, payload in enumerate(made, 1)
    ]


def checkpoint(payload: bytes) -> Checkpoint:
    return Chain.of(payload).checkpoint(topic="records", at_ms=1, guard="g")


def told(findings: list[Finding]) -> list[tuple[str, int, int]]:
    return [(finding.kind, finding.index, finding.last) for finding in findings]


def test_a_link_is_put_behind_the_record_and_names_the_payload_before() -> None:
    first, chain = Chain(0).append(b'{"a":1}')
    assert first == b'{"a":1,"chain":{"partition":0,"index":0,"previous":null}}'
    assert chain == Chain(0, 1, digest(first)) == Chain.of(first)
    second, chain = chain.append(b'{"a":2}')
    assert orjson.loads(second)["chain"] == {"partition": 0, "index": 1, "previous": digest(first)}
    said = chain.checkpoint(topic="records", at_ms=5, guard="g")
    assert said == Checkpoint("records", 0, 1, digest(second), 5, "g") == Checkpoint.read(said.payload())


@pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b'{"a":1} ', b"x}"])
def test_only_an_object_with_something_in_it_is_chained(record: bytes) -> None:
    with pytest.raises(ChainError):
        Chain(0).append(record)


@pytest.mark.parametrize(
    "link",
    [
        None, [], {}, {"partition": 0, "index": 0, "previous": "sha256:" + "0" * 64},
        {"partition": 0, "index": 1, "previous": None}, {"partition": -1, "index": 0, "previous": None},
        {"partition": 0, "index": True, "previous": None}, {"partition": 0, "index": 1.0, "previous": None},
        {"partition": 0, "index": 1, "previous": "sha256:x"}, {"partition": 0, "index": 1, "previous": 7},
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_is_no_place(link: object) -> None:
    with pytest.raises(ChainError):
        Link.read({"chain": link})


def test_what_is_no_record_and_no_checkpoint_is_said_to_be_none() -> None:
    for value in (b"", b"[]", b"{}", b"7"):
        with pytest.raises(ChainError):
            Chain.of(value)
        with pytest.raises(ChainError):
            Checkpoint.read(value)
    good = orjson.loads(checkpoint(payloads(1)[0]).payload())
    bent: list[tuple[str, object]] = [
        ("format", "x"), ("topic", 1), ("partition", -1), ("index", None), ("head", "x"), ("at_ms", "x"), ("guard", 0)
    ]  # fmt: skip
    for name, value in bent:
        with pytest.raises(ChainError):
            Checkpoint.read(orjson.dumps(good | {name: value}))
    with pytest.raises(ChainError):
        Chain(0).checkpoint(topic="records", at_ms=1, guard="g")


COUNTS = st.integers(1, 12)


@given(count=COUNTS, data=st.data())
def test_a_chain_that_nothing_was_done_to_shows_nothing(count: int, data: st.DataObject) -> None:
    made = payloads(count)
    other = payloads(data.draw(COUNTS), partition=1)
    points = [checkpoint(made[at]) for at in data.draw(st.sets(st.integers(0, count - 1)))]
    mixed = sorted(shown(made) + shown(other), key=lambda one: one.link.index)  # interleaved, each in order
    assert audit(mixed, points) == []
    assert audit(mixed, points, {PARTITION: 0, 1: 0, 7: 0}) == []
    begin = data.draw(st.integers(0, count - 1))
    tail = shown(made[begin:])
    assert told(audit(tail, points, {PARTITION: begin})) == []
    assert {finding.kind for finding in audit(tail, [p for p in points if p.index >= begin])} <= {"begins"}
    if begin:
        assert audit(tail, [checkpoint(made[begin - 1])]) == []


@given(count=st.integers(2, 12), data=st.data())
def test_records_that_were_dropped_are_named(count: int, data: st.DataObject) -> None:
    made = payloads(count)
    low = data.draw(st.integers(0, count - 1))
    high = data.draw(st.integers(low, count - 1))
    left = made[:low] + made[high + 1 :]
    found = audit(shown(left), [checkpoint(made[-1])], {PARTITION: 0})
    assert told(found) == [("truncated" if high == count - 1 else "dropped", low, high)]
    if left and low == 0:
        assert told(audit(shown(left))) == [("begins", high + 1, high + 1)]


@given(count=st.integers(2, 12), data=st.data())
def test_records_that_changed_places_are_named(count: int, data: st.DataObject) -> None:
    made = payloads(count)
    a, b = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=2)))
    swapped = list(made)
    swapped[a], swapped[b] = made[b], made[a]
    found = audit(shown(swapped), [checkpoint(made[-1])], {PARTITION: 0})
    assert found
    assert {finding.kind for finding in found} == {"reordered"}
    assert {finding.index for finding in found} & {a, b}
    assert all(a <= finding.index <= b for finding in found)


@given(count=st.integers(2, 12), data=st.data())
def test_a_record_that_was_moved_is_the_one_that_is_named(count: int, data: st.DataObject) -> None:
    made = payloads(count)
    origin, target = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    moved = list(made)
    moved.insert(target, moved.pop(origin))
    found = audit(shown(moved))
    if abs(origin - target) > 1:
        assert told(found) == [("reordered", origin, origin)]
    else:
        assert len(found) == abs(origin - target)


@given(count=COUNTS, data=st.data())
def test_a_record_that_stands_there_twice_is_named(count: int, data: st.DataObject) -> None:
    made = payloads(count)
    which, where = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count))
    found = audit(shown([*made[:where], made[which], *made[where:]]), [checkpoint(made[-1])])
    assert told(found) == [("duplicated", which, which)]


@given(count=COUNTS, data=st.data(), signed=st.booleans())
def test_a_record_that_was_changed_is_named_with_a_signature_and_without(
    count: int, data: st.DataObject, signed: bool
) -> None:
    made = payloads(count)
    at = data.draw(st.integers(0, count - 1))
    document = orjson.loads(made[at])
    made[at] = orjson.dumps(document | {"decision_id": "other"})
    points = [checkpoint(payloads(count)[-1])]
    if signed:  # its bad signature is named by who checks that; the chain sees no gap where it claims its place
        assert audit(shown(made, forged=frozenset({at + 1})), points, {PARTITION: 0}) == []
    else:
        assert told(audit(shown(made), points, {PARTITION: 0})) == [("edited", at, at)]


@given(count=COUNTS, data=st.data())
def test_without_signatures_a_changed_link_is_found_too(count: int, data: st.DataObject) -> None:
    made = payloads(count)
    at = data.draw(st.integers(0, count - 1))
    one = shown(made)[at]
    change = data.draw(st.sampled_from(["index", "partition", "previous"]))
    if change == "previous":
        bent = replace(one.link, previous="sha256:" + "0" * 64)
    else:
        bent = replace(one.link, **{change: getattr(one.link, change) + data.draw(st.integers(1, 20))})
    bent_one = replace(one, link=bent, address=digest(orjson.dumps([at, change])))
    records = shown(made)
    records[at] = bent_one
    found = audit(records, [checkpoint(made[-1])], {PARTITION: 0})
    assert [finding for finding in found if finding.kind != "begins"]
    named = {index for finding in found for index in range(finding.index, finding.last + 1)}
    assert at in named or bent.index in named


@given(count=COUNTS, data=st.data())
def test_of_two_records_of_one_index_the_inserted_one_is_named(count: int, data: st.DataObject) -> None:
    made = payloads(count)
    index, where = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count))
    before = Chain(PARTITION) if index == 0 else Chain.of(made[index - 1])
    stranger, _ = before.append(b'{"decision_id":"stranger"}')
    found = audit(shown([*made[:where], stranger, *made[where:]]), [checkpoint(made[-1])])
    assert [(f.kind, f.index, f.shown.line if f.shown else 0) for f in found] == [("inserted", index, where + 1)]


def test_a_forged_record_that_claims_an_index_explains_the_gap_and_no_more() -> None:
    made = payloads(8)
    stranger = orjson.dumps({"chain": {"partition": PARTITION, "index": 4, "previous": digest(made[3])}})
    left = [*made[:3], stranger, made[6], made[7]]
    found = audit(shown(left, forged=frozenset({4})), [checkpoint(made[7])], {PARTITION: 0})
    assert told(found) == [("dropped", 3, 3), ("dropped", 5, 5)]


def test_checkpoints_that_contradict_the_records_or_each_other_are_named() -> None:
    made = payloads(4)
    wrong = replace(checkpoint(made[2]), head="sha256:" + "0" * 64)
    assert told(audit(shown(made), [wrong])) == [("edited", 2, 2), ("edited", 3, 3)]
    kinds = {finding.kind for finding in audit(shown(made), [wrong, checkpoint(made[2])])}
    assert "contradictory" in kinds
    assert told(audit(shown(made[3:]), [wrong])) == [("edited", 3, 3)]


def test_where_the_records_must_begin_can_be_said() -> None:
    made = payloads(6)
    assert told(audit(shown(made[3:]), (), {PARTITION: 2})) == [("dropped", 2, 2)]
    assert told(audit(shown(made[3:]), (), {PARTITION: 3})) == []
    assert told(audit([], [checkpoint(made[4])], {PARTITION: 3})) == [("truncated", 3, 4)]
    assert told(audit([], [checkpoint(made[4])])) == [("truncated", 0, 4)]


def test_an_index_beyond_all_bounds_costs_nothing() -> None:
    made = shown(payloads(3))
    far = replace(made[2], link=replace(made[2].link, index=2**62))
    assert told(audit([made[0], made[1], far])) == [("dropped", 2, 2**62 - 1)]
