"""The dossier of a decision says what its record says: all of it, once, and nothing else."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from episodes import CONTRACT, T, clean, decide, observation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.web.dossier import dossier
from streams.web.evidence_drawing import MAX_ROWS
from xapp.authorization import decision_json
from xapp.contracts import shipped
from xapp.engine import assure
from xapp.episode import no_contract, parse_episode
from xapp.faithfulness import verify
from xapp.model import Episode

EXAMPLES = Path(__file__).parents[2] / "shared" / "spec" / "examples"

SUMMARY = {"id": "0-7", "action": "HOLD"}
UES = ("7", "8", "9")

MANY: dict[str, Any] = {
    "contract_id": "test-many/1",
    "fields": {
        "sinr": {"kind": "observed", "unit": "dB", "subject": "cell:{cell}/ue:{ue}", "freshness_ms": 1000,
                 "sources": ["e2"], "min": -20, "max": 40},
        "prbs": {"kind": "observed", "unit": "PRB", "subject": "cell:{cell}", "freshness_ms": 1000, "sources": ["e2"]},
        "share": {"kind": "planned", "unit": "PRB", "subject": "cell:{cell}/ue:{ue}", "min": 0, "max": 100},
        "total": {"kind": "derived", "unit": "PRB", "expr": "sum(share)"},
    },
    "constraints": [{"id": "fits", "expr": "total <= prbs"}, {"id": "heard", "expr": "all(sinr >= 0)"}],
}  # fmt: skip


def over_many(share: float = 10) -> dict[str, Any]:
    """A plan over three UEs of one cell."""
    heard = [observation(f"s{ue}", "sinr", 12, "e2", unit="dB", subject=f"cell:1/ue:{ue}") for ue in UES]
    return {
        **clean(),
        "contract": copy.deepcopy(MANY),
        "observations": [*heard, observation("p", "prbs", 50, "e2", unit="PRB", subject="cell:1")],
        "proposal": {
            **clean()["proposal"],
            "bindings": {"cell": "1", "ue": list(UES)},
            "plan": {"share": {"value": dict.fromkeys(UES, share), "unit": "PRB"}},
        },
    }


def windowed(count: int = 6) -> dict[str, Any]:
    episode = clean()
    episode["contract"]["constraints"].append({"id": "held", "expr": "cqi >= 5", "window_ms": 500, "max_gap_ms": 300})
    episode["observations"] += [observation(f"w{i}", "cqi", 10, "rt", 100 + 100 * i) for i in range(1, count)]
    return episode


def with_members(episode: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Each observed field of an episode's contract, for each value of a list binding in its subject."""
    bindings = episode["proposal"].get("bindings", {})
    found: list[tuple[str, str | None]] = []
    for name, f in episode["contract"]["fields"].items():
        if f["kind"] == "observed":
            over = [v for k, v in bindings.items() if isinstance(v, list) and f"{{{k}}}" in (f.get("subject") or "")]
            found += [(name, member) for member in (over[0] if over else [None])]
    return found


def oldest(observations: dict[str, dict[str, Any]], start: str) -> int:
    """The effective event time: the oldest of its own and its ancestors'; what an answer settled is none of those."""
    if observations[start]["origin"] == "operator":
        return int(observations[start]["event_time_ms"])
    seen, waiting = set(), [start]
    while waiting:
        one = waiting.pop()
        if one not in seen and one in observations:
            seen.add(one)
            waiting += observations[one].get("parents", [])
    return min(observations[i]["event_time_ms"] for i in seen)


