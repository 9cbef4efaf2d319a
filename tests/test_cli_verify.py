"""`wirelessops verify` over sealed records, checkpoints and recordings; `keys`; what tampering shows as."""

from __future__ import annotations

import base64
import gzip
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from episodes import clean
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.commands.verify import verify_file
from streams.keys import public_pem
from streams.recording import RecordedMessage, RecordingWriter
from xapp.authorization import decision_json
from xapp.chain import CHECKPOINT_TYPE, RECORD_TYPE, Chain
from xapp.engine import assure, refuse
from xapp.episode import parse_episode
from xapp.faithfulness import verify
from xapp.model import Decision
from xapp.signing import Signer, seal, sign_document

SIGNER = Signer.of_seed(bytes(range(32)))
STRANGER = Signer.of_seed(bytes(32))
COUNT = 6


@cache
def decisions() -> tuple[Decision, ...]:
    made = []
    for number in range(COUNT):
        episode = clean() | {"episode_id": f"e-{number}"}
        episode["proposal"] = episode["proposal"] | {"proposal_id": f"p-{number}"}
        made.append(assure(parse_episode(orjson.dumps(episode), {})))
    return tuple(made)


@cache
def payloads() -> tuple[bytes, ...]:
    chain, made = Chain(2), []
    for decision in decisions():
        payload, chain = chain.append(decision_json(decision))
        made.append(payload)
    return tuple(made)


def sealed(signer: Signer | None = SIGNER) -> list[bytes]:
    return [seal(payload, RECORD_TYPE, signer) for payload in payloads()]


def checkpoint(index: int = COUNT - 1, signer: Signer | None = SIGNER) -> bytes:
    said = Chain.of(payloads()[index]).checkpoint(topic="wirelessops.records", at_ms=1_800_000_000_000, guard="g")
    return seal(said.payload(), CHECKPOINT_TYPE, signer)


def control(decision: Decision, signer: Signer | None = SIGNER, **change: Any) -> bytes:
    sequence = int(decision.episode_id.removeprefix("e-"))
    extra = {
        "attempt": 1, "final": True, "sequence": sequence, "guard": "g", "region": "r",
        "evidence": {"topic": "wirelessops.telemetry", "partition": 2, "offset": 7},
    }  # fmt: skip
    body = orjson.loads(decision_json(decision, record=False, extra=extra)) | change
    return sign_document(orjson.dumps(body), signer)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "known.pem"
    file.write_bytes(public_pem(SIGNER.public_key))
    return file


