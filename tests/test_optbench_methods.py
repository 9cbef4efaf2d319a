"""Laws of the methods, their tools, and the ablations of WirelessOptBench."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulators.optbench.ablations import ABLATIONS
from simulators.optbench.agents import Bundle, Completion, Prompt
from simulators.optbench.base.lookup import compute, look_up
from simulators.optbench.base.wchw import generate_wchw
from simulators.optbench.base.wcmsa import generate_wcmsa
from simulators.optbench.base.wcns import generate_wcns
from simulators.optbench.candidates import view_of
from simulators.optbench.methods import METHODS, build
from simulators.optbench.methods.plans import readable_plan
from simulators.optbench.model import BaseItem
from simulators.optbench.realisation import FAMILIES, Scene
from simulators.optbench.replies import read_reply
from simulators.optbench.tools import answer_of, consult, contract_of, nominal, observed_by, read_out
from xapp.contract import normalise
from xapp.engine import assure
from xapp.episode import parse_episode

BLOCKING = {"HOLD", "RETRY", "ESCALATE"}


@dataclass
class Scripted:
    """A backbone that says its texts in order, the last one for ever; hears every prompt."""

    texts: Sequence[str]
    name: str = "scripted"
    synthetic: bool = True
    heard: list[Prompt] = field(default_factory=list)

    def complete(self, prompt: Prompt) -> Completion:
        self.heard.append(prompt)
        text = self.texts[min(len(self.heard), len(self.texts)) - 1]
        return Completion(text, tokens_in=7, tokens_out=3, cost_usd=0.5)


@dataclass(frozen=True)
class World:
    item: BaseItem
    view: Mapping[str, Any]
    family: str = "clean"


def draw(task: str, seed: int) -> BaseItem:
    generate = {"WCNS": generate_wcns, "WCMSA": generate_wcmsa, "WCHW": generate_wchw}[task]
    return generate(random.Random(seed), seed)


def clean(task: str, seed: int = 1) -> World:
    item = draw(task, seed)
    return World(item, view_of(item, Scene(item, random.Random(seed)).facts()))


def realised() -> list[World]:
    """One world a family and task."""
    found = []
    for task in ("WCNS", "WCMSA", "WCHW"):
        for place, family in enumerate(FAMILIES):
            for seed in range(place, place + 40):
                item = draw(task, seed)
                facts = family.realise(Scene(item, random.Random(seed)))
                if facts is not None:
                    found.append(World(item, view_of(item, facts), family.name))
                    break
    return found


CLEAN = [clean("WCNS"), clean("WCMSA"), clean("WCHW")]
SLICING = CLEAN[:2]
REALISED = realised()
WORLDS = [*CLEAN, *REALISED]


def right(world: World, action: str = "APPLY", **changes: Any) -> str:
    """The reply of a proposer that makes no mistake but, perhaps, in its action; plan entries as `changes` say."""
    contract = contract_of(world.view["episode"])
    plan = {n: {"value": v, "unit": contract.fields[n].unit} for n, v in world.item.plan.items()} | changes
    read = read_out(contract, world.view["episode"]["observations"])
    fields = {
        n: {"state": "supported", "observation": read[n]["id"] if n in read else None}
        for n, f in contract.fields.items() if f.kind == "observed"
    }  # fmt: skip
    plan = {name: entry for name, entry in plan.items() if entry != "left out"}
    return json.dumps({"action": action, "answer": dict(world.item.answer), "plan": plan, "fields": fields})


def planned(world: World) -> str:
    """A planned field that is a number."""
    return "answer" if world.item.task == "WCHW" else "bandwidth"


def decided(name: str, world: World, *texts: str) -> Bundle:
    return build(name, Scripted(texts)).decide(world.view)


def engine_decision(world: World, proposal_plan: Mapping[str, Any]) -> Any:
    """What the engine says of the whole episode document, read from its bytes."""
    episode = world.view["episode"]
    proposal = {
        "proposal_id": "p", "proposer": "x", "created_at_ms": episode["decided_at_ms"], "control_key": "k",
        "plan": proposal_plan,
    }  # fmt: skip
    return assure(parse_episode(orjson.dumps({**episode, "proposal": proposal}), {}))


def test_methods_and_ablations_are_those_of_the_tables() -> None:
    assert set(METHODS) == {
        "direct", "direct-minimal", "direct-nocontract", "wirelessagent-contract", "critic", "wirelessopsagent",
        "always-apply", "always-block",
    }  # fmt: skip
    assert set(ABLATIONS) == {
        "monitor-only", "no-integrity-monitor", "no-action-governor", "no-utility-repair", "no-normalizer",
        "no-conflict-freshness", "no-memory",
    }  # fmt: skip
    for name in (*METHODS, *ABLATIONS):
        assert build(name, Scripted([""])).name == name
    with pytest.raises(KeyError):
        build("no such method", Scripted([""]))


@pytest.mark.parametrize("name", [*METHODS, *ABLATIONS])
def test_a_decision_changes_no_view_and_is_the_same_twice(name: str) -> None:
    for world in WORLDS[::3]:
        before = orjson.dumps(world.view)
        text = right(world, **{planned(world): {"value": 3, "unit": "kHz"}})
        assert decided(name, world, text) == decided(name, world, text)
        assert orjson.dumps(world.view) == before


@pytest.mark.parametrize("name", [*METHODS, *ABLATIONS])
def test_every_call_is_counted(name: str) -> None:
    bundle = decided(name, CLEAN[0], right(CLEAN[0], bandwidth="left out"))
    assert bundle.calls == (4 if name == "critic" else 1)
    assert (bundle.tokens_in, bundle.tokens_out) == (7 * bundle.calls, 3 * bundle.calls)
    assert bundle.cost_usd == 0.5 * bundle.calls


# direct, and the sanity rows


@pytest.mark.parametrize("name", ["direct", "direct-minimal", "direct-nocontract"])
def test_direct_hands_on_what_it_is_told(name: str) -> None:
    for world in WORLDS[::5]:
        text = right(world, "ESCALATE", bandwidth="left out", zeal={"value": 1, "unit": None})
        said, bundle = read_reply(text), decided(name, world, text)
        assert bundle.proposed == said
        assert (bundle.action, bundle.answer, bundle.plan) == (said.action, said.answer, said.plan)  # type: ignore[union-attr]


def test_an_unchecked_record_is_the_claims_with_what_the_ledger_exposes() -> None:
    world = CLEAN[0]
    observations = {o["id"]: o for o in world.view["episode"]["observations"]}
    some = next(iter(observations))
    claims = {"cqi": {"state": "supported", "observation": some}, "x": {"state": "blocked", "observation": "o0"}}
    bundle = decided("direct", world, json.dumps({"action": "HOLD", "fields": claims}))
    assert bundle.record == {
        "fields": {
            "cqi": {**claims["cqi"], "value": observations[some]["value"], "unit": observations[some]["unit"]},
            "x": {**claims["x"], "value": None, "unit": None},
        },
        "blocked": ["o0"],
        "repairs": [],
    }


@pytest.mark.parametrize("name", [*METHODS, *ABLATIONS])
def test_a_reply_without_a_proposal_is_an_invalid_output_of_every_method_and_counted(name: str) -> None:
    for text in ("", "no proposal", "{" * 20_000, '{"action": NaN}'):
        bundle, said = decided(name, CLEAN[0], text), read_reply(text)
        assert (bundle.action, bundle.invalid) == (None, said.reason)  # type: ignore[union-attr]
        assert (bundle.answer, bundle.plan, bundle.record, bundle.proposed) == (None, {}, None, None)
        assert (bundle.calls, bundle.tokens_in) == (1, 7)


@dataclass
class Dead:
    """A backbone whose every call fails."""

    name: str = "dead"
    synthetic: bool = False

    def complete(self, prompt: Prompt) -> Completion:
        return Completion("", error="HTTP 500: gone")


@pytest.mark.parametrize("name", [*METHODS, *ABLATIONS])
def test_a_call_that_failed_is_an_invalid_output_of_every_method_whatever_the_evidence(name: str) -> None:
    for world in WORLDS[::5]:
        bundle = build(name, Dead()).decide(world.view)
        assert (bundle.action, bundle.invalid, bundle.calls) == (None, "HTTP 500: gone", 1)


@pytest.mark.parametrize("name", ["direct", "wirelessagent-contract", "critic", "no-action-governor"])
def test_who_needs_the_proposers_action_has_none_without_one(name: str) -> None:
    bundle = decided(name, CLEAN[0], '{"plan": {}}')
    assert (bundle.action, bundle.invalid) == (None, "the reply names no action")


@pytest.mark.parametrize(("name", "action"), [("always-apply", "APPLY"), ("always-block", "HOLD")])
def test_a_sanity_row_says_one_thing(name: str, action: str) -> None:
    for world in WORLDS[::5]:
        for text in (right(world, "RETRY"), '{"plan": {}}'):
            bundle = decided(name, world, text)
            assert bundle.action == action
            assert bundle.invalid is None


# tools, and the contract on the proposal's own fields


@pytest.mark.parametrize("world", WORLDS[::4], ids=lambda w: f"{w.item.task}-{w.family}")
def test_what_tools_tell_descends_from_the_ledger_and_is_named_apart(world: World) -> None:
    told, held = consult(world.view), {o["id"] for o in world.view["episode"]["observations"]}
    assert [o["id"] for o in told] == [f"t{i}" for i in range(1, len(told) + 1)]
    assert held.isdisjoint(o["id"] for o in told)
    assert all(set(o["parents"]) <= held and o["source"].startswith("tool:") for o in told)


@pytest.mark.parametrize("world", CLEAN, ids=lambda w: w.item.task)
def test_on_clean_evidence_tools_and_question_give_the_reference_answer(world: World) -> None:
    values = nominal(world.view)
    assert {name: values[name] for name in world.item.plan} == pytest.approx(world.item.plan)
    answer = answer_of(world.item.task, values, world.item.answer.get("unit", ""))
    assert answer == {
        key: pytest.approx(value, rel=1e-3) if key == "value" else value for key, value in world.item.answer.items()
    }
    computed = {o["name"]: o["value"] for o in consult(world.view)}
    assert {name: computed[name] for name in world.item.plan} == pytest.approx(world.item.plan)


def test_what_the_question_states_holds_whatever_the_ledger_says() -> None:
    for world in REALISED:
        values, told = nominal(world.view), "service_class"  # the class is not stated, but read out
        if values.get(told) == world.item.observed.get(told):
            assert values[planned(world)] == pytest.approx(world.item.plan[planned(world)]), world.family


@pytest.mark.parametrize(
    ("change", "action"),
    [
        ({}, "APPLY"),
        ({"bandwidth": "left out"}, "HOLD"),
        ({"bandwidth": {"value": None, "unit": "MHz"}}, "HOLD"),
        ({"bandwidth": {"value": 5, "unit": None}}, "HOLD"),
        ({"bandwidth": {"value": 5, "unit": "Mbit/s"}}, "HOLD"),
        ({"bandwidth": {"value": 5000, "unit": "MHz"}}, "HOLD"),
        ({"bandwidth": {"value": 99, "unit": "MHz"}}, "HOLD"),  # inside its limits, beyond the capacity or the range
        ({"throughput": "left out"}, "APPLY"),
    ],
)
@pytest.mark.parametrize("world", SLICING, ids=lambda w: w.item.task)
def test_a_plan_that_breaks_the_contract_by_its_own_fields_is_held(
    world: World, change: dict[str, Any], action: str
) -> None:
    assert decided("wirelessagent-contract", world, right(world, **change)).action == action
    refused = decided("wirelessagent-contract", world, right(world, "RETRY", **change))
    assert refused.action == "RETRY"


def test_a_plan_beyond_the_limits_of_a_field_is_held() -> None:
    text = right(CLEAN[1], position_x={"value": 10_001, "unit": "m"})
    assert decided("wirelessagent-contract", CLEAN[1], text).action == "HOLD"


def told(id_: str, name: str, source: str, event: int, **more: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "source": source, "value": 1, "event_time_ms": event, "ingest_time_ms": 9} | more


def test_a_read_out_takes_the_newest_that_says_something() -> None:
    contract = contract_of(CLEAN[0].view["episode"])
    first, second = contract.fields["embb_users"].sources
    sure = [told("a", "embb_users", first, 5), told("b", "EMBB-users", second, 5), told("c", "embb_users", first, 4)]
    tempting = [
        told("d", "embb_users", first, 6, origin="memory"),
        told("e", "users", first, 6),
        told("f", "embb_users", first, 6, value=None),
        told("g", "embb_users", first, 6, quality="suspect"),
    ]
    read = read_out(contract, [*tempting, *sure])
    assert {name: o["id"] for name, o in read.items()} == {"embb_users": "a", "urllc_users": "e"}
    assert read_out(contract, [*tempting, sure[2], sure[1]])["embb_users"]["id"] == "b"
    assert read_out(contract, tempting[:1])["embb_users"]["id"] == "d"
    assert set(read_out(contract, tempting[1:])) == {"embb_users"}


def test_the_calculator_takes_what_the_ledger_exposes() -> None:
    world = CLEAN[2]
    found = look_up(world.item.question)
    assert found is not None
    view = orjson.loads(orjson.dumps(world.view))
    name = next(iter(found.parameters))
    for o in view["episode"]["observations"]:
        if o["name"] == name:
            o["value"] *= 1.01
    computed = {o["name"]: o["value"] for o in consult(view)}
    assert computed["formula"] == found.formula.name
    exposed = {**found.parameters, name: 1.01 * found.parameters[name]}
    assert computed["result"] == computed["answer"] == pytest.approx(compute(found.formula, exposed))
    assert computed["result"] != pytest.approx(found.result, rel=1e-6)
    assert nominal(view)["answer"] == found.result


# critique


@pytest.mark.parametrize("world", CLEAN, ids=lambda w: w.item.task)
def test_a_critic_that_finds_nothing_asks_once(world: World) -> None:
    backbone = Scripted([right(world)])
    assert build("critic", backbone).decide(world.view).action == "APPLY"
    assert len(backbone.heard) == 1
    derived = Scripted([right(world, throughput="left out")])
    build("critic", derived).decide(world.view)
    assert len(derived.heard) == 1


@pytest.mark.parametrize("world", SLICING, ids=lambda w: w.item.task)
def test_a_critic_revises_at_most_three_times_and_names_what_it_disputes(world: World) -> None:
    backbone = Scripted([right(world, bandwidth={"value": 4321, "unit": "kHz"})])
    bundle = build("critic", backbone).decide(world.view)
    assert [p.round for p in backbone.heard] == [0, 1, 2, 3]
    assert all(p.purpose == "revise" and "plan:bandwidth" in p.disputed for p in backbone.heard[1:])
    assert bundle.plan["bandwidth"] == {"value": 4321, "unit": "kHz"}


def test_a_critic_stops_when_the_dispute_is_settled_and_keeps_what_it_can_read() -> None:
    world = CLEAN[0]
    wrong = right(world, bandwidth="left out")
    mended = Scripted([wrong, right(world)])
    assert build("critic", mended).decide(world.view).plan == read_reply(right(world)).plan  # type: ignore[union-attr]
    assert len(mended.heard) == 2
    lost = Scripted([wrong, "I give up"])
    assert build("critic", lost).decide(world.view).proposed == read_reply(wrong)
    assert len(lost.heard) == 2


def test_a_critic_looks_at_the_evidence_that_is_cited() -> None:
    world = CLEAN[0]
    view = orjson.loads(orjson.dumps(world.view))
    read = read_out(contract_of(view["episode"]), view["episode"]["observations"])

    def disputed(about: str, /, outage: str = "", **change: Any) -> tuple[str, ...]:
        changed = orjson.loads(orjson.dumps(view))
        for o in changed["episode"]["observations"]:
            if o["id"] == read[about]["id"]:
                o.update(change)
        changed["episode"]["sources"] = {outage: {"status": "outage"}} if outage else {}
        return disputes(changed, right(world))

    t = view["episode"]["decided_at_ms"]
    assert disputed("x") == ()
    for about, instead, change in (
        ("cqi", "HOLD", {"event_time_ms": t - 10**6}),
        ("y", "HOLD", {"quality": "no_value"}),
        ("y", "HOLD", {"id": "elsewhere"}),
        ("y", "HOLD", {"name": "northing"}),
        ("y", "HOLD", {"schema": "unheard/9"}),
        ("y", "HOLD", {"unit": "furlong"}),
        ("y", "ESCALATE", {"unit": None}),
        ("y", "ESCALATE", {"unit": "MHz"}),
        ("y", "ESCALATE", {"name": "Position"}),
        ("y", "ESCALATE", {"source": "stranger"}),
    ):
        assert disputed(about, **change)[-2:] == (f"fields:{about}", f"action:{instead}"), change
    assert disputed("x", outage=read["x"]["source"]) == ("fields:x", "fields:y", "action:RETRY"), "one source of both"
    assert disputed("y", name="UE Y") == ()
    assert disputed("load", unit=None) == ()


def disputes(view: Mapping[str, Any], *texts: str) -> tuple[str, ...]:
    """What the first critique of a proposal disputes."""
    backbone = Scripted(texts)
    build("critic", backbone).decide(view)
    return () if len(backbone.heard) == 1 else backbone.heard[1].disputed


def test_a_critic_compares_what_is_cited_with_the_rest_of_the_ledger() -> None:
    world = CLEAN[0]
    view = orjson.loads(orjson.dumps(world.view))
    t, observations = view["episode"]["decided_at_ms"], view["episode"]["observations"]
    sources = contract_of(view["episode"]).fields["x"].sources
    (cited,) = [o for o in observations if o["id"] == json.loads(right(world))["fields"]["x"]["observation"]]
    second = sources[1 - sources.index(cited["source"])]
    rest = [o for o in observations if o is cited or o["name"] != "x"]
    other = {**cited, "id": "other", "source": second, "value": cited["value"] + 20, "event_time_ms": t - 400}
    older = {**other, "source": cited["source"], "event_time_ms": cited["event_time_ms"] - 50}

    def found(*more: dict[str, Any]) -> tuple[str, ...]:
        return disputes({**view, "episode": {**view["episode"], "observations": [*rest, *more]}}, right(world))

    escalates = ("fields:x", "action:ESCALATE")
    assert found(other)[-2:] == escalates
    assert found({**other, "name": "UE-X", "value": other["value"] / 1000, "unit": "km"})[-2:] == escalates
    assert found({**older, "event_time_ms": cited["event_time_ms"]})[-2:] == escalates, "two values at one time"
    assert found({**older, "version": cited["version"] + 1})[-2:] == escalates, "an older event overwrites"
    taken_back = {**other, "id": "newest", "value": cited["value"], "event_time_ms": t - 10}
    for harmless in (
        {**other, "value": cited["value"] + 0.5},
        {**other, "event_time_ms": t - 10**6},
        {**other, "origin": "memory"},
        {**other, "source": "stranger"},
        {**other, "unit": "dB"},
        {**other, "value": None},
        {**other, "name": "position"},
        {**older, "version": cited["version"] - 1},
        {**older, "version": cited["version"] + 1, "value": cited["value"]},
    ):
        assert found(harmless) == (), harmless
    assert found(other, taken_back) == ()


def test_a_critic_disputes_an_apply_that_says_itself_that_a_field_is_blocked() -> None:
    world = CLEAN[0]
    said = json.loads(right(world))
    said["fields"]["cqi"] = {"state": "blocked", "observation": None}
    assert disputes(world.view, json.dumps(said))[-2:] == ("fields:cqi", "action:HOLD")
    assert disputes(world.view, json.dumps({**said, "action": "HOLD"})) == ()


def test_a_critic_hears_tools_in_every_round_and_takes_none_of_them_for_evidence() -> None:
    world = CLEAN[0]
    backbone = Scripted([right(world, bandwidth="left out")])
    build("critic", backbone).decide(world.view)
    assert len(backbone.heard) == 4
    for prompt in backbone.heard:
        assert all(f'"{o["id"]}"' in prompt.messages[1][1] for o in consult(world.view))
    said = json.loads(right(world))
    said["fields"]["cqi"]["observation"] = "t1"
    assert disputes(world.view, json.dumps(said)) == ("fields:cqi",), "a citation is wanted, no other action"


def test_a_critic_finds_every_conflict_that_the_ledger_shows_and_follows_no_lineage() -> None:
    seen = set()
    for world in REALISED:
        if world.family in ("material_conflict", "self_contradiction", "overwritten_by_older", "shared_name",
                            "missing_unit", "foreign_unit"):  # fmt: skip
            assert disputes(world.view, right(world))[-1:] == ("action:ESCALATE",), world.family
            seen.add(world.family)
        if world.family in ("lost_lineage", "known_alias", "compatible_unit", "immaterial_disagreement"):
            on_evidence = [name for name in disputes(world.view, right(world)) if not name.startswith("plan:")]
            assert on_evidence == [], world.family
            seen.add(world.family)
    assert len(seen) == 10


# the guard


def test_the_agent_under_test_decides_as_the_engine_does_and_releases_what_it_rebuilt() -> None:
    actions = set()
    for world in WORLDS:
        text = right(world, **{planned(world): {"value": 77, "unit": "MHz"}})
        bundle = decided("wirelessopsagent", world, text)
        decision = engine_decision(world, read_reply(text).plan)  # type: ignore[union-attr]
        assert bundle.action == decision.action, world.family
        assert bundle.plan == (decision.released or orjson.loads(decision.record)["candidate"])
        assert bundle.record is not None
        assert bundle.record["blocked"] == list(decision.blocked)
        supported = {n: [c["observation"]] for n, c in bundle.record["fields"].items() if c["state"] == "supported"}
        assert supported == {n: list(ids) for n, ids in decision.used.items()}
        actions.add(bundle.action)
    assert actions == BLOCKING | {"APPLY"}


NOTHING = '{"plan": {}}'
"""A proposal that can be read, and says nothing."""


def test_the_guard_does_not_depend_on_what_the_proposer_says() -> None:
    for world in WORLDS:
        said, unsaid = decided("wirelessopsagent", world, right(world)), decided("wirelessopsagent", world, NOTHING)
        refused = decided("wirelessopsagent", world, right(world, "HOLD"))
        assert said.action == unsaid.action == refused.action, world.family
        assert unsaid.invalid is None


def test_the_answer_stays_that_of_the_question_where_the_evidence_is_blocked() -> None:
    for world in REALISED:
        told = "service_class"  # the class is not stated, but read out
        if nominal(world.view).get(told) != world.item.observed.get(told):
            continue
        reply = json.loads(right(world, **{planned(world): {"value": 7e7, "unit": None}}))
        bundle = decided("wirelessopsagent", world, json.dumps({**reply, "answer": None}))
        if bundle.action != "APPLY":
            key = "value" if world.item.task == "WCHW" else "bandwidth"
            assert bundle.answer[key] == pytest.approx(world.item.answer[key], rel=0.25), world.family


def test_what_the_evidence_supports_makes_the_answer_and_the_rest_is_the_word_of_the_proposer() -> None:
    world = CLEAN[1]
    view = orjson.loads(orjson.dumps(world.view))
    for o in view["episode"]["observations"]:
        if o["name"] == "min_rate":
            o["value"] = 1.25
    assert decided("wirelessopsagent", World(world.item, view), NOTHING).answer["min_rate_required"] == 1.25
    view["episode"]["observations"] = [o for o in view["episode"]["observations"] if o["name"] != "cqi"]
    assert "predicted_cqi" not in decided("wirelessopsagent", World(world.item, view), NOTHING).answer
    said = decided("wirelessopsagent", World(world.item, view), right(world)).answer
    assert said["predicted_cqi"] == world.item.answer["predicted_cqi"]


NAMES = frozenset(contract_of(CLEAN[0].view["episode"]).by_name)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(-1e30, 1e30) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)

ENTRY = JSON | st.fixed_dictionaries({"value": JSON | st.just(10**25)}, optional={"unit": JSON, "note": JSON})


@settings(max_examples=60)
@given(junk=st.dictionaries(st.text(max_size=8).filter(lambda n: normalise(n) not in NAMES), JSON, max_size=3))
def test_an_entry_that_says_nothing_of_any_field_spoils_no_plan(junk: dict[str, Any]) -> None:
    world = CLEAN[0]
    contract = contract_of(world.view["episode"])
    plan = json.loads(right(world))["plan"]
    assert readable_plan({**junk, **plan}, contract) == plan
    assert decided("wirelessopsagent", world, right(world, **junk)).action == "APPLY"


@settings(max_examples=100)
@given(plan=st.dictionaries(st.sampled_from(["bandwidth", "Bandwidth", "slice_type", "slice-type"]), ENTRY))
def test_the_engine_never_calls_a_readable_plan_malformed(plan: dict[str, Any]) -> None:
    world = CLEAN[0]
    decision = engine_decision(world, readable_plan(plan, contract_of(world.view["episode"])))
    assert decision.action == "APPLY"


# the ablations: each transforms what its row says, and nothing else


def transformed(name: str, world: World) -> tuple[dict[str, Any], dict[str, Any]]:
    """Episode document before and after, as plain JSON."""
    before = world.view["episode"]
    return orjson.loads(orjson.dumps(before)), orjson.loads(orjson.dumps(ABLATIONS[name].evidence(before)))


def without(document: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}


def test_no_memory_leaves_every_other_observation_as_it_is() -> None:
    remembered = 0
    for world in WORLDS:
        before, after = transformed("no-memory", world)
        assert without(after, "observations") == without(before, "observations")
        assert after["observations"] == [o for o in before["observations"] if o["origin"] != "memory"]
        remembered += len(before["observations"]) - len(after["observations"])
    assert remembered, "a family offers memory"


def test_no_normalizer_changes_names_and_units_alone() -> None:
    for world in WORLDS:
        before, after = transformed("no-normalizer", world)
        contract = contract_of(before)
        assert without(after, "observations") == without(before, "observations")
        for was, now in zip(before["observations"], after["observations"], strict=True):
            assert without(now, "name", "unit") == without(was, "name", "unit")
            fields = observed_by(contract, was["name"])
            told = (fields[0], contract.fields[fields[0]].unit) if fields else (was["name"], was["unit"])
            assert (now["name"], now["unit"]) == told


def test_no_conflict_freshness_lifts_limits_and_drops_versions_alone() -> None:
    for world in WORLDS:
        before, after = transformed("no-conflict-freshness", world)
        assert without(after, "observations", "contract") == without(before, "observations", "contract")
        ids = {o["id"] for o in after["observations"]}
        kept = [without(o, "version") for o in before["observations"] if o["id"] in ids]
        assert after["observations"] == kept
        texts = {f.name for f in contract_of(before).fields.values() if f.type == "string"}
        for dropped in (o for o in before["observations"] if o["id"] not in ids):
            fields = observed_by(contract_of(before), dropped["name"])
            assert set(fields) <= texts
            heard = [o for o in after["observations"] if observed_by(contract_of(before), o["name"]) == fields]
            assert heard
            assert all(o["value"] != dropped["value"] for o in heard)
        for name, spec in before["contract"]["fields"].items():
            lifted = after["contract"]["fields"][name]
            if spec["kind"] == "observed":
                assert without(lifted, "freshness_ms", "tolerance") == without(spec, "freshness_ms", "tolerance")
            else:
                assert lifted == spec


@pytest.mark.parametrize("name", ["monitor-only", "no-utility-repair"])
def test_without_a_plan_gate_the_contract_asks_for_evidence_alone(name: str) -> None:
    for world in WORLDS:
        before, after = transformed(name, world)
        assert without(after, "contract") == without(before, "contract")
        observed = {n: spec for n, spec in before["contract"]["fields"].items() if spec["kind"] == "observed"}
        assert after["contract"]["fields"] == observed
        assert after["contract"]["constraints"] == []


def test_evidence_taken_as_good_is_one_value_a_field_that_the_ledger_holds() -> None:
    for world in WORLDS:
        before, after = transformed("no-integrity-monitor", world)
        held = {o["id"] for o in before["observations"]}
        told = [o["name"] for o in after["observations"]]
        assert len(set(told)) == len(told)
        assert held.issuperset(o["id"] for o in after["observations"])
        assert after["sources"] == {}
        assert set(told) <= set(after["contract"]["fields"])


@pytest.mark.parametrize("name", ["no-integrity-monitor", "no-action-governor"])
def test_without_monitor_or_governor_what_is_blocked_is_executed(name: str) -> None:
    for world in REALISED:
        contract = contract_of(world.view["episode"])
        read = read_out(contract, world.view["episode"]["observations"])
        if any(contract.fields[n].critical for n in read):
            assert decided(name, world, right(world)).action == "APPLY", world.family


def test_without_the_governor_the_intent_is_executed_and_the_rest_is_as_ever() -> None:
    for world in REALISED[::3]:
        full, off = (decided(name, world, right(world, "RETRY")) for name in ("wirelessopsagent", "no-action-governor"))
        assert off.action == "RETRY"
        assert (off.plan, off.record, off.answer) == (full.plan, full.record, full.answer)


def test_the_monitor_alone_routes_like_the_whole_and_releases_the_plan_as_written() -> None:
    for world in WORLDS:
        changed = {planned(world): {"value": 12345, "unit": None}, "zeal": {"value": 1}}
        text = right(world, **changed, throughput="left out")
        full, alone = decided("wirelessopsagent", world, text), decided("monitor-only", world, text)
        said = read_reply(text)
        assert alone.action == full.action, world.family
        assert (alone.plan, alone.answer) == (said.plan, said.answer)  # type: ignore[union-attr]
        assert alone.record is not None
        assert alone.record["repairs"] == []


def test_a_field_without_evidence_is_released_as_proposed_where_nobody_monitors() -> None:
    world = CLEAN[0]
    view = orjson.loads(orjson.dumps(world.view))
    observations = view["episode"]["observations"]
    view["episode"]["observations"] = [o for o in observations if o["name"] not in ("embb_users", "cqi")]
    wrong = {"value": 7.5 if world.item.plan["slice_type"] == "eMBB" else 2.5, "unit": "MHz"}
    bundle = decided("no-integrity-monitor", World(world.item, view), right(world, bandwidth=wrong))
    assert bundle.action == "APPLY"
    assert bundle.plan["bandwidth"] == wrong
    assert "throughput" not in bundle.plan


def test_without_utility_repair_names_and_units_are_mended_and_nothing_is_recomputed() -> None:
    world = CLEAN[0]
    text = right(world, bandwidth="left out", Bandwidth={"value": 12345, "unit": "kHz"}, throughput={"value": 1})
    bundle = decided("no-utility-repair", world, text)
    assert bundle.action == "APPLY"
    assert bundle.plan["bandwidth"] == {"value": 12.345, "unit": "MHz"}
    assert bundle.plan["throughput"] == {"value": 1, "unit": None}
    assert bundle.record is not None
    assert {r["operator"] for r in bundle.record["repairs"] if r["field"] == "bandwidth"} == {"rename", "convert_unit"}
    assert bundle.answer == world.item.answer