def hold_to_the_record(decision: dict[str, Any], made: dict[str, Any]) -> None:
    """What is true of every dossier, whatever was decided."""
    record = decision["record"]
    episode = record["episode"]
    held = {o["id"]: o for o in episode["observations"]}
    assert orjson.loads(orjson.dumps(made)) == made
    assert made["summary"] == SUMMARY
    assert (made["proposal"], made["record_digest"]) == (episode["proposal"], record["digest"])
    assert (made["violations"], made["repairs"]) == (decision["violations"], decision["repairs"])

    first = next(row for row in made["policy"] if row["applies"])
    assert [row for row in made["policy"] if row["chosen"]] == [first]
    assert first["action"] == decision["action"]
    after = made["policy"][made["policy"].index(first) + 1 :]
    following = next((row for row in after if row["applies"]), None)
    assert made["why"]["next"] == (following and {k: following[k] for k in ("action", "because")})
    assert made["why"]["chosen"]
    assert all(row["because"] for row in made["policy"])

    for row in made["fields"]:
        if row["observation"] is None:
            assert row["after"] in ("blocked", "unsupported", "unjudged")
            assert (row["value"], row["source"], row["age_ms"]) == (None, None, None)
        else:
            assert row["age_ms"] == episode["decided_at_ms"] - oldest(held, row["observation"])
            assert row["source"] == held[row["observation"]]["source"]
            assert row["after"] == "supported"

    failed = {v["constraint"] for v in decision["violations"] if v["blocking"] and v["constraint"]}
    assert {c["id"] for c in made["constraints"] if c["holds"] is False} == failed
    if decision["action"] == "APPLY":
        assert all(c["holds"] is True for c in made["constraints"])
        rebuilt = {row["field"]: {"value": row["value"], "unit": row["unit"]} for row in made["plan"]}
        assert {k: v for k, v in rebuilt.items() if k in decision["released"]} == decision["released"]

    nodes, edges = made["graph"]["nodes"], made["graph"]["edges"]
    assert len({node["id"] for node in nodes}) == len(nodes)
    assert len({(node["layer"], node["row"]) for node in nodes}) == len(nodes)
    assert {node["layer"] for node in nodes} == set(range(max(node["layer"] for node in nodes) + 1))
    assert [node["id"] for node in nodes if node["layer"] == max(n["layer"] for n in nodes)] == ["action"]
    for a, b in edges:
        assert nodes[a]["layer"] < nodes[b]["layer"]
    by_id = {node["id"]: node for node in nodes}
    for violation in decision["violations"]:
        for i in violation["observations"]:
            shown = f"observation:{i}" in by_id or any(node["kind"] == "folded" for node in nodes)
            assert shown or i not in held, violation
        if violation["field"] and violation["blocking"]:
            assert by_id[f"field:{violation['field']}"]["state"] == "blocked"