class Auditor:
    """Runs `verify` over lines; `said` is what it printed."""

    def __init__(self, folder: Path, keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file, self.keys, self.capsys = folder / "records.jsonl", keys, capsys
        self.said = ""

    def __call__(self, lines: Sequence[bytes], *, keys: bool = True, **options: Any) -> int:
        self.file.write_bytes(b"\n".join(lines) + b"\n")
        self.capsys.readouterr()
        code = verify_file(str(self.file), keys=[self.keys] if keys else [], **options)
        out = self.capsys.readouterr()
        self.said = out.out + out.err
        return code

    @property
    def faults(self) -> list[str]:
        return [line for line in self.said.splitlines()[:-1] if not line.startswith("note: ")]


@pytest.fixture
def auditor(tmp_path: Path, keys: Path, capsys: pytest.CaptureFixture[str]) -> Auditor:
    return Auditor(tmp_path, keys, capsys)


def message(topic: str, value: bytes | None, offset: int, partition: int = 2) -> bytes:
    return orjson.dumps(
        {"topic": f"wirelessops.{topic}", "partition": partition, "offset": offset, "timestamp_ms": 1, "key": "r",
         "value": None if value is None else value.decode(), "headers": []}
    )  # fmt: skip


def recording() -> list[bytes]:
    lines = [message("telemetry", b"not even JSON", 0)]
    for at, (value, decision) in enumerate(zip(sealed(), decisions(), strict=True)):
        lines += [message("records", value, at), message("control", control(decision), at)]
    return [*lines, message("checkpoints", checkpoint(), 0)]


def test_whole_signed_chains_are_faithful(auditor: Auditor) -> None:
    assert auditor([*sealed(), checkpoint()]) == 0
    assert auditor.said == f"faithful: {COUNT} records, 1 chain, 1 checkpoint\n"
    assert auditor([sealed()[0]]) == 0
    assert "behind every checkpoint shown here" in auditor.said
    assert auditor(recording()) == 0
    assert auditor.said == f"faithful: {COUNT} records, 1 chain, 1 checkpoint, {COUNT} decisions on control\n"


def test_a_recording_is_read_compressed_too_and_one_cut_short_says_so(auditor: Auditor, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl.gz"
    with RecordingWriter(file) as writer:
        for at, value in enumerate(sealed()):
            writer.write(RecordedMessage("wirelessops.records", 2, at, 1, b"r", value, ()))
    assert verify_file(str(file), keys=[auditor.keys]) == 0
    data = file.read_bytes()
    file.write_bytes(data[:-20])
    auditor.capsys.readouterr()
    verify_file(str(file), keys=[auditor.keys])
    assert "ends early" in auditor.capsys.readouterr().out
    file.write_bytes(data[:40] + b"garbage")
    assert verify_file(str(file), keys=[auditor.keys]) == 2
    plain = tmp_path / "plain.json.gz"
    plain.write_bytes(gzip.compress(decision_json(decisions()[0])))
    assert verify_file(str(plain)) == 0
    assert auditor.capsys.readouterr().out == "faithful\n"
    pretty = orjson.dumps(orjson.loads(decision_json(decisions()[0])), option=orjson.OPT_INDENT_2)
    plain.write_bytes(gzip.compress(pretty))
    assert verify_file(str(plain)) == 0


def test_without_keys_nothing_is_proved(auditor: Auditor) -> None:
    assert auditor(sealed(), keys=False) == 3
    assert f"signed by {SIGNER.keyid}, not checked: no --keys" in auditor.said
    assert auditor.said.splitlines()[-1].startswith("unproven")
    assert auditor(sealed(), keys=False, allow_unsigned=True) == 0
    assert auditor([*sealed()[:2], *sealed()[3:]], keys=False) == 1
    assert "index 2: dropped" in auditor.said


def test_what_nobody_signed_is_never_fine_unless_that_is_said(auditor: Auditor) -> None:
    for keys in (True, False):
        assert auditor([*sealed(None), checkpoint(signer=None)], keys=keys) == 1
        assert len(auditor.faults) == COUNT + 1
        assert all("unsigned" in fault for fault in auditor.faults)
        assert auditor([*sealed(None), checkpoint(signer=None)], keys=keys, allow_unsigned=True) == 0
        assert f"{COUNT + 1} unsigned, as --allow-unsigned has it" in auditor.said
    assert auditor(sealed(STRANGER), allow_unsigned=True) == 1
    assert f"signed by nobody known ({STRANGER.keyid})" in auditor.said


def test_an_edited_record_is_named_by_place_and_by_name(auditor: Auditor) -> None:
    lines = [*sealed(), checkpoint()]
    envelope = orjson.loads(lines[3])
    payload = base64.b64decode(envelope["payload"]).replace(b'"APPLY"', b'"HOLD"', 1)
    lines[3] = orjson.dumps(envelope | {"payload": base64.b64encode(payload).decode()})
    assert auditor(lines) == 1
    identity = decisions()[3].decision_id
    where = f"line 4: partition 2, index 3, decision {identity}, proposal p-3: "
    assert auditor.faults[0].startswith(f"{where}bad signature")
    assert auditor.faults[1].startswith(f'{where}action: claims "HOLD"')
    assert len(auditor.faults) == 2


def test_a_record_by_a_stranger_is_an_insertion_wherever_it_stands(auditor: Auditor) -> None:
    lines = sealed()
    for stranger in (sealed(STRANGER)[2], sealed(None)[2], decision_json(decisions()[2]), b'{"payloadType":1}'):
        assert auditor([*lines[:2], stranger, *lines[2:]]) == 1
        assert all("line 3" in fault for fault in auditor.faults), auditor.said


def test_a_record_that_was_signed_twice_with_another_content_is_an_insertion(auditor: Auditor) -> None:
    other, _ = Chain.of(payloads()[1]).append(decision_json(decisions()[5]))
    lines = sealed()
    assert auditor([*lines[:3], seal(other, RECORD_TYPE, SIGNER), *lines[3:]]) == 1
    assert ["inserted" in fault and "line 4: partition 2, index 2" in fault for fault in auditor.faults] == [True]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_single_change_to_a_signed_chain_is_found_and_named(auditor: Auditor, data: st.DataObject) -> None:
    lines = sealed()
    kind = data.draw(st.sampled_from(["edit", "drop", "swap", "insert", "duplicate"]))
    at = data.draw(st.integers(0, COUNT - 1))
    other = data.draw(st.integers(0, COUNT - 1).filter(lambda index: index != at))
    named = {at}
    if kind == "edit":
        payload = payloads()[at]
        byte = data.draw(st.integers(0, len(payload) - 1))
        changed = payload[:byte] + bytes([payload[byte] ^ data.draw(st.integers(1, 255))]) + payload[byte + 1 :]
        envelope = orjson.loads(lines[at])
        lines[at] = orjson.dumps(envelope | {"payload": base64.b64encode(changed).decode()})
    elif kind == "drop":
        del lines[at]
    elif kind == "swap":
        lines[at], lines[other] = lines[other], lines[at]
        named = {at, other}
    elif kind == "insert":
        lines.insert(other, seal(payloads()[at], RECORD_TYPE, STRANGER))
    else:
        lines.insert(other, lines[at])
    assert auditor([*lines, checkpoint()], from_index=["0"]) == 1
    said = "\n".join(auditor.faults)
    assert any(f"index {index}" in said or f"line {index + 1}:" in said for index in named), said


def test_the_end_can_only_be_missed_where_a_checkpoint_knows_of_it(auditor: Auditor, tmp_path: Path) -> None:
    assert auditor(sealed()[:-2]) == 0
    assert "whether more came after cannot be told" in auditor.said
    apart = tmp_path / "checkpoints.jsonl"
    apart.write_bytes(message("checkpoints", checkpoint(), 0) + b"\n" + checkpoint(2) + b"\n")
    assert auditor(sealed()[:-2], checkpoints=str(apart)) == 1
    assert auditor.faults == ["partition 2, indexes 4 to 5: truncated: a checkpoint names index 5"]
    apart.write_bytes(checkpoint(signer=STRANGER))
    assert auditor(sealed(), checkpoints=str(apart)) == 1
    assert "checkpoint of partition 2, index 5: signed by nobody known" in auditor.said
    apart.write_bytes(b'{"a":1}')
    assert auditor(sealed(), checkpoints=str(apart)) == 1
    assert auditor(sealed(), checkpoints=str(tmp_path / "none")) == 2


def test_a_beginning_after_index_0_is_a_note_unless_it_is_known_where_it_must_be(auditor: Auditor) -> None:
    tail = sealed()[3:]
    assert auditor(tail) == 0
    assert "note: partition 2 begins at index 3: what was before is not shown here" in auditor.said
    assert auditor([*tail, checkpoint(2)]) == 0
    assert "begins at" not in auditor.said
    assert auditor(tail, from_index=["3"]) == 0
    assert auditor(tail, from_index=["2:3"]) == 0
    assert auditor(tail, from_index=["0"]) == 1
    assert auditor.faults == ["partition 2, indexes 0 to 2: dropped: what is shown begins at line 1"]
    for wrong in ("x", "1:", ":1", "-1", "1:2:3"):
        assert auditor(tail, from_index=[wrong]) == 2


def test_a_decision_on_control_must_be_signed_and_be_its_records(auditor: Auditor) -> None:
    records = [message("records", value, at) for at, value in enumerate(sealed())]
    first, second = decisions()[:2]
    whole = orjson.loads(decision_json(first, record=False))
    cases = [
        (control(first), []),
        (control(first, None), ["unsigned"]),
        (control(first, STRANGER), ["signed by nobody known"]),
        (control(first).replace(b'"final":true', b'"final":false'), ["bad signature"]),
        (control(first, action="HOLD"), ["it says other things than its record"]),
        (control(first, record=orjson.loads(control(second))["record"]), ["it names another record"]),
        (control(first, decision_id="0" * 64), ["it has no record"]),
        (control(first, record=None), ["it names no record"]),
        (b"[]", ["no wirelessops.decision/1"]),
        (b"{", ["no JSON value"]),
        (None, ["tombstone"]),
    ]  # fmt: skip
    assert whole["record"] == orjson.loads(control(first))["record"]
    for value, faults in cases:
        assert auditor([*records, message("control", value, 0)]) == bool(faults)
        assert len(auditor.faults) == len(faults)
        for fault, said in zip(faults, auditor.faults, strict=True):
            assert fault in said
            assert said.startswith(f"line {COUNT + 1}: ")
    assert auditor([message("control", control(first), 0)]) == 0
    assert "1 decisions on control whose record is not shown here" in auditor.said


def test_decisions_on_control_are_held_against_their_count(auditor: Auditor) -> None:
    lines = [message("control", control(decision), at) for at, decision in enumerate(decisions())]
    assert auditor(lines) == 0
    assert auditor([lines[0], lines[2], lines[1], *lines[3:]]) == 1
    assert ["line 3: " in fault and "sequence 1 stands after 2" in fault for fault in auditor.faults] == [True]
    assert auditor([*lines, lines[5]]) == 1
    assert f"line {COUNT + 1}: " in auditor.faults[0]
    assert auditor([*lines[:2], *lines[4:]]) == 0
    assert "no decision with a sequence between 1 and 4 is shown here" in auditor.said
    assert auditor([message("control", control(decisions()[0], sequence="1"), 0)]) == 1


def test_a_record_in_another_partition_than_its_own_is_named(auditor: Auditor) -> None:
    lines = [message("records", value, at) for at, value in enumerate(sealed())]
    lines[2] = message("records", sealed()[2], 0, partition=0)
    assert auditor(lines) == 1
    assert auditor.faults[0].rpartition(": ")[2] == "it stands in partition 0"
    assert "index 2: dropped" in auditor.said


def test_what_has_no_business_in_a_topic_is_named(auditor: Auditor) -> None:
    lines = [message("records", value, at) for at, value in enumerate(sealed())]
    for topic, value in (
        ("records", checkpoint()), ("checkpoints", sealed()[0]), ("records", None), ("records", b"7"),
        ("records", decision_json(decisions()[0])), ("checkpoints", b"{}"),
    ):  # fmt: skip
        assert auditor([*lines, message(topic, value, 9)]) == 1, topic
        assert f"line {COUNT + 1}" in auditor.said or "outside the chain" in auditor.said
    assert auditor([*lines, message("x.records", sealed()[0], 0)]) == 2
    assert "records of 2 topics" in auditor.said


def test_records_of_older_guards_are_neither_sealed_nor_chained(auditor: Auditor) -> None:
    lines = [message("records", decision_json(decision), at) for at, decision in enumerate(decisions())]
    assert auditor(lines) == 1
    assert auditor(lines, allow_unsigned=True) == 0
    assert auditor([*lines, message("records", sealed()[0], 9)], allow_unsigned=True) == 1


def test_a_file_that_holds_nothing_of_all_that_is_unreadable(auditor: Auditor, tmp_path: Path) -> None:
    assert auditor([message("telemetry", b"{}", 0)]) == 2
    assert auditor([b""]) == 2
    assert auditor([b"nope", b"nope"]) == 1
    assert verify_file(str(tmp_path / "none")) == 2
    assert verify_file(str(auditor.file), keys=[tmp_path / "none"]) == 2


def test_text_of_strangers_reaches_no_terminal_as_it_is(auditor: Auditor) -> None:
    payload, _ = Chain(0).append(b'{"decision_id":"\\u001b[2J","proposal_id":"a\\nb"}')
    auditor([seal(payload, RECORD_TYPE, STRANGER), b'{"payloadType":"\\u001b[2J","payload":""}'])
    assert "\x1b" not in auditor.said
    assert "a\nb" not in auditor.said


DEEP = b"[" * 300 + b"]" * 300


def plain(number: int = 0) -> bytes:
    return decision_json(decisions()[number])


def test_plain_decisions_are_no_chain_where_one_is_asked_for(auditor: Auditor, tmp_path: Path) -> None:
    apart = tmp_path / "kept.jsonl"
    apart.write_bytes(checkpoint())
    forged = orjson.dumps(orjson.loads(plain()) | {"signature": {"keyid": SIGNER.keyid, "sig": "A" * 86 + "=="}})
    assert auditor([plain(), plain(1)], keys=False) == 0
    assert auditor.said == "faithful\n"
    assert auditor([plain()], keys=False, allow_unsigned=True) == 0
    for options in ({}, {"checkpoints": str(apart)}, {"from_index": ["0"]}):
        for keys in (True, False) if options else (True,):
            for lines in ([plain()], [plain(), plain(1)], [forged]):
                assert auditor(lines, keys=keys, **options) == 1
                assert "outside the chain" in auditor.said
    assert auditor([plain(), plain(1)]) == 1
    assert all("unsigned; outside the chain" in fault for fault in auditor.faults)
    assert auditor([plain(), plain(1)], allow_unsigned=True) == 0
    assert auditor.said == "note: 2 unsigned, as --allow-unsigned has it\nfaithful: 2 plain decisions\n"
    assert auditor([forged], allow_unsigned=True) == 1
    assert "bad signature" in auditor.said
    assert auditor([plain().replace(b'"APPLY"', b'"HOLD"', 1)], allow_unsigned=True) == 1
    assert auditor([plain()], allow_unsigned=True, checkpoints=str(apart)) == 1
    assert auditor.faults == ["partition 2, indexes 0 to 5: truncated: a checkpoint names index 5"]


def test_a_line_that_readers_take_for_different_things_is_none(auditor: Auditor, tmp_path: Path) -> None:
    genuine = message("control", control(decisions()[0]), 0)
    line = orjson.loads(genuine)
    for extra in (
        {"value_base64": base64.b64encode(line["value"].encode()).decode()}, {"value_base64": None},
        {"key_base64": "cg=="}, orjson.loads(sealed()[0]), {"partition": "2"}, {"timestamp_ms": None}, {"value": 7},
    ):  # fmt: skip
        assert auditor([*recording()[3:], orjson.dumps(line | extra)]) == 1
        assert any("no recorded message" in fault or "both" in fault for fault in auditor.faults), auditor.said
    apart = tmp_path / "kept.jsonl"
    kept = orjson.loads(message("checkpoints", checkpoint(), 0))
    apart.write_bytes(orjson.dumps(kept | {"value_base64": "e30="}))
    assert auditor(sealed(), checkpoints=str(apart)) == 1
    assert "both value and value_base64" in auditor.said


def test_a_decision_on_control_has_its_own_place_and_no_other(auditor: Auditor) -> None:
    whole, last = recording(), control(decisions()[-1])
    at = len(whole) - 2
    for decision in (last, control(decisions()[-1], evidence=None)):
        moved = [*whole[:at], message("control", decision, 0, partition=5), *whole[at + 1 :]]
        assert auditor(moved) == 1
        assert [f"line {at + 1}: " in fault and "misplaced" in fault for fault in auditor.faults] == [True]
    assert auditor([*whole[:at], message("x.control", last, 0), *whole[at + 1 :]]) == 1
    assert ["misplaced: it stands in wirelessops.x.control" in fault for fault in auditor.faults] == [True]
    for copy in (
        message("control", last, 0, partition=5), message("x.control", last, 0), message("control", last, 9),
        message("x.control", last, 0, partition=5),
    ):  # fmt: skip
        assert auditor([*whole, copy]) == 1
        assert auditor.faults
        assert all(fault.startswith(f"line {len(whole) + 1}: ") for fault in auditor.faults)
        assert any("misplaced" in fault or "duplicated" in fault for fault in auditor.faults)
    assert auditor([message("control", last, 0), message("x.control", last, 0)]) == 1
    assert "duplicated: it stands at line 1 (partition 2) as well" in auditor.said


def test_a_proposal_has_one_final_decision_in_a_region(auditor: Auditor) -> None:
    def lines(**change: Any) -> list[bytes]:
        return [
            message("control", control(decisions()[0]), 0),
            message("control", control(decisions()[1], **{"proposal_id": "p-0", "attempt": 2, **change}), 1),
        ]

    assert auditor(lines()) == 1
    assert ["a second final decision of its proposal: line 1 is final" in fault for fault in auditor.faults] == [True]
    assert auditor(lines(final=False)) == 0
    assert auditor(lines(region="s")) == 0
    assert auditor(lines(proposal_id="p-9")) == 0


def test_sequences_are_those_of_a_topic_and_a_partition(auditor: Auditor) -> None:
    lines = [message("control", control(decisions()[3]), 0), message("x.control", control(decisions()[1]), 0)]
    assert auditor(lines) == 0


@pytest.mark.parametrize("claim", [b'"explanation":', b'"plan":', b'"chain":'])
def test_what_is_nested_deep_is_one_fault_and_the_rest_is_judged(auditor: Auditor, claim: bytes) -> None:
    deep = payloads()[0].replace(claim, claim + DEEP + b',"x":', 1)
    bent = control(decisions()[0])[:-1] + b',"x":' + DEEP + b"}"
    wrong = plain(1).replace(b'"APPLY"', b'"HOLD"', 1)
    for line in (deep, seal(deep, RECORD_TYPE, STRANGER), message("control", bent, 0), message("records", deep, 0)):
        for keys in (True, False):
            assert auditor([line, wrong], keys=keys) == 1
            assert any("line 1: " in fault and "nested deeper than 104" in fault for fault in auditor.said.splitlines())
            assert 'line 2: action: claims "HOLD"' in auditor.said
    assert verify(orjson.loads(deep)) == ["$: nested deeper than 104"]


def test_the_deepest_proposal_that_may_be_made_has_a_record_that_can_be_verified(auditor: Auditor) -> None:
    episode = clean()
    episode["proposal"] = episode["proposal"] | {"note": orjson.loads(b"[" * 98 + b"]" * 98)}
    assert auditor([decision_json(assure(parse_episode(orjson.dumps(episode), {})))], keys=False) == 0
    episode["proposal"] = episode["proposal"] | {"note": orjson.loads(b"[" * 99 + b"]" * 99)}
    read = orjson.loads(decision_json(refuse("r/p-1", episode["decided_at_ms"], episode["proposal"])))
    assert auditor([orjson.dumps(read)], keys=False) == 0


def test_a_key_that_stands_twice_is_refused_wherever_it_stands(auditor: Auditor, tmp_path: Path) -> None:
    def twice(document: bytes) -> bytes:
        return b'{"\\u0061ction":"ABSTAIN",' + document[1:]

    nested = control(decisions()[0]).replace(b'"value":', b'"value":999,"value":', 1)
    envelope = sealed()[0].replace(b'"payload":', b'"payload":"e30=","payload":', 1)
    line = message("control", control(decisions()[0]), 0).replace(b'"value":', b'"value":"{}","value":', 1)
    for value in (
        twice(plain()), seal(twice(payloads()[0]), RECORD_TYPE, SIGNER), message("control", nested, 0), envelope, line,
        message("control", twice(control(decisions()[0])), 0), message("records", envelope, 0),
        seal(orjson.dumps({"format": "x"})[:-1] + b',"format":"y"}', CHECKPOINT_TYPE, SIGNER),
    ):  # fmt: skip
        for keys in (True, False):
            assert auditor([value, plain(1)], keys=keys) == 1
            assert "twice in one object" in auditor.said, value
    zipped = tmp_path / "twice.json.gz"
    zipped.write_bytes(gzip.compress(twice(plain()) + b"\n"))
    assert verify_file(str(zipped)) == 1
    huge = b'{"n":' + b"9" * 5000 + b"}"
    assert auditor([huge, huge], keys=False) == 1


def test_every_finding_is_one_line_whatever_a_stranger_says(auditor: Auditor) -> None:
    text = "x\nfaithful: 6 records, 1 chain\r\x1b[2J\x9b2J\u202e\u2028"
    document = orjson.loads(plain()) | {text: 1, "explanation": text}
    for lines, keys in (([orjson.dumps(document)], False), ([orjson.dumps(document)], True), (
        [seal(Chain(2).append(orjson.dumps(document))[0], RECORD_TYPE, SIGNER)], True)
    ):  # fmt: skip
        assert auditor(lines, keys=keys) == 1
        assert len(auditor.said.splitlines()) == auditor.said.count("\n")
        assert all(one.isprintable() for one in auditor.said.split("\n"))
        assert not any(one.startswith("faithful") for one in auditor.said.split("\n"))
        assert "x\\nfaithful" in auditor.said


def test_a_partition_that_must_be_there_and_is_not_is_a_fault(auditor: Auditor) -> None:
    assert auditor(sealed(), from_index=["2:0", "3:0"]) == 1
    assert auditor.faults == ["partition 3, index 0: truncated: no record of this partition is shown"]
    for begins in ("2:0", "0"):
        assert auditor([message("control", control(decisions()[0]), 0)], from_index=[begins]) == 1
        assert "truncated: no record" in auditor.faults[0]


def test_the_command_line_makes_keys_and_verifies_with_them(tmp_path: Path) -> None:
    def wirelessops(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", "from streams.cli import main; main()", *words]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)

    made = wirelessops("keys", "new", "--out", str(tmp_path / "guard"))
    keyid = made.stdout.split()[0].decode()
    assert (made.returncode, keyid[:8]) == (0, "ed25519:")
    assert wirelessops("keys", "new", "--out", str(tmp_path / "guard")).returncode == 2
    for name in ("guard", "guard.pub.pem"):
        shown = wirelessops("keys", "show", str(tmp_path / name))
        assert shown.stdout.decode().startswith(f"{keyid}\n-----BEGIN PUBLIC KEY-----\n")
        assert b"PRIVATE" not in shown.stdout
    assert wirelessops("keys", "show", str(tmp_path / "none")).returncode == 2
    (tmp_path / "known.pem").write_bytes(public_pem(SIGNER.public_key))
    result = wirelessops("verify", "-", "--keys", str(tmp_path), stdin=b"\n".join(sealed()))
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.splitlines()[-1].startswith(b"faithful: ")
