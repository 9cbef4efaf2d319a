"""Laws of realisation: what families do to evidence, and how facts are rendered into a ledger."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.optbench.base.formulas import FORMULAS
from simulators.optbench.base.wcmsa import generate_wcmsa
from simulators.optbench.base.wcns import generate_wcns
from simulators.optbench.contracts import wchw_contract
from simulators.optbench.model import TASKS, BaseItem, Change, ChangeKind, Exposure, Facts, Task
from simulators.optbench.oracle import judge
from simulators.optbench.realisation import FAMILIES, Family, Scene, render
from simulators.optbench.realisation.nonces import Nonces
from simulators.optbench.realisation.scene import PLANES, PRIMARY, SECONDARY
from simulators.optbench.realisation.units import compatible, dimension, foreign, told_in
from xapp.engine import assure
from xapp.episode import parse_episode
from xapp.model import Decision
from xapp.units import converter, known

T = 1_790_000_000_000
ITEMS: dict[Task, int] = {"WCHW": 14, "WCNS": 6, "WCMSA": 6}

# what operators would want of each family's evidence, by the rules; every other family must be safe to apply
EXPECTED = {
    "unaccepted_schema": "HOLD", "unknown_name": "HOLD", "missing_unit": "ESCALATE", "shared_name": "ESCALATE",
    "foreign_unit": "ESCALATE", "all_stale": "HOLD", "stale_parent": "HOLD", "repeated_report": "HOLD",
    "overwritten_by_older": "ESCALATE", "brownout_without_value": "RETRY", "silent_brownout": "RETRY",
    "brownout_with_stale_cache": "RETRY", "brownout_with_stale_memory": "RETRY", "material_conflict": "ESCALATE",
    "self_contradiction": "ESCALATE", "lost_lineage": "ESCALATE", "stale_and_renewed_at_one_source": "HOLD",
    "outage_and_stale_at_one_source": "RETRY", "stale_here_renewed_there": "ESCALATE",
    "outage_here_fault_there": "ESCALATE", "conflict_beside_outage": "ESCALATE",
}  # fmt: skip


def wchw_item(number: int) -> BaseItem:
    """An item of a formula of the library, taken from all over it, so that some have one input and some several."""
    usable = [f for f in FORMULAS.values() if all(p.unit != "1" or min(p.draws) >= 0 for p in f.parameters)]
    formula = usable[number * len(usable) // ITEMS["WCHW"]]
    rng = random.Random(f"wchw:{number}")
    told = {p.name: rng.choice(p.draws) for p in formula.parameters}
    result = formula.compute(*told.values())
    return BaseItem(
        "WCHW", f"w{number}", "generated", "How much is it?", {}, wchw_contract(formula),
        {**told, "result": result, "load": 42.5}, {"result": tuple(told)}, {"answer": result},
        {"value": result, "unit": formula.unit},
    )  # fmt: skip


@cache
def items(task: Task) -> tuple[BaseItem, ...]:
    made: dict[Task, Callable[[int], BaseItem]] = {
        "WCHW": wchw_item,
        "WCNS": lambda n: generate_wcns(random.Random(f"wcns:{n}"), n),
        "WCMSA": lambda n: generate_wcmsa(random.Random(f"wcmsa:{n}"), n),
    }
    return tuple(made[task](n) for n in range(ITEMS[task]))


def realise(family: Family, item: BaseItem) -> Facts | None:
    return family.realise(scene_of(family, item))


def scene_of(family: Family, item: BaseItem) -> Scene:
    return Scene(item, random.Random(f"{family.name}:{item.task}:{item.item_id}"))


Ledger = tuple[list[dict[str, Any]], dict[str, Any]]
_ledgers: dict[tuple[str, str, Facts], Ledger] = {}


def ledger(item: BaseItem, facts: Facts) -> Ledger:
    """The rendered facts; rendered once."""
    key = item.task, item.item_id, facts
    if key not in _ledgers:
        _ledgers[key] = render(item, facts, T, Nonces(f"render:{item.item_id}"))
    return _ledgers[key]


@cache
def realised() -> tuple[tuple[Family, BaseItem, Facts], ...]:
    """Every family on every item that suits it."""
    return tuple(
        (family, item, facts)
        for family in FAMILIES
        for task in TASKS
        for item in items(task)
        if (facts := realise(family, item)) is not None
    )


@cache
def disturbed() -> tuple[tuple[Family, BaseItem, Facts], ...]:
    """The same without clutter."""
    return tuple(
        (family, item, facts)
        for family, item, _ in realised()
        if (facts := family.disturb(scene_of(family, item))) is not None
    )


def changed() -> Iterator[tuple[BaseItem, Facts, Exposure, Change]]:
    for _, item, facts in realised():
        for exposure in facts.exposures:
            for change in exposure.changes:
                yield item, facts, exposure, change


def decide(item: BaseItem, facts: Facts) -> Decision:
    """The engine on the rendered ledger, with a proposal that carries the reference plan."""
    observations, sources = ledger(item, facts)
    fields = item.contract["fields"]
    plan = {
        name: {"value": value} if isinstance(value, str) else {"value": value, "unit": fields[name].get("unit", "1")}
        for name, value in item.plan.items()
    }
    document = {
        "format": "wirelessops.episode/1", "episode_id": "e", "decided_at_ms": T, "contract": item.contract,
        "sources": sources, "observations": observations,
        "proposal": {"proposal_id": "p", "proposer": "test", "created_at_ms": T, "control_key": "k", "plan": plan},
    }  # fmt: skip
    return assure(parse_episode(orjson.dumps(document), {}))


@cache
def decisions() -> tuple[tuple[Family, BaseItem, Facts, Decision], ...]:
    return tuple((family, item, facts, decide(item, facts)) for family, item, facts in realised())


def clean(task: Task, seed: int) -> tuple[Scene, Facts]:
    scene = Scene(items(task)[seed % ITEMS[task]], random.Random(seed))
    return scene, scene.facts()


def normal(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def tolerance(item: BaseItem, name: str, value: float) -> float:
    f = item.contract["fields"][name]
    return max(float(f.get("tolerance", 0)), float(f.get("rel_tolerance", 0)) * abs(value))


def observations_of(item: BaseItem, facts: Facts, exposure: Exposure) -> list[dict[str, Any]]:
    """What an exposure sent, samples of a series excepted, in arrival order."""
    renamed = [c.text for c in exposure.changes if c.kind in ("alias", "foreign_name", "shared_name")]
    name = renamed[0] if renamed else exposure.field
    origin = "memory" if exposure.memory else "live"
    sampled = {T - age for age, _ in item.series.get(exposure.field, ())}
    return [
        o
        for o in ledger(item, facts)[0]
        if (o["name"], o["source"], o["origin"]) == (name, exposure.source, origin)
        and o["event_time_ms"] not in sampled
    ]


# the families


def test_there_are_32_families_in_the_published_domains() -> None:
    assert Counter(f.domain for f in FAMILIES) == {
        "schema_unit": 9, "freshness_order": 7, "availability_brownout": 6, "conflict_provenance": 5,
        "mixed_evidence": 5,
    }  # fmt: skip
    assert len({f.name for f in FAMILIES}) == len({f.disturb for f in FAMILIES}) == 32


def test_every_family_is_documented_and_names_its_symptom() -> None:
    assert all(f.disturb.__doc__ and f.symptom for f in FAMILIES)
    assert all(f.disturb.__name__ == f.name for f in FAMILIES)


def test_every_family_serves_at_least_half_of_the_items_of_each_task() -> None:
    served = Counter((family.name, item.task) for family, item, _ in realised())
    assert [(f.name, t) for f in FAMILIES for t in TASKS if served[f.name, t] * 2 < ITEMS[t]] == []


def test_the_same_seed_gives_the_same_facts_and_the_same_bytes() -> None:
    for family, item, facts in realised():
        assert realise(family, item) == facts
        once, again = (render(item, facts, T, Nonces("1")) for _ in range(2))
        assert orjson.dumps(once) == orjson.dumps(again)


def test_every_family_leaves_something_irregular_without_clutter_too() -> None:
    for family, _, facts in disturbed():
        assert facts.outages or any(e.changes for e in facts.exposures), family.name


def test_families_use_every_kind_of_change() -> None:
    assert {change.kind for *_, change in changed()} == set(get_args(ChangeKind))


# the clean world


@pytest.mark.parametrize("task", TASKS)
@given(seed=st.integers(0, 10_000))
def test_a_clean_world_is_told_by_primaries_and_closed_under_parents(task: Task, seed: int) -> None:
    scene, facts = clean(task, seed)
    told = {(e.field, e.source): e for e in facts.exposures}
    assert {e.field for e in facts.exposures if e.source == scene.source(e.field, PRIMARY)} == set(scene.item.observed)
    for e in facts.exposures:
        assert not e.changes
        assert not e.memory
        plane = PRIMARY if e.source == scene.source(e.field, PRIMARY) else SECONDARY
        assert e.parents == tuple((p, scene.source(p, plane)) for p in scene.parents(e.field))
        assert all(parent in told for parent in e.parents)
        assert plane == PRIMARY or e.field not in scene.item.series
        oldest = max([e.age_ms, *(told[p].age_ms for p in e.parents)])
        assert 0 < oldest <= scene.limit_ms(e.field) // 2
        assert all(told[p].age_ms > e.age_ms for p in e.parents)


@pytest.mark.parametrize("task", TASKS)
def test_the_engine_applies_a_clean_world_and_finds_nothing(task: Task) -> None:
    for seed in range(ITEMS[task]):
        scene, facts = clean(task, seed)
        decision = decide(scene.item, facts)
        assert decision.action == "APPLY"
        assert (decision.violations, decision.repairs) == ((), ())


# what families may do


def test_a_plane_that_does_not_tell_a_parent_does_not_tell_the_child() -> None:
    for family, item, facts in realised():
        told = {(e.field, e.source) for e in facts.exposures if not e.memory}
        for e in facts.exposures:
            assert set(e.parents) <= told, family.name
            assert e.memory or bool(e.parents) == bool(item.lineage.get(e.field)), family.name


def test_windowed_fields_are_never_changed_nor_withheld() -> None:
    for family, item, facts in realised():
        told = {e.field: e for e in facts.exposures}
        for name in item.series:
            assert told[name].changes == (), family.name


def test_changed_values_stay_inside_the_limits_and_whole_where_they_are() -> None:
    for item, _, exposure, change in changed():
        if not change.amount or change.kind in ("aged", "repeated"):
            continue
        f, value = item.contract["fields"][exposure.field], item.observed[exposure.field]
        assert isinstance(value, int | float)
        assert f["min"] <= value + change.amount <= f["max"]
        if exposure.field == "cqi":
            assert change.amount == int(change.amount)


def test_a_difference_is_immaterial_by_a_fifth_or_material_by_as_much_again() -> None:
    for family, item, facts in disturbed():
        for exposure in facts.exposures:
            for change in exposure.changes:
                value = item.observed[exposure.field]
                if not change.amount or change.kind in ("aged", "repeated") or isinstance(value, str):
                    continue
                if family.name == "immaterial_disagreement":
                    assert 0 < abs(change.amount) <= 0.801 * tolerance(item, exposure.field, value)
                else:
                    assert abs(change.amount) >= 1.999 * tolerance(item, exposure.field, value)


def test_ages_lie_well_beyond_the_limit_or_a_millisecond_or_just_on_it() -> None:
    beyond: Counter[str] = Counter()
    for family, item, facts in disturbed():
        for e in facts.exposures:
            limit = item.contract["fields"][e.field]["freshness_ms"]
            for age in [c.amount for c in e.changes if c.kind in ("aged", "repeated")] + [e.age_ms] * e.memory:
                if family.name == "outage_with_fresh_value":
                    assert age <= limit
                    beyond["on it"] += age == limit
                elif family.name != "stale_parent":
                    assert age == limit + 1 or age >= round(1.2 * limit)
                    beyond["by 1 ms"] += age == limit + 1
    assert beyond["on it"]
    assert beyond["by 1 ms"]


def test_outages_may_be_retried_within_a_second() -> None:
    for _, _, facts in realised():
        for o in facts.outages:
            assert o.retryable
            assert o.retries_left >= 1
            assert 0 < o.retry_after_ms < 1000


def test_a_shared_name_is_the_newest_of_both_fields_at_its_source() -> None:
    for _, facts, exposure, change in changed():
        if change.kind == "shared_name":
            rivals = [e for e in facts.exposures if (e.field, e.source) == (change.other, exposure.source)]
            assert all(exposure.age_ms < e.age_ms for e in rivals)


# clutter


def test_clutter_changes_no_verdict_and_blocks_nothing() -> None:
    kept = 0
    for (family, item, plain), (_, _, facts) in zip(disturbed(), realised(), strict=True):
        assert judge(item, facts) == judge(item, plain), family.name
        kept += facts == plain
    assert len(realised()) * 0.2 < kept < len(realised()) * 0.5, "now and then there is none"


def test_clutter_tells_no_fresh_value_that_differs() -> None:
    for (family, _, plain), (_, _, facts) in zip(disturbed(), realised(), strict=True):
        before, after = ({(e.field, e.source): e for e in f.exposures if not e.memory} for f in (plain, facts))
        for key, exposure in after.items():
            added = set(exposure.changes) - set(before[key].changes if key in before else ())
            dated = {c.kind for c in exposure.changes} & {"aged", "repeated"}
            for change in added:
                assert change.kind != "contradicted", family.name
                assert change.kind != "differs" or dated, family.name
                assert change.kind != "overwritten" or change.amount == 0, family.name


def test_clutter_leaves_alone_what_the_family_changed() -> None:
    for (family, _, plain), (_, _, facts) in zip(disturbed(), realised(), strict=True):
        told = {(e.field, e.source, e.memory): e for e in facts.exposures}
        for exposure in plain.exposures:
            if exposure.changes or exposure.memory:
                assert told[exposure.field, exposure.source, exposure.memory] == exposure, family.name
        assert facts.outages == plain.outages


def test_anything_may_be_wrong_with_a_field_that_nothing_reads_beside_every_label() -> None:
    seen: dict[str, set[str]] = {}
    for (family, _, plain), (_, _, facts) in zip(disturbed(), realised(), strict=True):
        mine, ours = ([e for e in f.exposures if e.field == "load" and not e.memory] for f in (plain, facts))
        if any(e.changes for e in mine):
            continue
        kinds = {c.kind for e in ours for c in e.changes} | ({"withheld"} if len(ours) < len(mine) else set())
        for kind in kinds:
            seen.setdefault(kind, set()).add(EXPECTED.get(family.name, "APPLY"))
    harmless = {
        "alias", "foreign_name", "no_unit", "foreign_unit", "unheard_unit", "schema", "aged", "repeated", "no_value",
        "lost_parent", "withheld",
    }  # fmt: skip
    assert set(seen) == {*harmless, "differs"}, "differs: what an old report says"
    assert all({"APPLY", "ESCALATE"} < labels for labels in seen.values()), seen


def test_a_name_of_no_field_says_nothing_of_a_critical_field_that_is_silent() -> None:
    """Rules, section 3: it would be `unknown_schema` of a field that nothing is bound to, of the same source."""
    for (family, item, plain), (_, _, facts) in zip(disturbed(), realised(), strict=True):
        foreign = [{e for e in f.exposures if any(c.kind == "foreign_name" for c in e.changes)} for f in (plain, facts)]
        told = {e.field for e in facts.exposures if not e.memory and e not in foreign[1]}
        for exposure in foreign[1] - foreign[0]:
            for name, f in item.contract["fields"].items():
                if f["kind"] == "observed" and f.get("critical", True) and exposure.source in f["sources"]:
                    assert name in told, family.name


def test_memories_come_with_every_label_and_no_memory_is_newer_than_what_supports() -> None:
    seen = set()
    for family, item, facts in realised():
        for memory in (e for e in facts.exposures if e.memory):
            seen.add(EXPECTED.get(family.name, "APPLY"))
            live = [e.age_ms for e in facts.exposures if e.field == memory.field and not e.memory and not e.changes]
            limit = item.contract["fields"][memory.field]["freshness_ms"]
            assert memory.age_ms > min([limit, *live]), family.name
    assert seen == {"APPLY", "HOLD", "RETRY", "ESCALATE"}


# facts and their ledger

Seen = Callable[[BaseItem, Exposure, Change, list[dict[str, Any]]], bool]


def _field(item: BaseItem, e: Exposure) -> dict[str, Any]:
    return dict(item.contract["fields"][e.field])


def _known_names(item: BaseItem) -> dict[str, set[str]]:
    """Normal form of a name → the observed fields that it means."""
    found: dict[str, set[str]] = {}
    for name, f in item.contract["fields"].items():
        for told in (name, *f.get("aliases", ())):
            found.setdefault(normal(told), set()).add(name)
    return found


def _apart(item: BaseItem, e: Exposure, change: Change, one: Any, other: Any) -> bool:
    return bool(one == pytest.approx(other + change.amount) if change.text is None else one == change.text)


def _two(told: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    assert len(told) == 2
    return told[0], told[1]


def _repeated(item: BaseItem, e: Exposure, c: Change, told: list[dict[str, Any]]) -> bool:
    first, again = _two(told)
    same = all(first[k] == again[k] for k in ("value", "unit", "event_time_ms"))
    return same and again["ingest_time_ms"] >= T - 50 and again["event_time_ms"] == T - c.amount


def _contradicted(item: BaseItem, e: Exposure, c: Change, told: list[dict[str, Any]]) -> bool:
    second, main = _two(told)
    same = all(second[k] == main[k] for k in ("event_time_ms", "version", "unit"))
    return same and _apart(item, e, c, second["value"], main["value"])


def _late(item: BaseItem, e: Exposure, c: Change, told: list[dict[str, Any]]) -> bool:
    main, late = _two(told)
    higher = late["version"] > main["version"] if c.kind == "overwritten" else late["version"] < main["version"]
    older = late["event_time_ms"] == main["event_time_ms"] - c.age_ms
    inside = T - late["event_time_ms"] <= _field(item, e)["freshness_ms"]
    return higher and older and inside and _apart(item, e, c, late["value"], main["value"])


VISIBLE: dict[str, Seen] = {
    "alias": lambda item, e, c, told: (
        told[0]["name"] != e.field and _known_names(item)[normal(told[0]["name"])] == {e.field}
    ),
    "foreign_name": lambda item, e, c, told: normal(told[0]["name"]) not in _known_names(item),
    "shared_name": lambda item, e, c, told: _known_names(item)[normal(told[0]["name"])] == {e.field, c.other},
    "prefixed_unit": lambda item, e, c, told: (
        told[0]["unit"] == c.text != _field(item, e)["unit"]
        and converter(c.text, _field(item, e)["unit"])(told[0]["value"]) == pytest.approx(item.observed[e.field])  # type: ignore[misc]
    ),
    "no_unit": lambda item, e, c, told: told[0]["unit"] is None and _field(item, e)["unit"] != "1",
    "foreign_unit": lambda item, e, c, told: converter(told[0]["unit"], _field(item, e)["unit"]) is None,
    "unheard_unit": lambda item, e, c, told: not known(told[0]["unit"]),
    "schema": lambda item, e, c, told: told[0]["schema"] not in _field(item, e)["schemas"],
    "aged": lambda item, e, c, told: all(o["event_time_ms"] == T - c.amount for o in told),
    "repeated": _repeated,
    "differs": lambda item, e, c, told: all(_apart(item, e, c, o["value"], item.observed[e.field]) for o in told),
    "contradicted": _contradicted,
    "overtaken": _late,
    "overwritten": _late,
    "no_value": lambda item, e, c, told: told[0]["value"] is None and told[0]["quality"] == "no_value",
    "lost_parent": lambda item, e, c, told: len(told[0]["parents"]) == len(e.parents) + 1,
}


@pytest.mark.parametrize("kind", get_args(ChangeKind))
def test_each_change_shows_in_the_ledger_as_it_is_defined(kind: str) -> None:
    seen = 0
    for item, facts, exposure, change in changed():
        if change.kind == kind:
            told = observations_of(item, facts, exposure)
            assert told, "an exposure sends an observation"
            assert VISIBLE[kind](item, exposure, change, told), (change, told)
            seen += 1
    assert seen


def test_what_is_not_changed_is_told_as_the_contract_has_it() -> None:
    for _, item, facts in realised():
        for e in facts.exposures:
            if e.changes or e.memory:
                continue
            (told,) = observations_of(item, facts, e)
            f = _field(item, e)
            assert told["value"] == item.observed[e.field]
            assert told["event_time_ms"] == T - e.age_ms
            assert told["quality"] == "good"
            assert told["schema"] in f["schemas"]
            assert told["unit"] in ((None, "1") if f.get("unit", "1") == "1" else (f["unit"],))


def test_nothing_is_in_the_ledger_that_no_fact_explains() -> None:
    doubling = {"repeated", "contradicted", "overtaken", "overwritten"}
    for _, item, facts in realised():
        due = sum(1 + any(c.kind in doubling for c in e.changes) for e in facts.exposures)
        due += sum(len(item.series.get(e.field, ())) for e in facts.exposures)
        assert len(ledger(item, facts)[0]) == due


def test_the_sources_of_an_episode_are_its_outages() -> None:
    for _, item, facts in realised():
        sources = ledger(item, facts)[1]
        assert set(sources) == {o.source for o in facts.outages}
        for o in facts.outages:
            assert sources[o.source] == {
                "status": "outage", "retryable": o.retryable, "retry_after_ms": o.retry_after_ms,
                "retries_left": o.retries_left,
            }  # fmt: skip


def test_reports_arrive_after_they_are_measured_before_t_and_after_their_parents() -> None:
    for family, item, facts in realised():
        arrived: dict[str, int] = {}
        lost = any(c.kind == "lost_parent" for e in facts.exposures for c in e.changes)
        for o in ledger(item, facts)[0]:
            assert o["event_time_ms"] <= o["ingest_time_ms"] <= T
            assert all(p in arrived or lost for p in o["parents"]), family.name
            arrived[o["id"]] = o["ingest_time_ms"]
        assert list(arrived.values()) == sorted(arrived.values())


def test_a_lost_parent_is_held_by_no_ledger() -> None:
    for item, facts, exposure, change in changed():
        if change.kind == "lost_parent":
            held = {o["id"] for o in ledger(item, facts)[0]}
            assert all(set(o["parents"]) - held for o in observations_of(item, facts, exposure))


def test_names_and_members_of_observations_tell_nothing_of_the_family() -> None:
    members = set()
    for _, item, facts in realised():
        observations, _ = ledger(item, facts)
        assert [o["id"] for o in observations] == [f"o{n}" for n in range(1, len(observations) + 1)]
        members |= {tuple(o) for o in observations}
    assert len(members) == 1


def test_versions_grow_with_the_event_time_but_where_a_fact_says_otherwise() -> None:
    forced = {"repeated", "overwritten"}
    for _, item, facts in realised():
        exempt = {e.source for e in facts.exposures if any(c.kind in forced for c in e.changes)}
        by_source: dict[str, dict[int, int]] = {}
        for o in ledger(item, facts)[0]:
            if o["source"] not in exempt:
                known_version = by_source.setdefault(o["source"], {}).setdefault(o["event_time_ms"], o["version"])
                assert known_version == o["version"]
        for versions in by_source.values():
            in_time = [versions[event] for event in sorted(versions)]
            assert in_time == sorted(set(in_time))


# what follows for the guard


def test_the_engine_does_what_the_evidence_of_each_family_asks_for() -> None:
    wrong: Counter[str] = Counter()
    number: Counter[str] = Counter()
    for family, _, _, decision in decisions():
        expected = EXPECTED.get(family.name, "APPLY")
        number[family.name] += 1
        wrong[family.name] += decision.action != expected
        assert expected == "APPLY" or decision.action != "APPLY", family.name
    assert [name for name in wrong if wrong[name] * 10 > number[name]] == []


def test_no_family_leads_outside_the_four_reference_actions() -> None:
    for family, _, _, decision in decisions():
        assert decision.action in ("APPLY", "HOLD", "RETRY", "ESCALATE"), family.name
        assert {v.code for v in decision.violations}.isdisjoint({"future", "out_of_range", "constraint", "gap"})
        assert all(r.operator != "recall" for r in decision.repairs), family.name


def test_what_the_engine_uses_is_the_value_of_the_item() -> None:
    for family, item, _, decision in decisions():
        if decision.action == "APPLY":
            released = decision.released
            assert released is not None
            for name, value in item.plan.items():
                told = released[name]["value"]
                assert told == value if isinstance(value, str) else told == pytest.approx(value, rel=1e-9), family.name


# units


@given(
    unit=st.sampled_from(["MHz", "Mbit/s", "ms", "W", "mW", "dBm", "m", "km", "K", "kB", "%", "1"]),
    value=st.floats(-200, 1e6, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-6),
)
def test_a_value_told_in_another_unit_is_read_back_as_it_was(unit: str, value: float) -> None:
    if unit == "dBm":
        value = min(value, 400.0)
    for other in compatible(unit, value):
        back = converter(other, unit)
        assert back is not None
        assert back(told_in(value, unit, other)) == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("unit", ["MHz", "Mbit/s", "s", "W", "dBm", "m", "K", "B", "%", "1", "dB", "PRB", "deg"])
def test_a_foreign_unit_is_known_and_of_another_dimension(unit: str) -> None:
    assert dimension(unit)
    assert foreign(unit)
    assert all(converter(other, unit) is None for other in foreign(unit))


def test_silence_and_blanks_leave_no_child_of_what_was_not_told() -> None:
    for task in TASKS:
        for item in items(task):
            for source in {s for f in item.observed for s in item.contract["fields"][f]["sources"]}:
                for quieten in (Scene.silence, Scene.blank):
                    scene = Scene(item, random.Random(1))
                    for name in item.observed:
                        scene.cover(name)
                    quieten(scene, source)
                    for name in item.observed:
                        for plane in PLANES:
                            if scene.source(name, plane) == source:
                                assert not any(scene.tells(child, plane) for child in scene.descendants(name))


def test_the_document_of_the_families_names_each_with_its_symptom() -> None:
    told = (Path(__file__).parent.parent / "docs" / "optbench-families.md").read_text()
    rows = [line for line in told.splitlines() if line.startswith("| ") and "`" in line]
    assert rows == [f"| {f.domain} | `{f.name}` | {f.symptom} |" for f in FAMILIES]