def of(episode: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The decision of an episode and its dossier, which is held to its record."""
    decision = decide(episode)
    before = orjson.dumps(decision)
    made = dossier(decision, SUMMARY, {})
    assert orjson.dumps(decision) == before
    hold_to_the_record(decision, made)
    return decision, made


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the handed examples are not here")
def test_every_handed_example_has_a_dossier_that_says_what_its_record_says() -> None:
    episodes = [path for path in sorted(EXAMPLES.glob("*.json")) if b"wirelessops.episode/1" in path.read_bytes()]
    assert episodes
    for path in episodes:
        decision = orjson.loads(decision_json(assure(parse_episode(path.read_bytes(), shipped()))))
        hold_to_the_record(decision, dossier(decision, SUMMARY, {}))


OBSERVATIONS = st.builds(
    lambda name, value, source, age, unit, parents, origin, quality, version: {
        "name": name, "value": value, "source": source, "event_time_ms": T - age, "ingest_time_ms": T - age // 2,
        "unit": unit, "parents": parents, "origin": origin, "quality": quality, "version": version,
    },
    st.sampled_from(["cqi", "wb_cqi", "users", "capacity", "min_rate", "note", "stranger"]),
    st.sampled_from([None, 0, 5, 10, 14, 60, 2000, True, "x"]),
    st.sampled_from(["rt", "e2", "core", "oam", "a1", "nobody"]),
    st.sampled_from([-50, 0, 100, 900, 1000, 1001, 70_000]),
    st.sampled_from([None, "MHz", "kHz", "Mbit/s", "dB", "furlong"]),
    st.lists(st.sampled_from(["o1", "o2", "x0", "x1", "x2", "gone"]), max_size=2),
    st.sampled_from(["live", "live", "live", "memory", "operator"]),
    st.sampled_from(["good", "good", "good", "suspect", "no_value"]),
    st.sampled_from([None, 1, 2]),
)  # fmt: skip
OUTAGE = st.fixed_dictionaries(
    {"status": st.just("outage"), "retryable": st.booleans(), "retry_after_ms": st.sampled_from([None, 100, 10**6]),
     "retries_left": st.integers(0, 2)}
)  # fmt: skip
PLANS = st.dictionaries(
    st.sampled_from(["bandwidth", "rate", "cqi", "Band-Width", "unheard"]),
    st.fixed_dictionaries(
        {"value": st.sampled_from([None, 10, 9.99, 30, "x", {}]), "unit": st.sampled_from(["MHz", "kHz", None, "ell"])}
    ),
    max_size=3,
)


@st.composite
def bent(draw: st.DrawFn) -> dict[str, Any]:
    """The clean episode, or one with a window, with anything added and its own observations aged."""
    episode = draw(st.sampled_from([clean, windowed]))()
    for i, one in enumerate(draw(st.lists(OBSERVATIONS, max_size=5))):
        episode["observations"].append({"id": f"x{i}", **one})
    for one in episode["observations"][:4]:
        one["event_time_ms"] -= draw(st.sampled_from([0, 0, 0, 950, 5000]))
    episode["observations"] = [o for o in episode["observations"] if draw(st.integers(0, 9))]
    episode["sources"] = draw(st.dictionaries(st.sampled_from(["rt", "e2", "a1"]), OUTAGE, max_size=2))
    if draw(st.booleans()):
        episode["proposal"]["plan"] = draw(PLANS)
    episode["proposal"]["intent"] = draw(st.sampled_from(["APPLY", "APPLY", "HOLD"]))
    episode["proposal"]["deadline_ms"] = draw(st.sampled_from([None, T + 2000, T - 1]))
    return episode


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bent())
def test_whatever_the_episode_its_dossier_says_what_its_record_says(episode: dict[str, Any]) -> None:
    decision, made = of(episode)
    assert verify(decision) == []
    assert Counter((row["field"], row["member"]) for row in made["fields"]) == Counter(with_members(episode))
    planned = [name for name, f in CONTRACT["fields"].items() if f["kind"] != "observed"]
    assert [row["field"] for row in made["plan"] if row["kind"] != "observed"] == planned
    assert [c["id"] for c in made["constraints"]] == [c["id"] for c in episode["contract"]["constraints"]]


@pytest.mark.parametrize("age", [100, 5000])
def test_a_field_over_many_members_is_shown_once_for_each(age: int) -> None:
    episode = over_many()
    episode["observations"][1]["event_time_ms"] = T - age
    decision, made = of(episode)
    assert decision["action"] == ("APPLY" if age <= 1000 else "HOLD")
    assert Counter((row["field"], row["member"]) for row in made["fields"]) == Counter(with_members(episode))
    rows = {row["member"]: row for row in made["fields"] if row["field"] == "sinr"}
    assert [rows[ue]["subject"] for ue in UES] == [f"cell:1/ue:{ue}" for ue in UES]
    assert rows["8"]["after"] == ("supported" if age <= 1000 else "blocked")
    assert rows["7"]["after"] == "supported"
    share = next(row for row in made["plan"] if row["field"] == "share")
    assert share["written"] == dict.fromkeys(UES, 10)


def test_repairs_are_shown_at_the_member_that_they_repaired() -> None:
    episode = over_many()
    episode["contract"]["fields"]["sinr"]["aliases"] = ["snr"]
    episode["observations"][2]["name"] = "snr"
    _, made = of(episode)
    assert {row["member"]: row["repairs"] for row in made["fields"] if row["field"] == "sinr"} == {
        "7": [], "8": [], "9": ["rename"],
    }  # fmt: skip


def test_what_was_written_is_shown_beside_what_it_was_rebuilt_to() -> None:
    episode = clean()
    episode["proposal"]["plan"] = {"Bandwidth": {"value": 13_000, "unit": "kHz"}, "cqi": {"value": 10, "unit": "1"}}
    decision, made = of(episode)
    assert decision["action"] == "APPLY"
    rows = {row["field"]: row for row in made["plan"]}
    assert (rows["bandwidth"]["written"], rows["bandwidth"]["written_unit"]) == (13_000, "kHz")
    assert (rows["bandwidth"]["value"], rows["bandwidth"]["unit"]) == (10, "MHz")
    assert "recompute" in rows["bandwidth"]["repairs"]
    assert (rows["rate"]["written"], rows["rate"]["kind"]) == (None, "derived")
    assert (rows["cqi"]["kind"], rows["cqi"]["written"], rows["cqi"]["value"]) == ("observed", 10, 10)


@pytest.mark.parametrize(
    "wrong",
    [{"plan": {"unheard": {"value": 1}}}, {"plan": "x"}, {"plan": {"bandwidth": 3}}, {"bindings": 7}, {"extra": 1}],
)
def test_a_malformed_proposal_has_a_dossier_with_every_field_unjudged(wrong: dict[str, Any]) -> None:
    episode = clean()
    episode["proposal"] |= wrong
    decision, made = of(episode)
    assert decision["action"] == "ABSTAIN"
    assert {row["after"] for row in made["fields"]} == {"unjudged"}
    assert [row["field"] for row in made["fields"]] == [name for name, _ in with_members(clean())]
    assert {c["holds"] for c in made["constraints"]} == {None}
    assert "malformed" in made["why"]["chosen"]


def test_a_proposal_without_a_contract_has_a_dossier() -> None:
    raw = {"proposal_id": "p", "plan": {"x": 1}}
    decision = orjson.loads(decision_json(assure(Episode("e", T, None, (), no_contract(raw), raw))))
    made = dossier(decision, SUMMARY, {})
    hold_to_the_record(decision, made)
    assert (made["fields"], made["plan"], made["constraints"]) == ([], [], [])
    assert [node["kind"] for node in made["graph"]["nodes"]] == ["action"]


def test_a_conflict_is_in_dispute_until_an_operator_settles_it() -> None:
    episode = clean()
    episode["observations"].append(observation("o9", "cqi", 4, "e2"))
    _, made = of(episode)
    (dispute,) = made["disputes"]
    assert dispute["field"] == "cqi"
    assert [(o["id"], o["value"]) for o in dispute["observations"]] == [("o1", 10), ("o9", 4)]
    states = {node["id"]: node["state"] for node in made["graph"]["nodes"]}
    assert (states["observation:o1"], states["observation:o9"]) == ("blocked", "blocked")

    episode["observations"].append(observation("a", "cqi", 10, "operator:alice", 50, origin="operator",
                                               parents=["o1", "o9"]))  # fmt: skip
    decision, made = of(episode)
    assert decision["action"] == "APPLY"
    assert made["disputes"] == []
    assert [(a["source"], a["settles"], a["at_ms"], a["here"]) for a in made["answers"]] == [
        ("operator:alice", ["o1", "o9"], T - 50, "settled")
    ]


def answer(identity: str, age: int, **over: Any) -> dict[str, Any]:
    said = observation(f"answer/{identity}#1", "cqi", 10, "operator:alice", age, origin="operator")
    return {**said, "parents": ["o1"], **over}


def test_answers_say_to_which_proposal_they_were_and_whether_they_counted() -> None:
    episode = clean()
    mine, others = episode["proposal"]["proposal_id"], "another"
    episode["observations"] += [
        answer("late", 20), answer("old", 5000), answer("strange", 30, parents=[]), answer("own", 5000, parents=[]),
        answer("future", -5, ingest_time_ms=T + 5),
    ]  # fmt: skip
    decision = decide(episode)
    answered = {"late": others, "strange": others, "own": mine}
    made = dossier(decision, SUMMARY, answered)
    assert {a["id"]: (a["proposal_id"], a["here"]) for a in made["answers"]} == {
        "answer/late#1": (others, "not used"),
        "answer/old#1": (None, "expired"),
        "answer/own#1": (mine, "expired"),
    }


def test_a_denial_is_an_answer_that_counted() -> None:
    episode = clean()
    mine = episode["proposal"]["proposal_id"]
    said = observation("answer/a#0", "operator_verdict", "deny", "operator:alice", 20, origin="operator")
    episode["observations"].append({**said, "subject": f"proposal:{mine}"})
    decision, made = of(episode)
    assert decision["action"] == "ABSTAIN"
    assert [(a["proposal_id"], a["here"]) for a in made["answers"]] == [(mine, "denied")]


def test_a_recalled_memory_is_the_source_that_is_shown() -> None:
    episode = clean()
    episode["observations"][0] = observation("m", "cqi", 10, "rt", origin="memory")
    decision, made = of(episode)
    assert decision["action"] == "APPLY"
    cqi = next(row for row in made["fields"] if row["field"] == "cqi")
    assert (cqi["observation"], cqi["repairs"]) == ("m", ["recall"])


def test_the_samples_of_a_window_are_drawn_to_its_constraint() -> None:
    _, made = of(windowed())
    nodes, edges = made["graph"]["nodes"], made["graph"]["edges"]
    into = {nodes[a]["id"] for a, b in edges if nodes[b]["id"] == "constraint:held"}
    assert {f"observation:w{i}" for i in range(1, 5)} <= into


def test_a_switch_in_force_is_the_row_that_was_taken() -> None:
    episode = clean() | {
        "switch": {"mode": "hold", "operator": "alice", "reason": "storm", "at_ms": T - 10, "switch_id": "s-1"}
    }
    decision, made = of(episode)
    assert decision["action"] == "HOLD"
    assert "alice" in made["why"]["chosen"]
    assert made["why"]["next"]["action"] == "APPLY"


def test_where_nothing_is_supported_what_kept_it_from_apply_is_the_reason() -> None:
    episode = clean()
    episode["observations"][3]["value"] = 10_000
    decision, made = of(episode)
    assert decision["action"] == "ABSTAIN"
    assert made["why"]["next"] is None
    assert "qos" in made["why"]["chosen"]


def test_ancestors_stand_left_of_what_was_computed_from_them_and_old_ones_show_why() -> None:
    episode = clean()
    episode["observations"][0]["parents"] = ["raw"]
    episode["observations"].append(observation("raw", "rx_power", -75, "rt", 9000, parents=["rawer"]))
    episode["observations"].append(observation("rawer", "iq", 1, "rt", 9000))
    decision, made = of(episode)
    assert decision["action"] == "HOLD"
    by_id = {node["id"]: node for node in made["graph"]["nodes"]}
    layers = [by_id[f"observation:{i}"]["layer"] for i in ("rawer", "raw", "o1")]
    assert layers == [0, 1, 2]
    assert by_id["observation:raw"]["state"] == "blocked"


def test_a_cycle_of_parents_is_folded() -> None:
    episode = clean()
    episode["observations"][0]["parents"] = ["x"]
    episode["observations"].append(observation("x", "rx", 1, "rt", parents=["o1"]))
    decision, made = of(episode)
    assert decision["action"] == "ESCALATE"
    (fold,) = [node for node in made["graph"]["nodes"] if node["kind"] == "folded"]
    assert fold["label"] == "and 2 more"


def crowded(ancestors: int) -> dict[str, Any]:
    episode = windowed(400)
    episode["contract"]["constraints"][-1] |= {"window_ms": 50_000}
    names = [f"a{i}" for i in range(ancestors)]
    episode["observations"][0]["parents"] = names
    episode["observations"] += [
        observation(name, "raw", 1, "rt", parents=names[i + 1 : i + 2]) for i, name in enumerate(names)
    ]
    return episode


def test_a_graph_of_hundreds_of_observations_is_bounded_and_says_how_many_it_left_out() -> None:
    decision, made = of(crowded(300))
    nodes = made["graph"]["nodes"]
    rows = Counter(node["layer"] for node in nodes)
    assert max(rows.values()) <= MAX_ROWS + 1
    drawn = sum(node["kind"] == "observation" for node in nodes)
    left_out = sum(int(node["label"].split()[1]) for node in nodes if node["kind"] == "folded")
    samples = {i for window in decision["record"]["windows"].values() for i in window["samples"]}
    known = samples | {i for ids in decision["used"].values() for i in ids} | {f"a{i}" for i in range(300)}
    assert len(known) > 600
    assert drawn + left_out == len(known)


def test_a_graph_of_hundreds_of_observations_is_laid_out_within_50_ms() -> None:
    from streams.web.evidence_drawing import drawing

    decision = decide(crowded(300))
    took = []
    for _ in range(7):
        start = time.thread_time()
        drawing(decision)
        took.append(time.thread_time() - start)
    assert min(took) < 0.05


@pytest.mark.parametrize("value", [b"NaN", b'"\\ud800"', b"[[[[1]]]]"])
def test_a_proposal_that_is_no_json_value_has_a_dossier(value: bytes) -> None:
    text = orjson.dumps(clean()).replace(b'"value":10,"unit":"MHz"', b'"value":' + value + b',"unit":"MHz"')
    decision = orjson.loads(decision_json(assure(parse_episode(text, {}))))
    made = dossier(decision, SUMMARY, {})
    hold_to_the_record(decision, made)
    assert [row["field"] for row in made["plan"]] == ["bandwidth", "rate"]


def test_a_dossier_is_the_same_in_every_process() -> None:
    decision = orjson.dumps(decide(windowed(10)))
    script = """
import sys, orjson
from streams.web.dossier import dossier
sys.stdout.buffer.write(orjson.dumps(dossier(orjson.loads(sys.stdin.buffer.read()), {}, {})))
"""
    made = {
        subprocess.run(
            [sys.executable, "-c", script], input=decision, capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3", "4", "5", "6")
    }  # fmt: skip
    assert len(made) == 1
