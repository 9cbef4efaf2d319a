"""Section 7: what an operator's answer settles, and what it never does."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from episodes import CONTRACT, T, clean, codes, decide, decide_bytes, observation, operators
from hypothesis import given, settings
from hypothesis import strategies as st

from xapp.contract_loading import load_contract
from xapp.evidence.graph import evidence_graph
from xapp.evidence.store import EvidenceStore
from xapp.faithfulness import verify
from xapp.integrity.operator import repeats
from xapp.model import Measurement, Observation, Report
from xapp.provenance import prov_json


def answer(
    id_: str, value: Any, *names: str, name: str = "cqi", by: str = "operator:alice", **more: Any
) -> dict[str, Any]:
    return observation(id_, name, value, by, more.pop("age_ms", 50), origin="operator", parents=[*names], **more)


def conflicting(*extra: dict[str, Any]) -> dict[str, Any]:
    """rt says 10 (o1), e2 says 5 (e1): a conflict of cqi."""
    episode = clean()
    episode["observations"] += [observation("e1", "cqi", 5, "e2"), *extra]
    return episode


def unitless(*extra: dict[str, Any]) -> dict[str, Any]:
    """The capacity has no unit."""
    episode = clean()
    episode["observations"][2]["unit"] = None
    episode["observations"] += extra
    return episode


def outcome(episode: dict[str, Any]) -> tuple[str, list[str]]:
    decision = decide(episode)
    return decision["action"], codes(decision, blocking=True)


def test_an_answer_settles_the_conflict_that_it_names() -> None:
    assert outcome(conflicting()) == ("ESCALATE", ["conflict"])
    decision = decide(conflicting(answer("a1", 9, "o1", "e1")))
    assert (decision["action"], decision["used"]["cqi"]) == ("APPLY", ["a1"])
    assert [(v["code"], v["resolved"]) for v in decision["violations"]] == [("conflict", True)]
    assert "settled by 'a1' of operator:alice" in decision["violations"][0]["detail"]
    assert operators(decision) == []
    assert decision["record"]["sources_used"]["cqi"] == ["operator:alice"]
    assert decision["valid_until_ms"] == T - 50 + 1000
    assert verify(decision) == []


def test_an_answer_settles_a_missing_unit_an_ambiguous_name_and_an_old_event() -> None:
    assert outcome(unitless()) == ("ESCALATE", ["ambiguous_unit"])
    settled = decide(unitless(answer("a1", 60, "o3", name="capacity", unit="MHz")))
    assert (settled["action"], settled["used"]["capacity"]) == ("APPLY", ["a1"])
    shared = clean()
    shared["contract"]["fields"]["users"]["aliases"] = ["load"]
    shared["contract"]["fields"]["cqi"]["aliases"] = ["load"]
    shared["observations"] = [observation("x", "load", 5, "e2"), *shared["observations"][2:]]
    assert outcome(shared) == ("ESCALATE", ["ambiguous_schema", "ambiguous_schema"])
    by_that_name = [answer("a1", 10, "x", name="load")]
    assert outcome({**shared, "observations": [*shared["observations"], *by_that_name]})[0] == "ESCALATE"
    shared["observations"] += [answer("a1", 10, "x"), answer("a2", 5, "x", name="users")]
    assert outcome(shared) == ("APPLY", [])
    order = clean()
    order["observations"][0]["version"] = 1
    order["observations"].append(observation("late", "cqi", 3, "rt", 200, version=2))
    assert outcome(order) == ("ESCALATE", ["out_of_order"])
    order["observations"].append(answer("a1", 10, "late", "o1"))
    assert outcome(order) == ("APPLY", [])


def test_an_answer_settles_only_if_it_names_all() -> None:
    for names in ((), ("o1",), ("e1",), ("o2", "o3")):
        assert outcome(conflicting(answer("a1", 9, *names))) == ("ESCALATE", ["conflict"]), names


def test_newer_evidence_that_disagrees_again_is_not_settled() -> None:
    episode = conflicting(answer("a1", 9, "o1", "e1"))
    episode["observations"].append(observation("e2", "cqi", 5, "e2", 20))
    assert outcome(episode) == ("ESCALATE", ["conflict"])
    episode["observations"][-1]["value"] = 10  # and newer evidence that agrees needs no answer
    assert decide(episode)["used"]["cqi"] == ["o1"]


@pytest.mark.parametrize("aged", ["o1", "o2", "o3", "o4"])
def test_everything_else_is_checked_again(aged: str) -> None:
    episode = clean()
    item = next(o for o in episode["observations"] if o["id"] == aged)
    item["event_time_ms"] -= 60_000
    name, value, unit = item["name"], item["value"], item.get("unit")
    assert outcome(episode) == ("HOLD", ["stale"])
    episode["observations"].append(answer("a1", value, aged, name=name, unit=unit))
    assert outcome(episode) == ("HOLD", ["stale"])


@pytest.mark.parametrize(
    "change",
    [
        {"quality": "suspect"}, {"value": None}, {"value": "9"}, {"value": 16}, {"unit": "MHz"}, {"unit": "furlong"},
        {"event_time_ms": T - 1001},
        {"event_time_ms": T, "ingest_time_ms": T - 101}, {"event_time_ms": T + 101, "ingest_time_ms": T},
        {"ingest_time_ms": T + 1},
        {"source": "rt"}, {"source": "core"}, {"subject": "ue:1"}, {"name": "users"}, {"parents": ["o1", "e1", "gone"]},
        {"origin": "live"}, {"origin": "memory"},
    ],
)  # fmt: skip
def test_an_answer_that_fails_a_check_settles_nothing(change: dict[str, Any]) -> None:
    said = answer("a1", 9, "o1", "e1")
    assert outcome(conflicting(said))[0] == "APPLY"
    episode = conflicting({**said, **change})
    assert decide(episode)["action"] == "ESCALATE"
    assert "conflict" in codes(decide(episode), blocking=True)


def test_an_answer_from_before_the_last_control_settles_nothing() -> None:
    episode = conflicting(answer("a1", 9, "o1", "e1"))
    episode["contract"]["fields"]["cqi"]["moved_by_control"] = True
    episode["controls"] = [
        {"control_key": "cell:1/slice:1/prb", "proposal_id": "p", "values": {}, "granted_at_ms": T - 100}
    ]
    assert outcome(episode)[0] == "APPLY"
    episode["controls"][0]["applied_at_ms"] = T - 49
    for o in episode["observations"]:
        if o["id"] in ("o1", "e1"):
            o["event_time_ms"] = T - 20
    assert outcome(episode) == ("ESCALATE", ["conflict"])


def test_the_unit_and_the_name_of_an_answer_are_repaired_like_any_other() -> None:
    decision = decide(unitless(answer("a1", 60_000, "o3", name="Capacity", unit="kHz")))
    assert decision["action"] == "APPLY"
    assert operators(decision) == ["rename", "convert_unit"]


def test_the_newest_answer_counts_and_two_that_differ_settle_nothing() -> None:
    both = ("o1", "e1")
    older, newer = answer("a1", 3, *both, age_ms=60), answer("a2", 9, *both, by="operator:bob")
    assert decide(conflicting(older, newer))["used"]["cqi"] == ["a2"]
    assert decide(conflicting({**older, "event_time_ms": T - 50}, newer))["action"] == "ESCALATE"
    assert decide(conflicting({**older, "event_time_ms": T - 50, "value": 8.5}, newer))["used"]["cqi"] == ["a1"]
    assert decide(conflicting(older, {**newer, "parents": ["o1"]}))["action"] == "ESCALATE"


def test_an_operator_can_take_an_answer_back() -> None:
    both = ("o1", "e1")
    said = answer("a1", 9, *both, age_ms=60)
    assert decide(conflicting(said, answer("a2", None, *both, quality="no_value")))["action"] == "ESCALATE"
    assert decide(conflicting(said, answer("a2", None, by="operator:bob")))["action"] == "APPLY"
    both_at_once = [said, {**answer("a2", None, *both, age_ms=60)}]
    assert decide(conflicting(*both_at_once))["action"] == "ESCALATE"
    ahead = answer("a2", 9, *both, age_ms=-101, ingest_time_ms=T)
    assert decide(conflicting(said, ahead))["used"]["cqi"] == ["a1"]
    correction = answer("a2", 8, *both, age_ms=60)
    correction["ingest_time_ms"] += 1
    assert decide(conflicting(said, correction))["used"]["cqi"] == ["a2"]


def test_a_stale_third_source_beside_a_settled_conflict_does_not_block() -> None:
    episode = conflicting(answer("a1", 9, "o1", "e1"))
    episode["contract"]["fields"]["cqi"]["sources"].append("third")
    episode["observations"].append(observation("t", "cqi", 9, "third", 5000))
    assert outcome(episode) == ("APPLY", [])
    alone = unitless(answer("a1", 60, "o3", name="capacity", unit="MHz"))
    alone["contract"]["fields"]["capacity"]["sources"].append("third")
    alone["observations"].append(observation("t", "capacity", 60, "third", 70_000, unit="MHz"))
    assert outcome(alone)[0] == "ESCALATE"  # without the first, the field would be stale


def test_an_answer_is_never_evidence_without_a_question() -> None:
    episode = clean()
    del episode["observations"][0]
    episode["observations"].append(answer("a1", 10))
    assert outcome(episode) == ("HOLD", ["missing"])
    for source in ("rt", "e2"):
        episode["observations"][-1]["source"] = source
        assert outcome(episode) == ("HOLD", ["missing"])
    assert decide({**clean(), "observations": [*clean()["observations"], answer("a1", 3)]})["used"]["cqi"] == ["o1"]


def test_nothing_can_be_computed_from_an_answer() -> None:
    episode = clean()
    episode["observations"][0]["parents"] = ["a1"]
    for source in ("operator:alice", "rt"):
        for name in ("cqi", "cause"):
            said = answer("a1", 10, name=name, by=source)
            assert outcome({**episode, "observations": [*episode["observations"], said]})[1] == [
                "unresolved_provenance"
            ]
    memory = clean()
    memory["observations"][0] |= {"quality": "no_value"}
    memory["observations"] += [answer("a1", 10), observation("m", "cqi", 10, "rt", 20, origin="memory", parents=["a1"])]
    assert outcome(memory) == ("HOLD", ["no_value"])


def test_an_answer_cannot_stand_for_a_window() -> None:
    episode = conflicting(answer("a1", 9, "o1", "e1"))
    episode["contract"]["constraints"].append({"id": "w", "expr": "cqi >= 5", "window_ms": 300, "max_gap_ms": 400})
    episode["observations"].append(observation("o0", "cqi", 10, "rt", 350))
    assert outcome(episode) == ("HOLD", ["gap"])


def test_a_denial_is_final() -> None:
    said = {**answer("v", "deny", name="operator_verdict"), "subject": "proposal:p-1"}
    for episode in (clean(), conflicting(), unitless()):
        episode["observations"].append(said)
        decision = decide(episode)
        assert (decision["action"], decision["violations"][0]["code"]) == ("ABSTAIN", "denied")
        assert decision["violations"][0]["observations"] == ["v"]
        assert verify(decision) == []
    for change in ({"subject": "proposal:p-2"}, {"value": "allow"}, {"ingest_time_ms": T + 1}, {"name": "verdict"},
                   {"origin": "live", "source": "x"}):  # fmt: skip
        episode = clean()
        episode["observations"].append({**said, **change})
        assert outcome(episode)[0] == "APPLY", change


def test_what_an_answer_settled_is_shown_as_no_support_of_it() -> None:
    decision = decide(conflicting(answer("a1", 9, "o1", "e1")))
    graph = evidence_graph(decision)
    assert graph.has_edge(("observation", "a1"), ("field", "cqi"))
    assert ("observation", "e1") not in graph
    assert "w:source/operator:alice" in prov_json(decision)["agent"]


def test_answers_in_any_order_give_the_same_bytes() -> None:
    episode = conflicting(answer("a1", 9, "o1", "e1"), answer("a2", 8.9, "o1", "e1", by="operator:bob"))
    backwards = copy.deepcopy(episode)
    backwards["observations"].reverse()
    assert decide_bytes(episode) == decide_bytes(backwards)


_FAULTS = st.sampled_from(["none", "stale", "conflict", "unit", "missing", "null", "future"])


@settings(max_examples=200, deadline=None)
@given(st.tuples(_FAULTS, _FAULTS, _FAULTS), st.sets(st.sampled_from(["cqi", "users", "capacity"])))
def test_an_answer_permits_only_what_the_named_faults_kept_back(faults: tuple[str, str, str], asked: set[str]) -> None:
    """With answers to some fields, APPLY exactly where every fault is one that was settled."""
    episode = clean()
    by_name = {o["name"]: o for o in episode["observations"]}
    open_faults = []
    for name, fault in zip(("cqi", "users", "capacity"), faults, strict=True):
        item = by_name[name]
        source = {"cqi": "e2", "users": "core", "capacity": "oam"}[name]
        other = {**item, "id": f"x-{name}", "source": source, "value": item["value"] - 4}
        if fault == "stale":
            item["event_time_ms"] -= 90_000
        elif fault == "conflict":
            episode["observations"].append(other)
        elif fault == "unit":
            item["unit"] = "W"
        elif fault == "missing":
            episode["observations"].remove(item)
        elif fault == "null":
            item["value"] = None
        elif fault == "future":
            item["event_time_ms"] = T + 5000
        settled = name in asked and fault in ("conflict", "unit")
        if fault != "none" and not settled:
            open_faults.append(name)
        if name in asked:
            names = [o["id"] for o in episode["observations"] if o["name"] == name and o.get("origin") != "operator"]
            unit = "MHz" if name == "capacity" else None
            episode["observations"].append(
                answer(f"a-{name}", {"cqi": 10, "users": 5, "capacity": 60}[name], *names, name=name, unit=unit)
            )
    assert (decide(episode)["action"] == "APPLY") == (not open_faults)


# Through the store.


def test_the_store_keeps_answers_apart_from_what_sources_sent() -> None:
    resolution = load_contract(CONTRACT).resolve({})
    store = EvidenceStore()
    member = resolution.members[0]
    source = member.sources[0]

    def put(report_id: str, by: str, value: float, at: int, **more: Any) -> None:
        said = Measurement(member.field.name, value, member.field.unit, member.subject, **more)
        store.append(Report(report_id, by, at, (said,)), at)

    put("r", source, 1.0, T - 100)
    put("old", "other", 2.0, T - 5000)
    for by in (source, "operator:alice"):
        put(f"a-{by}", by, 3.0, T - 50, origin="operator", parents=("r#0", "old#0"))
    found = {o.id for o in store.episode_observations(resolution, T)}
    assert {"r#0", f"a-{source}#0", "a-operator:alice#0", "old#0"} <= found
    for at, origin in ((T - 100, "live"), (T - 50, "operator")):
        strange = Measurement("mystery", 1, None, None, origin=origin)
        store.append(Report(f"m{at}", resolution.by_field["capacity"][0].sources[0], at, (strange,)), at)
    assert f"m{T - 100}#0" in {o.id for o in store.episode_observations(resolution, T)}
    denial = Measurement("operator_verdict", "deny", None, "proposal:p-7", origin="operator")
    store.append(Report("deny", "operator:alice", T, (denial,)), T)
    store.append(Report("allow", "operator:alice", T + 1, (replace(denial, value="allow"),)), T)
    assert "deny#0" not in {o.id for o in store.episode_observations(resolution, T)}
    assert "deny#0" in {o.id for o in store.episode_observations(resolution, T, "p-7")}


RATE = load_contract(
    {
        "contract_id": "rate/1",
        "fields": {
            "rate": {
                "kind": "observed", "unit": "Mbit/s", "freshness_ms": 1_000, "sources": ["e2:gnb-1"], "tolerance": 2,
            },
            "bandwidth": {"kind": "planned", "unit": "MHz"},
        },
        "constraints": [{"id": "c", "expr": "bandwidth <= rate"}],
    }
).fields["rate"]  # fmt: skip


def looked(value: Any, unit: str | None, source: str = "e2:gnb-1", name: str = "rate") -> Observation:
    return Observation("o", name, value, unit, source, 1, 1, subject="cell:1")


@pytest.mark.parametrize(
    ("saw", "says", "unit", "same"),
    [
        (3, 4.5, "Mbit/s", True),
        (3, 5.5, "Mbit/s", False),
        (3_000, 4_500, "kbit/s", True),
        (3_000, 5_500, "kbit/s", False),
        (0.003, 0.0045, "Gbit/s", True),
        (0.003, 0.0055, "Gbit/s", False),
        (3, 3, None, True),
        (3, 3.5, None, False),
        (3, 3.5, "furlong", False),
        (True, 1, "Mbit/s", False),
        (None, None, "Mbit/s", True),
        (None, 3, "Mbit/s", False),
    ],
)
def test_a_source_repeats_what_was_seen_within_the_tolerance_of_the_field_in_the_unit_of_the_field(
    saw: Any, says: Any, unit: str | None, same: bool
) -> None:
    assert repeats(looked(saw, unit), looked(says, unit), RATE) is same
    assert not repeats(looked(saw, unit, source="rt:north"), looked(says, unit), RATE)
    assert not repeats(looked(saw, unit), looked(says, "kHz"), RATE)
