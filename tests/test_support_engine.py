"""The support gate in the engine: it vetoes APPLY and nothing else, and a record is decided again from itself alone."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace
from typing import Any

import orjson
import pytest
from episodes import CONTRACT as UNGATED
from episodes import T as AT
from episodes import decide, decide_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from support_rig import (
    CAPACITY,
    FULL,
    HERE,
    NOW,
    PARTITION,
    TERMS,
    T,
    carried,
    counted,
    gated_episode,
    map_of,
    steady,
)
from support_rig import SLICE as SLICE_HERE
from test_engine_laws import episodes

from xapp.contract_loading import load_contract
from xapp.engine import assure, considered
from xapp.episode import EpisodeError, episode_json, parse_episode
from xapp.faithfulness import verify
from xapp.provenance import prov_json
from xapp.support.carried import Support
from xapp.support.gate import SupportVerdict
from xapp.support.terms import load_terms

ENOUGH = counted(steady(range(NOW - 6, NOW)))
SOUND = carried(ENOUGH, FULL)


def short(support: Support) -> Support:
    """The capacity of the slice was seen in three of the five partitions only."""
    pair = CAPACITY
    thin = (replace(a, current=(3, 0, 0, 3, 3)) if (a.field, a.subject) == pair else a for a in support.asked)
    return replace(support, asked=tuple(thin))


SHORT = short(SOUND)
EXPIRED = replace(SOUND, map=replace(FULL.claim, built_at_ms=T - 86_400_001, expires_at_ms=T - 1))
UNMAPPED = carried(ENOUGH, None)


# Without a gate

MEMBERS = {
    "format", "decision_id", "episode_id", "proposal_id", "action", "control_key", "bindings", "released",
    "valid_until_ms", "violations", "repairs", "used", "blocked", "retry", "explanation", "record",
}  # fmt: skip


@given(episodes())
@settings(max_examples=40, deadline=None)
def test_an_episode_without_support_says_nothing_of_it_anywhere(document: dict[str, Any]) -> None:
    decision = decide(document)
    assert decision.keys() == MEMBERS
    assert "support" not in decision["record"]["episode"]
    assert "support" not in [v["code"] for v in decision["violations"]]


# With a gate


def test_a_supported_action_is_applied_and_says_on_which_map() -> None:
    decision = decide(gated_episode(SOUND))
    assert decision["action"] == "APPLY"
    assert decision.keys() == MEMBERS | {"support"}
    claim = {"map_id": "north", "version": 1, "digest": FULL.digest}
    said = decision["support"]
    assert (said["state"], said["map"], said["short"], said["earliest_ms"]) == ("SUPPORTED", claim, [], None)
    assert verify(decision) == []


def test_too_few_visits_abstain_with_what_is_short_and_when_it_could_pass() -> None:
    decision = decide(gated_episode(SHORT))
    assert decision["action"] == "ABSTAIN"
    assert (decision["released"], decision["valid_until_ms"]) == (None, None)
    assert decision["support"]["state"] == "RUNTIME_ABSTAIN"
    assert decision["support"]["short"] == [
        {
            "field": "capacity",
            "subject": "cell:1/slice:embb",
            "component": {"place": "cell:1/slice:embb", "quarter": 1, "load": "low", "cqi": "any"},
            "partitions": 1,
            "visits": 2,
        }
    ]
    assert decision["support"]["earliest_ms"] == T + 2 * PARTITION
    assert [(v["code"], v["blocking"], v["resolved"]) for v in decision["violations"]] == [("support", True, False)]
    assert "lacks 2 visits in 1 partition" in decision["explanation"]
    assert "It could pass at 2027-01-15 08:00:20 UTC at the earliest." in decision["explanation"]
    assert [v["code"] for v in decision["record"]["unresolved_risks"]] == ["support"]
    assert verify(decision) == []


@pytest.mark.parametrize(
    ("support", "told"),
    [
        (UNMAPPED, "there is no reference map: record the network, and build one"),
        (EXPIRED, "expired at 2027-01-15 07:59:59 UTC. A refresh of the reference map is needed."),
        (carried(counted(steady(range(NOW - 6, NOW), load=80)), FULL), "No waiting helps. A refresh of the reference"),
    ],
)
def test_without_a_reference_the_explanation_says_what_to_do(support: Support, told: str) -> None:
    decision = decide(gated_episode(support))
    assert (decision["action"], decision["support"]["state"]) == ("ABSTAIN", "REFERENCE_ABSTAIN")
    assert told in decision["explanation"]
    assert verify(decision) == []


def test_authority_ends_with_the_map() -> None:
    longer = decide(gated_episode(SOUND))["valid_until_ms"]
    for expires in (longer + 1, longer, longer - 1, T):
        near = replace(SOUND, map=replace(FULL.claim, expires_at_ms=expires))
        assert decide(gated_episode(near))["valid_until_ms"] == min(longer, expires)


OUTAGE = {"status": "outage", "retryable": True, "retry_after_ms": 9, "retries_left": 1}
SWITCH = {"mode": "hold", "operator": "a", "reason": "b", "at_ms": T, "switch_id": "s"}
AMBIGUOUS = [gated_episode(None)["observations"][0] | {"unit": "MHz"}, gated_episode(None)["observations"][1]]


@pytest.mark.parametrize(
    ("change", "action"),
    [
        ({"switch": SWITCH}, "HOLD"),
        ({"observations": []}, "HOLD"),
        ({"observations": [], "sources": {"e2:1": OUTAGE, "o1:1": OUTAGE}}, "RETRY"),
        ({"observations": AMBIGUOUS}, "ESCALATE"),
    ],
)
def test_what_is_no_apply_stays_what_it_is_and_tells_the_verdict(change: dict[str, Any], action: str) -> None:
    free = decide(gated_episode(None) | change)
    gated = decide(gated_episode(SHORT) | change)
    assert free["action"] == gated["action"] == action
    assert gated["support"]["state"] == "RUNTIME_ABSTAIN"
    assert verify(gated) == []
    for one in (free, gated):
        for member in ("decision_id", "record", "support"):
            one.pop(member, None)
    assert free == gated


def test_a_proposal_that_cannot_be_read_has_no_verdict() -> None:
    document = gated_episode(SHORT)
    document["proposal"]["plan"] = 7
    decision = decide(document)
    assert decision["action"] == "ABSTAIN"
    assert decision.keys() == MEMBERS
    assert verify(decision) == []


def test_every_row_of_the_policy_tells_of_the_gate() -> None:
    def row(support: Support | None) -> Any:
        rows = considered(parse_episode(orjson.dumps(gated_episode(support)), {}))
        return next(one for one in rows if one.name == "ready, but without support")

    assert (row(None).applies, row(None).because) == (False, "no support gate is set for this contract")
    assert not row(SOUND).applies
    assert row(SOUND).because.startswith("SUPPORTED: ")
    assert row(SHORT).applies
    assert row(SHORT).because.startswith("support: in the current window")


def test_the_export_names_the_map_that_was_rested_on() -> None:
    exported = prov_json(decide(gated_episode(SOUND)))
    node = "w:support-map/north/1"
    assert exported["entity"][node]["w:digest"] == FULL.digest
    assert [u["prov:activity"] for u in exported["used"].values() if u["prov:entity"] == node]
    assert node not in prov_json(decide(gated_episode(None)))["entity"]


# The gate vetoes APPLY and nothing else, over generated episodes

UNGATED_TERMS = load_terms({**copy.deepcopy(TERMS), "contract_id": UNGATED["contract_id"]})
UNGATED_DIGEST = load_contract(UNGATED).digest
FIELDS = ("cqi", "users", "capacity", "min_rate")
COUNTS = st.sampled_from([[2] * 5, [9] * 5, [9, 0, 9, 9, 9], [9, 0, 0, 9, 9], [0] * 5, [9] * 4])


@st.composite
def supports(draw: st.DrawFn) -> dict[str, Any]:
    """Documents of what an episode carries, well-formed and mostly sound, each bent here and there."""

    def mostly(good: Any, *bad: Any) -> Any:
        return draw(st.sampled_from([good] * 12 + list(bad)))

    asked = [
        {
            "field": field,
            "subject": mostly(None, "cell:1"),
            "component": {
                "place": mostly("", "cell:1"), "quarter": mostly(AT // 21_600_000 % 4, 3),
                "load": mostly("any", "low", "full"), "cqi": mostly("any", "high"),
            },
            "reference": draw(st.one_of(st.just([9] * 5), COUNTS)) if mostly(True, False) else None,
            "current": draw(st.one_of(st.just([9] * 5), COUNTS)),
        }
        for field in FIELDS if mostly(True, False)
    ]  # fmt: skip
    claim = {
        "map_id": "m", "version": 1, "digest": "sha256:m", "contract_digest": mostly(UNGATED_DIGEST, "sha256:x"),
        "terms_digest": mostly(UNGATED_TERMS.digest, "sha256:x"), "built_at_ms": mostly(AT - 1000, AT + 1),
        "expires_at_ms": mostly(AT + 10_000, AT, AT - 1),
    }  # fmt: skip
    return {
        "terms": orjson.loads(UNGATED_TERMS.document),
        "map": mostly(claim, None),
        "drift": mostly(None, {"exceeded": 3, "score": 9, "limit": 2}, {"exceeded": 1, "score": 9, "limit": 2}),
        "window": {"first": mostly(UNGATED_TERMS.first_of(AT), 0)},
        "asked": asked,
    }


@given(episodes(), supports(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_gate_only_ever_changes_apply_to_abstain(
    document: dict[str, Any], support: dict[str, Any], switched: bool
) -> None:
    if switched:
        document["switch"] = {"mode": "shadow", "operator": "a", "reason": "b", "at_ms": AT, "switch_id": "s"}
    free, gated = decide(document), decide(document | {"support": support})
    permitted = gated["support"]["state"] == "SUPPORTED"
    if free["action"] == "APPLY" and not permitted:
        assert gated["action"] == "ABSTAIN"
        assert gated["violations"][0]["code"] == "support"
    else:
        assert gated["action"] == free["action"]
        assert gated["released"] == free["released"]
        assert gated["violations"] == free["violations"]
    if gated["action"] == "APPLY":
        assert gated["valid_until_ms"] <= min(free["valid_until_ms"], support["map"]["expires_at_ms"])
    assert verify(gated) == []


# The form


def test_what_an_episode_carries_reads_back_to_equal_bytes_in_any_order() -> None:
    document = gated_episode(SHORT)
    written = episode_json(parse_episode(orjson.dumps(document), {}))
    read = parse_episode(written, {})
    assert read.support == SHORT or set(read.support.asked) == set(SHORT.asked)  # type: ignore[union-attr]
    assert episode_json(read) == written
    document["support"]["asked"].reverse()
    document["support"] = dict(reversed(document["support"].items()))
    document["support"]["terms"] = dict(reversed(document["support"]["terms"].items()))
    assert decide_bytes(document) == decide_bytes(gated_episode(SHORT))
    assert assure(read).decision_id != assure(replace(read, support=None)).decision_id


def bent(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = gated_episode(SOUND)
    place = document["support"]
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


INVALID: list[tuple[tuple[Any, ...], Any, str]] = [
    (("terms",), ..., "$.support.terms: is required"),
    (("terms", "rule", "min_visits"), 0, "$.support.terms.rule.min_visits: "),
    (("terms", "axes", "load", "unit"), "furlong", "$.support.terms.axes.load.unit: unknown unit 'furlong'"),
    (("map",), [], "$.support.map: must be an object"),
    (("map", "digest"), ..., "$.support.map.digest: is required"),
    (("map", "colour"), 1, "$.support.map.colour: unknown key"),
    (("map", "map_id"), "", "$.support.map.map_id: must be a non-empty string"),
    (("map", "version"), True, "$.support.map.version: must be an integer"),
    (("map", "version"), 0, "$.support.map.version: must be at least 1"),
    (("map", "expires_at_ms"), 1_800_000_000, "$.support.map.expires_at_ms: 1800000000 is no time in milliseconds"),
    (("drift",), {"exceeded": -1, "score": 1, "limit": 1}, "$.support.drift.exceeded: "),
    (("drift",), {"exceeded": 1, "score": "x", "limit": 1}, "$.support.drift.score: "),
    (("drift",), {"exceeded": 1, "score": 1, "limit": None}, "$.support.drift.limit: "),
    (("window",), 5, "$.support.window: must be an object"),
    (("window", "first"), "5", "$.support.window.first: must be an integer"),
    (("asked",), {}, "$.support.asked: must be a list"),
    (("asked", 0, "field"), 7, "$.support.asked[0].field: "),
    (("asked", 0, "subject"), 7, "$.support.asked[0].subject: "),
    (("asked", 0, "component", "quarter"), 1.0, "$.support.asked[0].component.quarter: "),
    (("asked", 0, "component", "load"), None, "$.support.asked[0].component.load: "),
    (("asked", 0, "reference"), "99999", "$.support.asked[0].reference: must be a list of counts"),
    (("asked", 0, "current", 1), -1, "$.support.asked[0].current[1]: "),
    (("asked", 0, "current", 1), 1.5, "$.support.asked[0].current[1]: "),
    (("colour",), 1, "$.support.colour: unknown key"),
]


@pytest.mark.parametrize(("path", "value", "said"), INVALID)
def test_a_support_that_breaks_its_form_is_refused_with_the_place(path: tuple[Any, ...], value: Any, said: str) -> None:
    with pytest.raises(EpisodeError) as caught:
        parse_episode(orjson.dumps(bent(path, value)), {})
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("support", [None, [], 7, {}])
def test_a_support_that_is_none_is_refused(support: Any) -> None:
    with pytest.raises(EpisodeError, match=r"^\$\.support"):
        parse_episode(orjson.dumps(gated_episode(None) | {"support": support}), {})


# The record


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [path, *(p for key, item in value.items() for p in _paths(item, (*path, key)))]
    if isinstance(value, list):
        return [path, *(p for i, item in enumerate(value) for p in _paths(item, (*path, i)))]
    return [path]


@pytest.mark.parametrize("where", ["support", "record"])
def test_a_forged_claim_of_support_fails_to_verify(where: str) -> None:
    """In what the decision says of the gate, and in what its record holds: each and every place."""
    decision = decide(gated_episode(SHORT))
    part = decision["support"] if where == "support" else decision["record"]["episode"]["support"]
    paths = [path for path in _paths(part) if path]
    assert len(paths) > (10 if where == "support" else 50)
    for path in paths:
        forged = copy.deepcopy(decision)
        place = forged["support"] if where == "support" else forged["record"]["episode"]["support"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = place[path[-1]] + 1 if isinstance(place[path[-1]], int) else "forged"
        assert verify(forged), path


def test_a_decision_that_hides_its_verdict_fails_to_verify() -> None:
    decision = decide(gated_episode(SHORT))
    del decision["support"]
    assert verify(decision) == ["support: is missing"]
    supported = decide(gated_episode(None)) | {"support": SupportVerdict("SUPPORTED", "trust me").document()}
    assert verify(supported) == ["support: no decision makes this claim"]


# As an operator runs it


def wirelessops(*arguments: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from streams.cli import main; main()", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)


EXAMPLES: dict[str, tuple[Support, str, str]] = {
    "supported": (SOUND, "APPLY", "Every field the action rests on is supported"),
    "a slice that was seen too seldom": (SHORT, "ABSTAIN", "It could pass at 2027-01-15 08:00:20 UTC at the earliest"),
    "a reference that lacks it": (
        carried(ENOUGH, map_of({("sinr", HERE): [9] * 5, ("capacity", SLICE_HERE): [9, 9, 0, 0, 9]})),
        "ABSTAIN",
        "A refresh of the reference map is needed.",
    ),
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_assure_decides_an_episode_with_support_and_verify_finds_it_faithful(name: str) -> None:
    support, action, told = EXAMPLES[name]
    ran = wirelessops("assure", "-", stdin=orjson.dumps(gated_episode(support)))
    assert (ran.returncode, ran.stderr) == (0, b"")
    decision = orjson.loads(ran.stdout)
    assert decision["action"] == action
    assert told in decision["explanation"]
    verified = wirelessops("verify", "-", stdin=ran.stdout)
    assert (verified.returncode, verified.stdout.strip()) == (0, b"faithful")
