"""The actuator's check: an order of a known guard, still valid, in its order, once; and nothing else, ever."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.ran.actuator import Actuator
from simulators.ran.layout import draw_layout
from simulators.ran.reports import user_id
from simulators.ran.world import World
from streams.commands import actuate
from streams.commands.actuate import actuate_file
from streams.keys import public_pem
from xapp import actuation
from xapp.actuation import REMEMBERED, STREAMS, ActuatorCheck, ActuatorState, StateError, Verdict
from xapp.signing import KnownKeys, Signer, sign_document

T0 = 1_790_000_000_000
SIGNER = Signer.of_seed(bytes(range(32)))
STRANGER = Signer.of_seed(bytes(32))
KNOWN = KnownKeys([SIGNER.public_key])
CHECK = ActuatorCheck(KNOWN)
NOTHING_SEEN = ActuatorState()


def body(number: int = 1, **change: Any) -> dict[str, Any]:
    return {
        "format": "wirelessops.decision/1", "decision_id": f"d-{number}", "proposal_id": f"p-{number}",
        "action": "APPLY", "bindings": {"cell": "1", "slice": "2", "ue": "1"}, "valid_until_ms": T0 + 500,
        "released": {"bandwidth": {"value": 1.5, "unit": "MHz"}}, "attempt": 1, "final": True, "sequence": number,
        "guard": "g", "region": "r", "evidence": {"topic": "t", "partition": 0, "offset": 7}, **change,
    }  # fmt: skip


def signed(number: int = 1, signer: Signer | None = SIGNER, **change: Any) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(sign_document(orjson.dumps(body(number, **change)), signer))
    return document


def run(*decisions: Any, check: ActuatorCheck = CHECK, now_ms: int = T0) -> list[str]:
    state, said = NOTHING_SEEN, []
    for decision in decisions:
        verdict, state = check.check(decision, now_ms, state)
        said.append(verdict.kind)
    return said


def test_an_order_is_permitted_to_its_last_millisecond_and_once() -> None:
    assert run(signed(), signed(), now_ms=T0 + 500) == ["permitted", "replayed"]
    assert run(signed(), now_ms=T0 + 501) == ["expired"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"action": action, "released": None, "valid_until_ms": None}, "nothing_to_do")
        for action in ("HOLD", "RETRY", "ESCALATE", "ABSTAIN")
    ]
    + [
        ({"final": False}, "not_final"),
        ({"final": None}, "not_final"),
        ({"final": 1}, "not_final"),
        ({"valid_until_ms": T0 - 1}, "expired"),
        ({"valid_until_ms": None}, "malformed"),
        ({"valid_until_ms": float(T0 + 500)}, "malformed"),
        ({"valid_until_ms": True}, "malformed"),
        ({"released": None}, "malformed"),
        ({"released": []}, "malformed"),
        ({"format": "wirelessops.decision/2"}, "malformed"),
        ({"action": "apply"}, "malformed"),
        ({"action": ["APPLY"]}, "malformed"),
        ({"decision_id": None}, "malformed"),
        ({"proposal_id": 1}, "malformed"),
        ({"attempt": True}, "malformed"),
        ({"attempt": 0}, "malformed"),
        ({"sequence": -1}, "malformed"),
        ({"sequence": 1.0}, "malformed"),
        ({"region": None}, "malformed"),
        ({"evidence": None}, "malformed"),
        ({"evidence": {"partition": "0"}}, "malformed"),
    ],
)
def test_what_is_no_valid_order_is_refused_with_its_kind(change: dict[str, Any], kind: str) -> None:
    assert run(signed(**change)) == [kind]


@pytest.mark.parametrize("document", [None, [], 7, "x", {}, {"format": "wirelessops.decision/1"}])
def test_what_is_no_decision_is_refused(document: Any) -> None:
    verdict, state = CHECK.check(document, T0, NOTHING_SEEN)
    assert verdict.refused
    assert not verdict.believed
    assert state == NOTHING_SEEN


def test_only_a_signature_of_a_known_guard_counts() -> None:
    assert run(signed(signer=STRANGER)) == ["unknown_signer"]
    assert run(signed() | {"valid_until_ms": T0 + 10**6}) == ["bad_signature"]
    assert run(signed(signer=None)) == ["unsigned"]
    assert run(signed(), check=ActuatorCheck(KnownKeys())) == ["unknown_signer"]
    lenient = ActuatorCheck(KNOWN, allow_unsigned=True)
    assert run(signed(signer=None), check=lenient) == ["permitted"]
    assert run(signed(signer=STRANGER), check=lenient) == ["unknown_signer"]
    assert run(signed() | {"sequence": 9}, check=lenient) == ["bad_signature"]


def test_a_proposal_is_carried_out_once_under_any_decision_id() -> None:
    assert run(signed(1), signed(2, proposal_id="p-1")) == ["permitted", "replayed"]
    assert run(signed(1), signed(2, decision_id="d-1")) == ["permitted", "replayed"]
    assert run(signed(1), signed(2, proposal_id="p-1", attempt=2)) == ["permitted", "permitted"]


def test_every_believed_decision_advances_its_stream() -> None:
    for change in (
        {"action": "HOLD"}, {"final": False}, {"valid_until_ms": T0 - 1}, {"valid_until_ms": None}, {"released": None}
    ):  # fmt: skip
        said = run(signed(9, **change), signed(8), signed(9), signed(10))
        assert said[1:] == ["out_of_sequence", "out_of_sequence", "permitted"]


def test_streams_of_other_regions_and_partitions_are_their_own() -> None:
    assert run(signed(9), signed(8, region="other"), signed(7, evidence={"partition": 1}), signed(6)) == [
        "permitted", "permitted", "permitted", "out_of_sequence"
    ]  # fmt: skip


@given(sequence=st.integers(0, 2**62), forgery=st.sampled_from(["unsigned", "unknown_signer", "bad_signature"]))
def test_a_stranger_cannot_shut_the_guard_out_with_a_huge_sequence(sequence: int, forgery: str) -> None:
    forged = {
        "unsigned": signed(1, None, sequence=sequence),
        "unknown_signer": signed(1, STRANGER, sequence=sequence),
        "bad_signature": signed(2) | {"sequence": sequence if sequence != 2 else 3},
    }[forgery]
    verdict, state = CHECK.check(forged, T0, NOTHING_SEEN)
    assert (verdict.kind, state) == (forgery, NOTHING_SEEN)
    assert CHECK.check(signed(1), T0, state)[0].permitted


STEPS = st.lists(
    st.tuples(
        st.integers(1, 6), st.sampled_from([SIGNER, SIGNER, STRANGER, None]), st.sampled_from(["APPLY", "HOLD"]),
        st.booleans(), st.integers(T0 - 2, T0 + 2), st.integers(1, 9), st.sampled_from(["r", "s"]),
    ),
    max_size=14,
)  # fmt: skip


@given(steps=STEPS)
def test_whatever_comes_each_order_is_permitted_once_in_order_and_in_time(steps: list[Any]) -> None:
    state, last, done = NOTHING_SEEN, dict[str, int](), set[tuple[str, int]]()
    for number, signer, action, final, until, sequence, region in steps:
        decision = signed(
            number, signer, action=action, final=final, valid_until_ms=until, sequence=sequence, region=region
        )
        before = state
        verdict, state = CHECK.check(decision, T0, state)
        assert CHECK.check(decision, T0, before) == (verdict, state), "the state given is left as it was"
        if signer is not SIGNER:
            assert not verdict.permitted
            assert state == before
            continue
        key = (decision["proposal_id"], 1)
        may = action == "APPLY" and final and until >= T0 and sequence > last.get(region, -1) and key not in done
        assert verdict.permitted == may
        last[region] = max(last.get(region, -1), sequence)
        done |= {key} if may else set()
        assert ActuatorState.from_json(state.to_json()) == state


def test_memory_is_bounded_and_what_was_forgotten_is_still_refused() -> None:
    check, state = ActuatorCheck(KnownKeys(), allow_unsigned=True), NOTHING_SEEN
    for number in range(REMEMBERED + 50):
        verdict, state = check.check(body(number), T0, state)
        assert verdict.permitted
    assert len(state.executed) == 2 * REMEMBERED
    assert check.check(body(0), T0, state)[0].kind == "out_of_sequence"
    for number in range(STREAMS + 50):
        state = state.seen((number, "r"), 1)
    assert len(state.sequences) == STREAMS
    assert (STREAMS + 49, "r") in state.sequences


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b"7", b'{"format":"wirelessops.actuator-state/1"}',
        b'{"format":"wirelessops.actuator-state/1","sequences":[[0,"r"]],"executed":[]}',
        b'{"format":"wirelessops.actuator-state/1","sequences":[["0","r",1]],"executed":[]}',
        b'{"format":"wirelessops.actuator-state/1","sequences":[],"executed":[["d","p","1"]]}',
        b'{"format":"wirelessops.actuator-state/1","sequences":7,"executed":[]}',
        b'{"format":"x","sequences":[],"executed":[]}',
    ],
)  # fmt: skip
def test_a_damaged_state_does_not_pass_for_an_empty_one(data: bytes) -> None:
    with pytest.raises(StateError):
        ActuatorState.from_json(data)


def test_a_verdict_is_a_permission_a_refusal_or_nothing() -> None:
    assert (Verdict("permitted").permitted, Verdict("permitted").refused) == (True, False)
    assert (Verdict("nothing_to_do").permitted, Verdict("nothing_to_do").refused) == (False, False)
    assert (Verdict("expired").permitted, Verdict("expired").refused) == (False, True)


def test_the_simulated_network_obeys_the_guard_it_knows_and_answers_no_stranger() -> None:
    world = World(draw_layout(1, 3), T0, ())
    actuator = Actuator(world, CHECK)
    user = user_id(int(np.flatnonzero(world.serving == 0)[0]))
    bindings = {"cell": "1", "slice": "2", "ue": user}
    before = world.quota_mhz.copy()
    for stranger in (signed(1, None, bindings=bindings), signed(1, STRANGER, bindings=bindings)):
        assert actuator.receive(stranger) is None
    assert np.array_equal(world.quota_mhz, before)
    said = [actuator.receive(signed(number, bindings=bindings)) for number in (2, 2, 1)]
    assert [(outcome.kind, outcome.reason) for outcome in said if outcome is not None] == [
        ("applied", ""), ("refused", "carried out before"), ("refused", "sequence 1 after 2")
    ]  # fmt: skip
    with pytest.raises(KeyError):
        actuator.receive({})


class Cli:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file, self.keys, self.state = folder / "decisions.jsonl", folder / "guard.pem", folder / "state.json"
        self.keys.write_bytes(public_pem(SIGNER.public_key))
        self.capsys = capsys

    def __call__(self, *decisions: dict[str, Any] | bytes, **options: Any) -> tuple[int, list[str]]:
        lines = [one if isinstance(one, bytes) else orjson.dumps(one) for one in decisions]
        self.file.write_bytes(b"\n".join(lines))
        self.capsys.readouterr()
        given: dict[str, Any] = {"keys": [self.keys], "now_ms": T0, **options}
        code = actuate_file(str(self.file), **given)
        return code, [orjson.loads(line)["verdict"] for line in self.capsys.readouterr().out.splitlines()]


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, capsys)


def test_a_file_of_decisions_gets_one_verdict_a_line(cli: Cli) -> None:
    assert cli(signed(1)) == (0, ["permitted"])
    assert cli(signed(1), signed(2, action="HOLD"), signed(3)) == (0, ["permitted", "nothing_to_do", "permitted"])
    assert cli(signed(1), signed(1), b"nope", b"[]") == (1, ["permitted", "replayed", "malformed", "malformed"])
    assert cli(signed(1), keys=[]) == (1, ["unknown_signer"])
    assert cli(signed(1, None)) == (1, ["unsigned"])
    assert cli(signed(1, None), allow_unsigned=True, keys=[]) == (0, ["permitted"])
    assert cli(signed(1), now_ms=None) == (1, ["expired"])
    for unreadable in (b"", b"nope", b"nope\nnope"):
        assert cli(unreadable) == (2, [])
    assert actuate_file(str(cli.file) + "x") == 2
    assert cli(signed(1), keys=[cli.file]) == (2, [])


DEEP = b"[" * 300 + b"]" * 300


@pytest.mark.parametrize("name", ["decision_id", "proposal_id", "attempt", "action", "signature", "x"])
def test_a_strangers_line_stops_no_run(cli: Cli, name: str) -> None:
    evil = b'{"format":"wirelessops.decision/1","%b":%b}' % (name.encode(), DEEP)
    assert cli(signed(1), evil, signed(2), state=cli.state) == (1, ["permitted", "malformed", "permitted"])
    assert cli(evil) == (1, ["malformed"])
    assert cli({"format": "wirelessops.decision/1", name: [{}]}, signed(3))[0] == 1


def test_no_state_is_stored_whose_verdicts_cannot_be_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actuate, "_line", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli(signed(1), state=cli.state)
    assert not cli.state.exists()


@pytest.mark.parametrize("key", [b'"released"', b'"rele\\u0061sed"', b'"signature"', b'"valid_until_ms"'])
def test_an_order_that_another_parser_may_read_otherwise_is_refused(cli: Cli, key: bytes) -> None:
    order = orjson.dumps(signed(1))
    twice = b"{" + key + b':{"bandwidth":{"value":999,"unit":"MHz"}},' + order[1:]
    within = order.replace(b'"value":', b'"value":999,"value":', 1)
    assert cli(twice, within, order, state=cli.state) == (1, ["malformed", "malformed", "permitted"])
    assert cli(twice) == (1, ["malformed"])


def test_a_state_behind_a_link_is_one_state_with_one_lock(cli: Cli) -> None:
    link = cli.file.parent / "link"
    folder = cli.file.parent / "kept"
    folder.mkdir()
    link.symlink_to(folder / "state.json")
    assert cli(signed(1), state=link) == (0, ["permitted"])
    assert link.is_symlink()
    assert cli(signed(1), state=folder / "state.json") == (1, ["replayed"])
    assert cli(signed(1), state=link) == (1, ["replayed"])
    assert sorted(p.name for p in folder.iterdir()) == ["state.json", "state.json.lock"]
    loop = cli.file.parent / "loop"
    loop.symlink_to(loop)
    assert cli(signed(2), state=loop) == (2, [])


def test_the_state_lets_the_next_run_refuse_what_this_one_permitted(cli: Cli) -> None:
    assert cli(signed(1), state=cli.state) == (0, ["permitted"])
    assert cli(signed(1), signed(2), state=cli.state) == (1, ["replayed", "permitted"])
    assert cli(signed(2), state=cli.state) == (1, ["replayed"])
    assert sorted(p.name for p in cli.state.parent.iterdir() if "state" in p.name) == ["state.json", "state.json.lock"]
    cli.state.write_bytes(cli.state.read_bytes()[:-9])
    assert cli(signed(3), state=cli.state) == (2, [])
    assert cli(signed(3), state=cli.state.parent / "none" / "state") == (2, [])


def test_nothing_is_permitted_whose_state_could_not_be_kept(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(actuate.os, "fsync", full)
    assert cli(signed(1), state=cli.state) == (2, [])
    assert not cli.state.exists()
    assert [p.name for p in cli.state.parent.iterdir() if p.name.startswith(".")] == []


def _one_run(file: str, keys: str, state: str, go: Any, codes: Any) -> None:
    go.wait()
    sys.stdout = open("/dev/null", "w")  # noqa: SIM115
    codes.put(actuate_file(file, keys=[Path(keys)], state=Path(state), now_ms=T0))


def test_of_runs_at_the_same_time_one_is_permitted(cli: Cli) -> None:
    cli.file.write_bytes(orjson.dumps(signed(1)))
    context = multiprocessing.get_context("fork")
    go, codes = context.Event(), context.Queue()
    runs = [
        context.Process(target=_one_run, args=(str(cli.file), str(cli.keys), str(cli.state), go, codes))
        for _ in range(8)
    ]
    for one in runs:
        one.start()
    go.set()
    found = sorted(codes.get(timeout=30) for _ in runs)
    for one in runs:
        one.join(30)
    assert found == [0] + [1] * 7


def test_a_run_that_finds_the_state_held_gives_up_in_the_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actuate, "_LOCK_WAIT_S", 0.1)
    with actuate._locked(cli.state):
        assert cli(signed(1), state=cli.state) == (2, [])
    assert cli(signed(1), state=cli.state) == (0, ["permitted"])


def test_the_command_line_takes_the_options(cli: Cli) -> None:
    command = [sys.executable, "-c", "from streams.cli import main; main()", "actuate-check", "-"]
    options = ["--keys", str(cli.keys), "--state", str(cli.state), "--now-ms", str(T0)]
    ran = [
        subprocess.run(
            [*command, *options], input=orjson.dumps(signed(1)), capture_output=True, timeout=60, check=False
        )
        for _ in range(2)
    ]
    assert [(one.returncode, orjson.loads(one.stdout)["verdict"]) for one in ran] == [(0, "permitted"), (1, "replayed")]
    assert actuation.STATE_FORMAT.encode() in cli.state.read_bytes()
