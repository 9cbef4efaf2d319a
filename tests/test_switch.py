"""An operator's switch in the engine: what would be APPLY is held, and nothing else changes, whatever the row."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from typing import Any

import orjson
import pytest
from episodes import T, clean, codes, decide, decide_bytes, observation
from hypothesis import given
from hypothesis import strategies as st

from xapp.engine import assure, considered
from xapp.episode import EpisodeError, episode_json, parse_episode
from xapp.evidence.graph import evidence_graph
from xapp.faithfulness import verify
from xapp.provenance import prov_json

CODES = {"hold": "kill_switch", "shadow": "shadow"}


def switch(mode: str = "hold", **over: Any) -> dict[str, Any]:
    said = {"mode": mode, "operator": "alice", "reason": "a storm is coming", "at_ms": T - 60_000, "switch_id": "s-1"}
    return {**said, **over}


def without(name: str) -> dict[str, Any]:
    episode = clean()
    episode["observations"] = [o for o in episode["observations"] if o["name"] != name]
    return episode


def proposing(**changes: Any) -> dict[str, Any]:
    episode = clean()
    episode["proposal"] |= changes
    return episode


def conflicting() -> dict[str, Any]:
    episode = clean()
    episode["observations"].append(observation("e1", "cqi", 5, "e2"))
    return episode


def in_outage() -> dict[str, Any]:
    episode = without("min_rate")
    episode["sources"] = {"a1": {"status": "outage", "retryable": True, "retry_after_ms": 100, "retries_left": 2}}
    return episode


def renamed() -> dict[str, Any]:
    episode = clean()
    episode["observations"][0]["name"] = "wb_cqi"
    return episode


def demanding() -> dict[str, Any]:
    episode = clean()
    episode["observations"][3]["value"] = 5000
    return episode


def leased() -> dict[str, Any]:
    episode = clean()
    held = {"bandwidth": {"value": 7, "unit": "MHz"}}
    episode["controls"] = [
        {"control_key": "cell:1/slice:1/prb", "proposal_id": "other", "values": held, "granted_at_ms": T - 100,
         "lease_until_ms": T + 100}
    ]  # fmt: skip
    return episode


EPISODES: dict[str, tuple[dict[str, Any], str]] = {
    "supported": (clean(), "APPLY"),
    "supported after repair": (renamed(), "APPLY"),
    "in dispute": (conflicting(), "ESCALATE"),
    "in a retryable outage": (in_outage(), "RETRY"),
    "missing": (without("cqi"), "HOLD"),
    "leased": (leased(), "HOLD"),
    "expired": (proposing(deadline_ms=T - 1), "ABSTAIN"),
    "malformed": (proposing(plan=[]), "ABSTAIN"),
    "not for APPLY": (proposing(intent="HOLD"), "ABSTAIN"),
    "against a constraint": (demanding(), "ABSTAIN"),
}


def test_every_action_is_among_the_episodes() -> None:
    assert {action for _, action in EPISODES.values()} == {"APPLY", "ESCALATE", "RETRY", "HOLD", "ABSTAIN"}


@pytest.mark.parametrize("mode", CODES)
@pytest.mark.parametrize("name", EPISODES)
def test_a_switch_turns_apply_into_hold_and_leaves_every_other_decision_as_it_is(name: str, mode: str) -> None:
    episode, action = copy.deepcopy(EPISODES[name])
    live, under = decide(episode), decide({**episode, "switch": switch(mode)})
    assert live["action"] == action
    assert verify(under) == []
    assert under["decision_id"] != live["decision_id"], "it is part of what was decided on"
    assert under["record"]["episode"].pop("switch") == switch(mode)
    changed = {key for key in live if live[key] != under[key]} - {"decision_id", "record"}
    of_record = {key for key in live["record"] if live["record"][key] != under["record"][key]} - {"digest"}
    if action != "APPLY":
        assert (changed, of_record) == (set(), set())
        return
    assert changed == {"action", "released", "valid_until_ms", "violations", "explanation"}
    assert of_record == {"unresolved_risks"}
    assert (under["action"], under["released"], under["valid_until_ms"]) == ("HOLD", None, None)
    assert codes(under, blocking=True) == [CODES[mode]]
    assert under["violations"][1:] == live["violations"]
    assert under["record"]["candidate"] == live["released"], "the record says what would have been released"


@pytest.mark.parametrize("mode", CODES)
def test_no_lease_is_granted_under_a_switch(mode: str) -> None:
    episode = clean()
    episode["contract"]["control"] = {"key": "cell:1/slice:1/prb", "lease_ms": 1000}
    assert assure(parse_episode(orjson.dumps(episode), {})).lease is not None
    episode["switch"] = switch(mode)
    assert assure(parse_episode(orjson.dumps(episode), {})).lease is None


@pytest.mark.parametrize(("mode", "begins"), [("shadow", "Shadow mode"), ("hold", "Kill switch")])
def test_the_explanation_says_what_would_have_been_released_who_switched_when_and_why(mode: str, begins: str) -> None:
    decision = decide(clean() | {"switch": switch(mode)})
    assert decision["explanation"].startswith(f"{begins}: APPLY would have been released: bandwidth = 10 MHz")
    for told in (decision["explanation"], decision["violations"][0]["detail"]):
        for part in ("alice", "a storm is coming", "2027-01-15 07:59:00 UTC"):  # T is 08:00
            assert part in told


@pytest.mark.parametrize("mode", CODES)
def test_a_record_under_a_switch_exports_and_a_changed_switch_is_found(mode: str) -> None:
    decision = decide(clean() | {"switch": switch(mode)})
    assert evidence_graph(decision).nodes
    assert prov_json(decision)["entity"]
    for key, value in (("operator", "mallory"), ("mode", "hold" if mode == "shadow" else "shadow"), ("reason", "-")):
        forged = copy.deepcopy(decision)
        forged["record"]["episode"]["switch"][key] = value
        assert verify(forged) != []
    gone = copy.deepcopy(decision)
    del gone["record"]["episode"]["switch"]
    assert any(claim.startswith("action: claims") for claim in verify(gone))


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (None, "$.switch"), ([], "$.switch"), ("hold", "$.switch"), ({}, "$.switch.mode"),
        (switch(mode="live"), "$.switch.mode"), (switch(mode="HOLD"), "$.switch.mode"),
        (switch(mode=None), "$.switch.mode"), (switch(mode=["hold"]), "$.switch.mode"),
        (switch(operator=""), "$.switch.operator"), (switch(reason=7), "$.switch.reason"),
        (switch(switch_id=None), "$.switch.switch_id"), (switch(at_ms=5), "$.switch.at_ms"),
        (switch(at_ms=True), "$.switch.at_ms"), (switch(at_ms=1.5), "$.switch.at_ms"),
        (switch(until_ms=T), "$.switch.until_ms"),
        ({k: v for k, v in switch().items() if k != "at_ms"}, "$.switch.at_ms"),
    ],
)  # fmt: skip
def test_a_switch_that_cannot_be_read_is_an_error_with_its_place(bad: Any, path: str) -> None:
    with pytest.raises(EpisodeError, match=f"^{re.escape(path)}: "):
        decide(clean() | {"switch": bad})


@given(st.sampled_from(sorted(EPISODES)), st.sampled_from(sorted(CODES)), st.text('abc \u00e9\n"', min_size=1))
def test_an_episode_without_a_switch_is_what_it_was_and_with_one_it_is_that_and_the_switch(
    name: str, mode: str, reason: str
) -> None:
    document = copy.deepcopy(EPISODES[name][0])
    plain = episode_json(parse_episode(orjson.dumps(document), {}))
    assert "switch" not in orjson.loads(plain)
    said = switch(mode, reason=reason)
    under = episode_json(parse_episode(orjson.dumps(document | {"switch": said}), {}))
    assert under == plain[:-1] + b',"switch":' + orjson.dumps(said) + b"}"
    assert episode_json(parse_episode(under, {})) == under


@pytest.mark.parametrize("under", [None, *CODES])
@pytest.mark.parametrize("name", EPISODES)
def test_what_is_considered_is_what_was_decided(name: str, under: str | None) -> None:
    document = copy.deepcopy(EPISODES[name][0])
    if under is not None:
        document["switch"] = switch(under)
    rows = considered(parse_episode(orjson.dumps(document), {}))
    decision = decide(document)
    chosen = next(row for row in rows if row.applies)
    assert chosen.action == decision["action"]
    assert all(row.because for row in rows)
    blocking = [code for code in codes(decision, blocking=True) if code not in CODES.values()]
    ready = next(row for row in rows if row.action == "APPLY")
    assert ready.applies == (not blocking and document["proposal"].get("intent", "APPLY") == "APPLY")
    for code in blocking:
        assert code in ready.because
    following = next(row for row in rows[rows.index(chosen) + 1 :] if row.applies) if chosen != rows[-1] else None
    if chosen.name.startswith("ready, but"):
        assert following is not None
        assert following.action == "APPLY", "what the decision would have been without the switch"


def wirelessops(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    command = [sys.executable, "-c", "from streams.cli import main; main()", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_assure_verify_view_export_and_explain_take_a_switch() -> None:
    episode = orjson.dumps(clean() | {"switch": switch("shadow")})
    code, said, _ = wirelessops("assure", "-", stdin=episode)
    assert (code, said.encode().rstrip()) == (0, decide_bytes(clean() | {"switch": switch("shadow")}))
    assert wirelessops("verify", "-", stdin=said.encode())[:2] == (0, "faithful\n")
    assert wirelessops("view", "-", stdin=episode)[0] == 0
    assert wirelessops("record", "export", "--prov", "-", stdin=said.encode())[0] == 0
    code, told, _ = wirelessops("explain", "-", stdin=said.encode())
    assert code == 0
    lines = told.splitlines()
    assert lines[0] == "p-1: HOLD"
    assert [line for line in lines if line.startswith("→")] == [line for line in lines if "switch is in force" in line]
    assert lines[-1].startswith("Had that row not applied: APPLY, ready")


@pytest.mark.parametrize("bad", [b"{", b"{}", b"[]", b"", b'{"record":{"episode":{"format":"x"}}}'])
def test_explain_says_what_it_cannot_read(bad: bytes) -> None:
    code, said, why = wirelessops("explain", "-", stdin=bad)
    assert (code, said) == (2, "")
    assert why.startswith("-: ")


def test_explain_says_so_where_the_record_gives_another_action() -> None:
    forged = decide_bytes(clean()).replace(b'"action":"APPLY"', b'"action":"HOLD"', 1)
    code, said, _ = wirelessops("explain", "-", stdin=forged)
    assert (code, said.splitlines()[-1][:22]) == (0, "Its record gives APPLY")
