"""The fact-level oracle: one law per kind of change on a contract written by hand, and how changes combine."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from simulators.optbench import oracle
from simulators.optbench.base.wchw import generate_wchw
from simulators.optbench.base.wcmsa import generate_wcmsa
from simulators.optbench.base.wcns import generate_wcns
from simulators.optbench.candidates import view_of
from simulators.optbench.model import BaseItem, Change, Exposure, Facts, Outage, Verdict
from simulators.optbench.oracle import judge
from simulators.optbench.realisation import FAMILIES, Family, Scene
from xapp.engine import assure
from xapp.episode import parse_episode

LIMIT = 1000
CHILD_LIMIT = 800

CONTRACT: dict[str, Any] = {
    "contract_id": "hand/1",
    "fields": {
        "width": {
            "kind": "observed", "unit": "MHz", "min": 0, "max": 100, "tolerance": 1, "rel_tolerance": 0.01,
            "freshness_ms": LIMIT, "sources": ["radio", "plan"], "schemas": ["s/1"],
        },
        "users": {
            "kind": "observed", "min": 0, "max": 500, "rel_tolerance": 0.1, "freshness_ms": LIMIT,
            "sources": ["core", "nms"],
        },
        "class": {"kind": "observed", "type": "string", "freshness_ms": LIMIT, "sources": ["core", "radio"]},
        "child": {
            "kind": "observed", "unit": "dB", "min": -50, "max": 50, "tolerance": 1, "freshness_ms": CHILD_LIMIT,
            "sources": ["tool", "tool-2"],
        },
        "load": {
            "kind": "observed", "unit": "%", "freshness_ms": LIMIT, "sources": ["probe", "probe-2"], "critical": False,
        },
        "answer": {"kind": "planned", "unit": "MHz", "repairable": True, "expr": "width"},
    },
    "override_intent": True,
}  # fmt: skip
OBSERVED = [name for name, said in CONTRACT["fields"].items() if said["kind"] == "observed"]
SHARED = {frozenset(pair): "_or_".join(pair) for pair in combinations(OBSERVED, 2)}
for _name in OBSERVED:
    _aliases = [f"{_name}_alias", *(text for pair, text in SHARED.items() if _name in pair)]
    CONTRACT["fields"][_name]["aliases"] = _aliases
VALUES: dict[str, float | str] = {"width": 20.0, "users": 100, "class": "eMBB", "child": 7.0, "load": 40.0}
ITEM = BaseItem("WCNS", "hand", "generated", "?", {}, CONTRACT, VALUES, {"child": ("width",)}, {}, {})

Cell = tuple[str, str]
CELLS: tuple[Cell, ...] = tuple(
    (name, source) for name, said in CONTRACT["fields"].items() for source in said.get("sources", ())
)  # fmt: skip
PARENTS: dict[Cell, tuple[Cell, ...]] = {
    ("child", "tool"): (("width", "radio"),),
    ("child", "tool-2"): (("width", "plan"),),
}
FRESH = 100


def told(field: str, source: str, *changes: Change, age_ms: int = FRESH, memory: bool = False) -> Exposure:
    return Exposure(field, source, age_ms, () if memory else PARENTS.get((field, source), ()), changes, memory)


def evidence(*exposures: Exposure, without: tuple[Cell, ...] = (), out: tuple[str, ...] = ()) -> Facts:
    """Everything told by every source, soundly, but for the exposures given and the cells that are withheld."""
    instead = {(e.field, e.source) for e in exposures if not e.memory}
    rest = [told(*cell) for cell in CELLS if cell not in instead and cell not in without]
    return Facts((*rest, *exposures), tuple(Outage(source) for source in out))


def verdict(*exposures: Exposure, without: tuple[Cell, ...] = (), out: tuple[str, ...] = ()) -> Verdict:
    return judge(ITEM, evidence(*exposures, without=without, out=out))


def everywhere(field: str, *changes: Change) -> tuple[Exposure, ...]:
    return tuple(told(*cell, *changes) for cell in CELLS if cell[0] == field)


APPLY = Verdict("APPLY", "none", frozenset())


def blocks(predicate: str, *fields: str) -> Verdict:
    action = {
        "ambiguous_schema": "ESCALATE", "material_conflict": "ESCALATE", "independent_failures": "ESCALATE",
        "retryable_outage": "RETRY", "unknown_critical_schema": "HOLD", "stale_required_state": "HOLD",
    }[predicate]  # fmt: skip
    return Verdict(action, predicate, frozenset(fields))


FAULTS = {
    Change("foreign_name", text="bw_x"): "unknown_critical_schema",
    Change("shared_name", text="width_or_load", other="load"): "ambiguous_schema",
    Change("no_unit"): "ambiguous_schema",
    Change("foreign_unit", text="dBm"): "ambiguous_schema",
    Change("unheard_unit", text="furlong"): "unknown_critical_schema",
    Change("schema", text="s/9"): "unknown_critical_schema",
    Change("aged", amount=LIMIT + 1): "stale_required_state",
    Change("repeated", amount=LIMIT + 1): "stale_required_state",
    Change("differs", amount=81): "stale_required_state",
    Change("no_value"): "stale_required_state",
    Change("lost_parent"): "material_conflict",
}
HARMLESS = [
    Change("alias", text="width_alias"),
    Change("prefixed_unit", text="kHz"),
    Change("schema", text="s/1"),
    Change("aged", amount=CHILD_LIMIT),
    Change("repeated", amount=CHILD_LIMIT),
    Change("differs", amount=0.5),
    Change("contradicted", amount=-1),
    Change("overtaken", amount=40, age_ms=50),
    Change("overwritten", amount=1, age_ms=50),
    Change("overwritten", amount=40, age_ms=LIMIT),
]
named = pytest.mark.parametrize


def of_kind(change: Change) -> str:
    return f"{change.kind}-{change.amount:g}"


def test_evidence_that_nothing_was_done_to_supports_the_action() -> None:
    assert verdict() == APPLY


# One law per kind of change.


@named("change", HARMLESS, ids=of_kind)
def test_a_harmless_change_at_every_source_blocks_nothing(change: Change) -> None:
    assert verdict(*everywhere("width", change)) == APPLY


@named("change", FAULTS, ids=of_kind)
def test_a_fault_of_both_parents_blocks_the_field_and_what_is_computed_from_it(change: Change) -> None:
    handed_on = () if change.kind == "foreign_name" else ("child",)
    assert verdict(*everywhere("width", change)) == blocks(FAULTS[change], "width", *handed_on)


@named("change", FAULTS, ids=of_kind)
@named("source", ["radio", "plan"])
def test_a_sound_source_stands_in_for_a_faulty_one_in_the_field_and_in_its_child(change: Change, source: str) -> None:
    assert verdict(told("width", source, change)) == APPLY


def test_a_fault_comes_before_a_later_one_in_the_order_of_the_checks() -> None:
    stages = [
        (Change("aged", amount=LIMIT + 1), "stale_required_state"),
        (Change("lost_parent"), "material_conflict"),
        (Change("shared_name", other="load"), "ambiguous_schema"),
        (Change("no_value"), "stale_required_state"),
        (Change("no_unit"), "ambiguous_schema"),
        (Change("differs", amount=500), "stale_required_state"),
    ]
    childless = ("child", "tool"), ("child", "tool-2")
    for place, (_, predicate) in enumerate(stages):
        changes = [change for change, _ in stages[place:]]
        told_once = verdict(*everywhere("width", *changes), told("child", "tool", memory=True), without=childless)
        assert told_once == blocks(predicate, "width")


def test_a_lineage_that_is_not_whole_has_no_effective_age() -> None:
    orphaned = everywhere("width", Change("aged", amount=LIMIT), Change("lost_parent"))
    assert verdict(*orphaned, told("users", "core")).predicate == "material_conflict"
    heirs = [replace(e, changes=(Change("lost_parent"),)) for e in everywhere("child")]
    aged = everywhere("width", Change("aged", amount=LIMIT))
    assert verdict(*aged, *heirs) == blocks("material_conflict", "child")


def test_the_limit_of_age_counts_as_fresh() -> None:
    assert verdict(*everywhere("users", Change("aged", amount=LIMIT))) == APPLY
    assert verdict(*everywhere("users", Change("aged", amount=LIMIT + 1))).blocked == {"users"}


def test_a_field_of_unit_1_needs_none_and_one_that_lists_no_schema_takes_any() -> None:
    assert verdict(*everywhere("users", Change("no_unit"), Change("schema", text="s/9"))) == APPLY


def test_a_field_that_nobody_tells_holds() -> None:
    assert verdict(without=(("users", "core"), ("users", "nms"))) == blocks("stale_required_state", "users")


@named(
    ("change", "conflicting"),
    [
        (Change("differs", amount=10), False),
        (Change("differs", amount=11), False),
        (Change("differs", amount=12), True),
        (Change("differs", amount=-10), False),
        (Change("differs", amount=-11), True),
    ],
)
def test_a_relative_tolerance_is_of_the_larger_magnitude(change: Change, conflicting: bool) -> None:
    expected = blocks("material_conflict", "users") if conflicting else APPLY
    assert verdict(told("users", "nms", change)) == expected


def test_the_larger_of_two_tolerances_counts_and_a_disagreement_of_just_that_is_immaterial() -> None:
    assert verdict(told("width", "plan", Change("differs", amount=1 + 1e-10))) == APPLY
    assert verdict(told("width", "plan", Change("differs", amount=1 + 1e-6))).blocked == {"width"}


def test_texts_that_differ_at_all_conflict() -> None:
    assert verdict(told("class", "radio", Change("differs", text="URLLC"))) == blocks("material_conflict", "class")


@named("change", [c for c in FAULTS if c.kind not in {"differs", "foreign_name"}], ids=of_kind)
def test_a_dissenter_that_is_at_fault_is_no_conflict(change: Change) -> None:
    assert verdict(told("width", "plan", change, Change("differs", amount=30))) == APPLY


@named("kind", ["contradicted", "overwritten"])
@named("source", ["radio", "plan"])
def test_a_source_that_disputes_itself_blocks_whichever_source_supports(kind: Any, source: str) -> None:
    exposure = told("width", source, Change(kind, amount=2, age_ms=50))
    assert verdict(exposure) == blocks("material_conflict", "width")


def test_a_disputed_field_is_filed_under_the_ambiguity_of_another_source_and_under_no_outage_of_it() -> None:
    disputed = told("users", "nms", Change("contradicted", amount=50))
    unclear, silent = told("users", "core", Change("foreign_unit", text="m")), told("users", "core", Change("no_value"))
    assert verdict(disputed, unclear) == blocks("ambiguous_schema", "users")
    assert verdict(disputed, silent, out=("core",)) == blocks("material_conflict", "users")


def test_what_follows_from_a_disputed_field_is_not_itself_disputed() -> None:
    assert verdict(*everywhere("width", Change("contradicted", amount=2))).blocked == {"width"}


def test_a_value_is_not_contradicted_by_one_that_is_out_of_range() -> None:
    assert verdict(*everywhere("width", Change("contradicted", amount=90))) == APPLY


def test_what_is_contradicted_within_tolerance_is_what_other_sources_are_held_against() -> None:
    second = Change("contradicted", amount=0.8)
    for amount, agreed in [(-0.9, True), (1.0, True), (1.5, False)]:
        other = told("width", "plan", Change("differs", amount=amount))
        assert (verdict(told("width", "radio", second), other) == APPLY) == agreed


def test_an_older_event_is_no_dispute_where_its_newer_one_or_itself_is_at_fault() -> None:
    overwritten = Change("overwritten", amount=30, age_ms=50)
    assert verdict(told("width", "radio", overwritten, Change("no_unit"))) == APPLY
    assert verdict(told("width", "radio", Change("overwritten", amount=90, age_ms=50))) == APPLY


# Names.


def test_a_foreign_name_makes_unknown_schema_of_every_field_of_that_source_to_which_nothing_is_bound() -> None:
    foreign = Change("foreign_name", text="x")
    withheld = ("class", "core"), ("class", "radio")
    assert verdict(told("users", "core", foreign), without=withheld) == blocks("unknown_critical_schema", "class")
    assert verdict(*everywhere("users", foreign), without=withheld) == blocks(
        "unknown_critical_schema", "users", "class"
    )
    assert verdict(told("users", "nms", foreign), without=withheld) == blocks("stale_required_state", "class")


def test_a_foreign_name_at_one_source_is_nothing_beside_the_fault_of_another() -> None:
    foreign, old = told("users", "core", Change("foreign_name", text="x")), told("users", "nms", age_ms=LIMIT + 1)
    assert verdict(foreign, old) == blocks("stale_required_state", "users")


def test_a_shared_name_is_ambiguous_for_both_fields_at_a_source_that_both_list() -> None:
    shared = told("users", "core", Change("shared_name", other="class"))
    assert verdict(shared) == APPLY
    assert verdict(shared, without=(("users", "nms"),)) == blocks("ambiguous_schema", "users")
    assert verdict(shared, without=(("class", "radio"),)) == blocks("ambiguous_schema", "class")


def test_a_report_newer_than_one_under_a_shared_name_supersedes_it() -> None:
    shared = told("users", "core", Change("shared_name", other="class"), age_ms=FRESH + 1)
    assert verdict(shared, without=(("class", "radio"),)) == APPLY


def test_a_stranger_counts_only_where_no_source_of_the_field_is_heard_or_out() -> None:
    stranger = told("users", "nms", Change("shared_name", other="class"))
    withheld = ("class", "core"), ("class", "radio")
    assert verdict(stranger) == APPLY
    assert verdict(stranger, without=withheld) == blocks("material_conflict", "class")
    assert verdict(stranger, without=withheld[:1], out=("core",)) == APPLY
    assert verdict(stranger, without=withheld, out=("core",)) == blocks("retryable_outage", "class")


# Outages.


def test_an_outage_counts_only_for_a_field_that_nothing_supports() -> None:
    assert verdict(without=(("users", "core"),), out=("core",)) == APPLY
    assert verdict(out=("core", "nms")) == APPLY
    assert verdict(without=(("users", "core"), ("users", "nms")), out=("nms",)) == blocks("retryable_outage", "users")


@named("change", [c for c in FAULTS if c.kind in {"aged", "repeated", "no_value"}], ids=of_kind)
def test_what_a_source_in_outage_no_longer_measures_is_that_outage(change: Change) -> None:
    assert verdict(*everywhere("users", change), out=("core",)) == blocks("retryable_outage", "users")


@named("change", [Change("foreign_unit", text="dB"), Change("lost_parent")], ids=of_kind)
def test_what_only_a_person_can_settle_comes_before_an_outage(change: Change) -> None:
    assert verdict(*everywhere("users", change), out=("core", "nms")).action == "ESCALATE"


@named("change", [Change("unheard_unit"), Change("foreign_name"), Change("differs", amount=1e6)], ids=of_kind)
def test_an_outage_comes_before_what_time_alone_may_settle(change: Change) -> None:
    assert verdict(*everywhere("users", change), out=("nms",)) == blocks("retryable_outage", "users")


# Memory.


USERS = (("users", "core"), ("users", "nms"))


def test_memory_supports_a_field_that_nothing_else_does() -> None:
    assert verdict(told("users", "nms", memory=True), without=USERS) == APPLY
    assert verdict(told("users", "core", memory=True), without=USERS, out=("core", "nms")) == APPLY


@named("change", [*(c for c in FAULTS if c.kind != "schema"), Change("no_unit")], ids=of_kind)
def test_memory_passes_every_check_or_is_nothing(change: Change) -> None:
    withheld = (("width", "radio"), ("width", "plan"), ("child", "tool"), ("child", "tool-2"))
    expected = blocks("stale_required_state", "width", "child")
    assert verdict(told("width", "radio", change, memory=True), without=withheld) == expected


def test_memory_must_be_newer_than_every_live_report_of_the_field() -> None:
    unsound = [told("users", "core", Change("lost_parent")), told("users", "nms", Change("lost_parent"), age_ms=60)]
    assert verdict(*unsound, told("users", "core", age_ms=59, memory=True)) == APPLY
    assert verdict(*unsound, told("users", "core", age_ms=60, memory=True)).blocked == {"users"}


def test_memories_that_disagree_are_not_recalled() -> None:
    one, other = told("users", "core", memory=True), told("users", "nms", Change("differs", amount=50), memory=True)
    assert verdict(one, other, without=USERS) == blocks("stale_required_state", "users")
    agreeing = replace(other, changes=(Change("differs", amount=5),))
    assert verdict(one, agreeing, without=USERS) == APPLY


def test_memory_is_never_a_side_of_a_conflict_nor_settles_one() -> None:
    memory = told("users", "nms", Change("differs", amount=50), age_ms=1, memory=True)
    assert verdict(memory) == APPLY
    assert verdict(memory, told("users", "nms", Change("differs", amount=50))).predicate == "material_conflict"


# Inherited faults.


def test_a_child_is_as_old_as_its_oldest_ancestor_by_its_own_limit() -> None:
    aged = Change("aged", amount=CHILD_LIMIT + 1)
    assert verdict(*everywhere("width", aged)) == blocks("stale_required_state", "child")
    assert verdict(told("width", "radio", aged)) == APPLY


def test_a_parent_under_a_foreign_name_hands_on_bad_quality_and_age_and_nothing_else() -> None:
    foreign = Change("foreign_name", text="x")
    unnamed = [Change("no_unit"), Change("differs", amount=500), Change("schema", text="s/9")]
    assert verdict(*everywhere("width", foreign, *unnamed)).blocked == {"width"}
    assert verdict(*everywhere("width", foreign, Change("no_value"))).blocked == {"width", "child"}
    assert verdict(*everywhere("width", foreign, Change("aged", amount=CHILD_LIMIT + 1))).blocked == {"width", "child"}
    assert verdict(*everywhere("width", foreign, Change("lost_parent"))).blocked == {"width", "child"}


def test_a_fault_reaches_grandchildren() -> None:
    computed = (("users", "core"), ("child", "tool")), (("users", "nms"), ("child", "tool-2"))
    grandchildren = [replace(told(*cell), parents=(parent,)) for cell, parent in computed]
    assert verdict(*grandchildren) == APPLY
    assert verdict(*grandchildren, *everywhere("width", Change("no_value"))).blocked == {"width", "child", "users"}


def test_the_first_fault_met_is_inherited_parents_in_listed_order() -> None:
    stale, unknown = told("users", "core", Change("no_value")), told("class", "core", Change("unheard_unit"))
    for parents, predicate in [
        ((("users", "core"), ("class", "core")), "stale_required_state"),
        ((("class", "core"), ("users", "core")), "unknown_critical_schema"),
    ]:
        heir = replace(told("child", "tool"), parents=parents)
        assert verdict(stale, unknown, heir, without=(("child", "tool-2"),)) == blocks(predicate, "child")


# Fields that are not critical, and several blocked fields.


@named("change", FAULTS, ids=of_kind)
def test_nothing_wrong_with_a_field_that_is_not_critical_blocks(change: Change) -> None:
    if change.kind == "shared_name":
        change = replace(change, other="users")
    assert verdict(*everywhere("load", change)) == APPLY


@named("kind", ["differs", "contradicted", "overwritten"])
def test_no_dispute_over_a_field_that_is_not_critical_is_material(kind: Any) -> None:
    assert verdict(told("load", "probe", Change(kind, amount=30, age_ms=50))) == APPLY


@named(
    ("one", "other", "independent"),
    [
        (Change("aged", amount=2000), Change("unheard_unit"), True),
        (Change("aged", amount=2000), Change("no_value"), True),
        (Change("no_value"), Change("foreign_name"), True),
        (Change("aged", amount=2000), Change("repeated", amount=3000), False),
        (Change("unheard_unit"), Change("foreign_name"), False),
    ],
)
def test_two_fields_at_two_sources_fail_independently_where_their_classes_differ(
    one: Change, other: Change, independent: bool
) -> None:
    found = verdict(*everywhere("width", one), *everywhere("users", other))
    assert {"width", "users"} <= found.blocked
    assert (found.predicate == "independent_failures") == independent


def test_failures_at_one_source_are_one_failure() -> None:
    both = told("users", "core", Change("no_value")), told("class", "core", Change("unheard_unit"))
    alone = ("users", "nms"), ("class", "radio")
    assert verdict(*both, without=alone) == blocks("unknown_critical_schema", "users", "class")


def test_failures_of_one_lineage_are_one_failure() -> None:
    late = told("child", "tool", Change("aged", amount=CHILD_LIMIT + 1))
    alone = ("width", "plan"), ("child", "tool-2")
    assert verdict(told("width", "radio", Change("no_value")), late, without=alone) == blocks(
        "stale_required_state", "width", "child"
    )
    other = replace(late, parents=(("users", "core"),))
    assert verdict(told("width", "radio", Change("no_value")), other, without=alone).action == "ESCALATE"


def test_an_outage_and_the_child_that_it_made_stale_are_one_failure() -> None:
    silent = told("width", "radio", Change("aged", amount=2000))
    alone = ("width", "plan"), ("child", "tool-2")
    assert verdict(silent, without=alone, out=("radio",)) == blocks("retryable_outage", "width", "child")


def test_an_outage_beside_an_unrelated_stale_field_is_independent() -> None:
    withheld = ("width", "radio"), ("width", "plan"), ("child", "tool"), ("child", "tool-2")
    stale = everywhere("users", Change("aged", amount=2000))
    assert verdict(*stale, without=withheld, out=("radio",)).predicate == "independent_failures"


def test_outages_of_two_sources_are_of_one_class_and_retried() -> None:
    withheld = ("width", "radio"), ("width", "plan"), *USERS, ("child", "tool"), ("child", "tool-2")
    found = verdict(without=withheld, out=("radio", "core"))
    assert found == blocks("retryable_outage", "width", "users", "child")


def test_the_policy_is_ordered() -> None:
    conflict = told("users", "nms", Change("differs", amount=50))
    stale = everywhere("class", Change("aged", amount=2000))
    ambiguous = everywhere("width", Change("no_unit"))
    assert verdict(conflict, *stale).predicate == "material_conflict"
    assert verdict(conflict, *stale, *ambiguous).predicate == "ambiguous_schema"


# What the suite does not say.


@named(
    ("facts", "says"),
    [
        (Facts((told("users", "core", Change("garbled")),)), "garbled"),  # type: ignore[arg-type]
        (Facts((told("speed", "core"),)), "speed"),
        (Facts((told("answer", "core"),)), "answer"),
        (Facts((told("users", "radio"),)), "radio"),
        (Facts((told("child", "tool"),)), "parent"),
        (Facts((replace(told("users", "core"), parents=(("users", "core"),)),)), "ancestor"),
        (Facts((told("users", "core"), told("users", "core"))), "twice"),
        (Facts((told("users", "core", Change("aged", 5), Change("aged", 6)),)), "twice"),
        (Facts((told("users", "core", Change("repeated", 5), Change("contradicted", 6)),)), "again"),
        (Facts((told("users", "core", age_ms=-1),)), "after t"),
        (Facts((told("class", "core", Change("differs", amount=2)),)), "text"),
        (Facts((told("users", "core", Change("shared_name", text="n")),)), "shared"),
        (Facts((told("users", "core", Change("shared_name", other="answer")),)), "answer"),
        (Facts((), (Outage("core", retryable=False),)), "final"),
        (Facts((), (Outage("core", retries_left=0),)), "final"),
        (Facts((), (Outage("mars"),)), "mars"),
    ],
)
def test_facts_outside_the_vocabulary_are_refused_by_name(facts: Facts, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        judge(ITEM, facts)


def test_memory_is_no_parent() -> None:
    with pytest.raises(ValueError, match="parent"):
        judge(ITEM, Facts((told("width", "radio", memory=True), told("child", "tool"))))


# Laws over any facts.

def any_change(name: str, number: int) -> SearchStrategy[Change]:
    """Any change to the field `name` as its cell `number` tells it: the number keeps events of two cells apart."""
    old, fresh = LIMIT + 1 + number, CHILD_LIMIT - number
    changes = [
        Change("alias", text=f"{name}_alias"),
        Change("foreign_name", text="unheard-of"),
        *(
            Change("shared_name", text=SHARED[frozenset({name, other})], other=other)
            for other in OBSERVED
            if other != name
        ),
        Change("no_unit"),
        Change("foreign_unit", text="dBm"),
        Change("unheard_unit", text="furlong"),
        *(Change("schema", text=text) for text in ("s/1", "s/9")),
        *(Change("aged", amount=age) for age in (old, fresh)),
        *(Change("repeated", amount=age) for age in (old, fresh)),
        Change("no_value"),
        Change("lost_parent"),
    ]
    if name == "width":
        changes.append(Change("prefixed_unit", text="kHz"))
    if isinstance(VALUES[name], str):
        return st.sampled_from([*changes, Change("differs", text="URLLC"), Change("contradicted", text="URLLC")])
    numbers = st.builds(
        Change,
        st.sampled_from(["differs", "contradicted", "overtaken", "overwritten"]),
        amount=st.sampled_from([-30.0, -2.0, -1.0, 0.5, 1.0, 3.0, 200.0]),
        age_ms=st.sampled_from([20, 60, 900]),
    )
    return st.sampled_from(changes) | numbers


def told_once(changes: list[Change]) -> tuple[Change, ...]:
    """`changes`, an aspect once, and nothing that is sent again with a second value."""
    kept: dict[str, Change] = {}
    for change in changes:
        kept.setdefault(oracle._ASPECTS[change.kind], change)
    if "second report" in kept and "time" in kept and kept["time"].kind == "repeated":
        del kept["time"]
    return tuple(kept.values())


@st.composite
def any_facts(draw: st.DrawFn) -> Facts:
    exposures = []
    heard = {cell for cell in CELLS if draw(st.integers(0, 3))}
    for number, cell in enumerate(CELLS):
        ages = st.sampled_from([120 - number, 500 - number, CHILD_LIMIT - number, LIMIT - number, LIMIT + 1 + number])
        if cell in heard:
            changes = draw(st.lists(any_change(cell[0], number), max_size=2)) if draw(st.booleans()) else []
            parents = tuple(p for p in PARENTS.get(cell, ()) if p in heard)
            exposures.append(Exposure(*cell, draw(ages), parents, told_once(changes)))
        if draw(st.integers(0, 5)) == 5:
            exposures.append(told(*cell, age_ms=draw(ages), memory=True))
    out = draw(st.sets(st.sampled_from(sorted({source for _, source in CELLS})), max_size=3))
    return Facts(tuple(exposures), tuple(Outage(source) for source in sorted(out)))


@given(any_facts(), st.integers())
def test_the_order_in_which_facts_are_written_says_nothing(facts: Facts, seed: int) -> None:
    exposures, outages = list(facts.exposures), list(facts.outages)
    Random(seed).shuffle(exposures)
    Random(seed).shuffle(outages)
    assert judge(ITEM, Facts(tuple(exposures), tuple(outages))) == judge(ITEM, facts)


@given(any_facts())
def test_the_same_facts_get_the_same_verdict_and_it_applies_exactly_where_nothing_is_blocked(facts: Facts) -> None:
    found = judge(ITEM, facts)
    assert found == judge(ITEM, facts)
    assert (found.action == "APPLY") == (not found.blocked) == (found.predicate == "none")
    assert found == APPLY or found == blocks(found.predicate, *found.blocked)
    assert found.blocked <= {"width", "users", "class", "child"}
    assert not found.cites


@given(any_facts())
def test_an_outage_changes_no_field_that_is_supported_nor_unblocks_one(facts: Facts) -> None:
    assert judge(ITEM, replace(facts, outages=())).blocked == judge(ITEM, facts).blocked


@given(any_facts(), st.sampled_from(["alias", "prefixed_unit"]))
def test_a_known_alias_and_a_compatible_unit_change_no_verdict(facts: Facts, kind: Any) -> None:
    aspect = oracle._ASPECTS[kind]
    dressed = tuple(
        e
        if any(oracle._ASPECTS[c.kind] == aspect for c in e.changes)
        else replace(e, changes=(*e.changes, Change(kind, text="as it is also called")))
        for e in facts.exposures
    )
    assert judge(ITEM, replace(facts, exposures=dressed)) == judge(ITEM, facts)


@given(any_facts(), st.sampled_from(["width", "users", "class"]))
def test_a_sound_primary_that_agrees_with_the_rest_never_adds_a_blocked_field(facts: Facts, field: str) -> None:
    before = judge(ITEM, facts)
    source = CONTRACT["fields"][field]["sources"][0]
    if any((e.field, e.source) == (field, source) for e in facts.exposures if not e.memory):
        return
    others = [e for e in facts.exposures if e.field == field and not e.memory]
    if any(c.kind in {"differs", "contradicted"} for e in others for c in e.changes):
        return
    after = judge(ITEM, replace(facts, exposures=(*facts.exposures, told(field, source, age_ms=0))))
    assert after.blocked <= before.blocked


# Witnesses, and independence of them.


def by_the_engine(item: BaseItem, facts: Facts) -> tuple[str, set[str]]:
    """The engine's action on `facts` as they are rendered, with the reference plan proposed, and what it blocks."""
    fields, episode = item.contract["fields"], dict(view_of(item, facts)["episode"])
    plan = {name: {"value": value, "unit": fields[name].get("unit")} for name, value in item.plan.items()}
    episode["proposal"] = {
        "proposal_id": "p", "proposer": "witness", "created_at_ms": episode["decided_at_ms"], "control_key": "k",
        "plan": plan,
    }  # fmt: skip
    decision = assure(parse_episode(orjson.dumps(episode), {}))
    observed = {name for name, said in fields.items() if said["kind"] == "observed"}
    return decision.action, {v.field for v in decision.violations if v.blocking and v.field in observed}


@given(any_facts())
@settings(max_examples=150, derandomize=True)
def test_the_engine_blocks_the_same_fields_and_decides_alike_on_any_facts(facts: Facts) -> None:
    found = judge(ITEM, facts)
    assert (found.action, found.blocked) == by_the_engine(ITEM, facts)


@named("family", FAMILIES, ids=lambda family: family.name)
def test_the_engine_decides_alike_on_candidates(family: Family) -> None:
    rng = Random(family.name)
    for item in (draw(rng, number) for draw in (generate_wchw, generate_wcns, generate_wcmsa) for number in range(3)):
        facts = family.realise(Scene(item, rng))
        if facts is not None:
            found = judge(item, facts)
            assert (found.action, found.blocked) == by_the_engine(item, facts)


def test_the_oracle_imports_the_nouns_and_the_standard_library_alone() -> None:
    tree = ast.parse(Path(oracle.__file__).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    ours = {name for name in imported if name.partition(".")[0] in {"xapp", "simulators", "streams"}}
    assert ours == {"simulators.optbench.model"}
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
