"""Scoring: records held against the ledger, what they overwrote, and what was preserved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optbench_scoring_cases import (
    ANYTHING,
    BLOCKED,
    CALCULATION,
    CRITICAL,
    OLDER,
    PLAN,
    T,
    bundle_of,
    case_of,
    claim,
    observation,
    record_of,
    view_of,
)

from simulators.optbench.agents import RawProposal
from simulators.optbench.model import (
    Change,
    Exposure,
    Facts,
    Outage,
)
from simulators.optbench.scoring.outcome import judge
from simulators.optbench.scoring.preservation import clean_fields, preserved
from simulators.optbench.scoring.records import faithful, state_right, unsafe_overwrites


def test_the_record_of_what_the_ledger_says_is_faithful() -> None:
    assert faithful(record_of(), view_of()) == []
    assert faithful(record_of(load=claim(observation("load"))), view_of()) == []
    assert faithful({**record_of(), "repairs": [{"support": ["x-primary"]}]}, view_of()) == []
    assert faithful({**record_of(), "blocked": ["x-primary"]}, view_of()) == ["blocked: x-primary supports x"]


def test_names_and_units_as_exposed_support_what_they_mean() -> None:
    told = observation("capacity", name="capacity-total", value=90_000, unit="kHz")
    as_meant = {**claim(told), "value": 90, "unit": "MHz"}
    assert faithful(record_of(capacity=as_meant), view_of(told)) == []
    assert faithful(record_of(capacity=claim(told)), view_of(told)) == []


CAPACITY = observation("capacity")


@pytest.mark.parametrize(("told", "change"), [
    ({}, {"observation": "o-99"}),
    ({}, {"observation": None}),
    ({}, {"observation": ["o-1"]}),
    ({}, {"observation": "x-primary", "value": 12.5, "unit": "m"}),
    ({}, {"value": 91}),
    ({}, {"value": None}),
    ({}, {"unit": "kHz"}),
    ({}, {"unit": None}),
    ({}, {"state": "fine"}),
    ({}, {"state": []}),
    ({"name": "shared"}, {}),
    ({"name": "capacity_v2"}, {}),
    ({"source": "stranger"}, {}),
    ({"ingest_time_ms": T + 1}, {}),
    ({"unit": None}, {"unit": None}),
    ({"unit": "dB"}, {"unit": "dB"}),
    ({"subject": "cell:1"}, {}),
])  # fmt: skip
def test_a_claim_that_the_ledger_does_not_bear_out_is_named(told: dict[str, Any], change: dict[str, Any]) -> None:
    held = {**CAPACITY, **told}
    failing = faithful(record_of(capacity={**claim(CAPACITY), **change}), view_of(held))
    assert failing
    assert all(fault.startswith("capacity: ") for fault in failing)


def test_what_is_not_claimed_of_a_cited_observation_cannot_disagree() -> None:
    cited = {"state": "supported", "observation": CAPACITY["id"]}
    assert faithful(record_of(capacity=cited), view_of()) == []
    assert faithful(record_of(capacity={**cited, "value": None, "unit": None}), view_of()) == []
    assert faithful(record_of(capacity={**cited, "observation": "o-99"}), view_of())
    assert faithful(record_of(capacity=cited), view_of({**CAPACITY, "source": "stranger"}))
    assert faithful(record_of(capacity=cited), view_of({**CAPACITY, "unit": None})), "that supports nothing"
    assert faithful(record_of(capacity=cited), view_of({**CAPACITY, "value": None}))
    bare = {name: {"state": "supported", "observation": f"{name}-primary"} for name in CRITICAL}
    assert judge(case_of(), bundle_of(record={"fields": bare})).ops == 1


def test_a_blocked_field_may_cite_what_blocks_it_but_only_what_is_there() -> None:
    told = observation("users", name="shared", value=8)
    blocked = {**claim(told), "state": "blocked"}
    assert faithful(record_of(users=BLOCKED), view_of(told)) == []
    assert faithful(record_of(users=blocked), view_of(told)) == []
    assert faithful(record_of(users={**blocked, "value": None}), view_of(told)) == []
    assert faithful(record_of(users={**blocked, "value": 9}), view_of(told))
    assert faithful(record_of(users={**blocked, "observation": "o-99"}), view_of(told))
    assert faithful(record_of(users={**BLOCKED, "value": 8}), view_of(told)), "a value out of nowhere"


@pytest.mark.parametrize("record", [
    None, [], {}, {"fields": []}, {"fields": {}}, {**record_of(), "blocked": ["o-99"]}, {**record_of(), "blocked": "x"},
    {**record_of(), "blocked": [[]]}, {**record_of(), "repairs": 7},
    {**record_of(), "repairs": [{"support": ["o-99"]}]},
    record_of(bandwidth=BLOCKED), record_of(users=7),
    {"fields": {name: c for name, c in record_of()["fields"].items() if name != "cqi"}},
])  # fmt: skip
def test_a_record_that_is_none_or_claims_too_little_or_too_much_is_not_faithful(record: Any) -> None:
    assert faithful(record, view_of())


@given(st.dictionaries(st.sampled_from(["fields", "blocked", "repairs"]), ANYTHING), ANYTHING)
@settings(max_examples=200)
def test_no_record_makes_the_evaluator_raise(record: Any, inner: Any) -> None:
    for one in (record, {"fields": {"users": inner}}, {"fields": {"users": {"state": inner, "observation": inner}}}):
        assert judge(case_of(), bundle_of(record=one)).ops <= 1


def test_the_state_is_right_where_every_critical_field_is_what_the_judges_said() -> None:
    assert state_right(record_of(), case_of())
    assert not state_right(record_of(), case_of("HOLD", ["users"]))
    assert state_right(record_of(users=BLOCKED), case_of("HOLD", ["users"]))
    assert not state_right(record_of(users=BLOCKED, x=BLOCKED), case_of("HOLD", ["users"])), "one too many"
    assert not state_right({"fields": {"users": BLOCKED}}, case_of("HOLD", ["users"])), "the others are not mentioned"
    assert not state_right(None, case_of())
    assert state_right(record_of(load=BLOCKED), case_of()), "not critical"


NEWER = observation("users")
SECOND = observation("users", "secondary", age_ms=50)


def overwrites(cited: Mapping[str, Any], *others: Mapping[str, Any]) -> int:
    return unsafe_overwrites(record_of(users=claim(cited)), view_of(cited, *others))


def test_an_older_report_in_place_of_the_newer_one_of_its_source_is_an_unsafe_overwrite() -> None:
    assert overwrites(OLDER, NEWER) == 1
    assert overwrites(NEWER, OLDER) == 0
    assert overwrites({**OLDER, "ingest_time_ms": T, "version": 9}, {**NEWER, "version": 3}) == 1, "late, not new"
    assert overwrites({**OLDER, "source": "secondary"}, NEWER) == 1, "a secondary in place of the primary"
    assert unsafe_overwrites(record_of(users={**BLOCKED, "observation": "older"}), view_of(OLDER)) == 0


@given(st.floats(0, 2), st.integers(101, 2000))
def test_an_older_value_that_agrees_and_is_current_does_no_harm(away: float, age_ms: int) -> None:
    harmless = away <= 0.5 and age_ms <= 1000
    assert overwrites({**OLDER, "value": 8 + away, "event_time_ms": T - age_ms}, NEWER) == (not harmless)


def test_preferring_the_primary_to_a_newer_secondary_overwrites_nothing() -> None:
    assert overwrites(NEWER, SECOND) == 0
    assert overwrites(SECOND, NEWER) == 0, "nor does a secondary that is the newer one"


def test_what_its_own_source_has_taken_back_is_not_overwritten() -> None:
    cited = observation("users", "secondary", age_ms=600, value=5)
    assert overwrites(cited, {**NEWER, "event_time_ms": T - 300}) == 1
    taken_back = {**NEWER, "id": "newest", "value": None, "event_time_ms": T - 50}
    assert overwrites(cited, {**NEWER, "event_time_ms": T - 300}, taken_back) == 0
    assert overwrites(cited, NEWER, {**NEWER, "id": "twin", "value": 9}) == 0, "nor what it contradicts at once"
    child = {**NEWER, "parents": ["x-primary"]}
    stale = {**cited, "value": 8, "parents": ["x-old"]}
    assert overwrites(stale, NEWER, observation("x", age_ms=1001, id="x-old")) == 1, "stale by what it came from"
    assert overwrites(cited, child) == 1
    assert overwrites(cited, child, observation("x", id="twin")) == 0, "nor what is computed from such a value"


def test_memory_in_place_of_a_live_value_that_would_do_is_an_unsafe_overwrite() -> None:
    remembered = observation("users", "secondary", age_ms=10, origin="memory", id="memory")
    assert overwrites(remembered, NEWER) == 1
    assert overwrites(remembered, {**NEWER, "value": None}) == 0
    heir = observation("users", "secondary", age_ms=10, id="heir", parents=["memory"])
    assert overwrites(heir, NEWER, remembered) == 1, "what is computed from memory is memory"


@pytest.mark.parametrize("fault", [
    {"value": None}, {"quality": "suspect"}, {"value": "eight"}, {"value": 5000}, {"unit": "dB"}, {"name": "shared"},
    {"source": "stranger"}, {"event_time_ms": T + 101, "ingest_time_ms": T}, {"parents": ["o-99"]},
    {"parents": ["x-old"]}, {"parents": ["users-primary"]}, {"ingest_time_ms": T + 1},
])  # fmt: skip
def test_what_was_no_better_is_not_overwritten(fault: dict[str, Any]) -> None:
    stale_parent = observation("x", "secondary", age_ms=1001, id="x-old")
    cited = observation("users", "secondary", age_ms=600, value=5)
    assert overwrites(cited, NEWER, stale_parent) == 1
    assert overwrites(cited, {**NEWER, **fault}, stale_parent) == 0


def test_a_field_is_clean_where_nothing_that_it_follows_from_was_touched() -> None:
    def clean(*exposures: Exposure, outages: tuple[Outage, ...] = (), blocked: Sequence[str] = ()) -> frozenset[str]:
        return clean_fields(case_of(facts=Facts(exposures, outages), blocked=blocked))

    both = {"slice_type", "bandwidth"}
    assert clean(Exposure("users", "primary", 10)) == both
    assert clean(Exposure("users", "secondary", 10, changes=(Change("aged", 9),))) == {"slice_type"}
    assert clean(Exposure("service", "primary", 10, changes=(Change("no_value"),))) == set(), "through slice_type"
    assert clean(Exposure("x", "primary", 10, changes=(Change("no_value"),))) == both, "cqi is not planned on"
    assert clean(outages=(Outage("secondary"),)) == set()
    assert clean(outages=(Outage("elsewhere"),)) == both
    assert clean(blocked=["capacity"]) == {"slice_type"}, "withheld"


def test_a_field_is_touched_through_the_lineage_of_its_inputs() -> None:
    facts = Facts((Exposure("rate", "primary", 10, changes=(Change("aged", 2000),)),))
    assert clean_fields(case_of(facts=facts, item=CALCULATION)) == set()
    assert clean_fields(case_of(facts=Facts(()), item=CALCULATION)) == {"answer"}


def test_what_was_right_and_clean_must_come_out_as_it_went_in() -> None:
    case = case_of()
    assert preserved(case, bundle_of()) == (2, 2)
    assert preserved(case, bundle_of("HOLD", plan={**PLAN, "bandwidth": {"value": 10_000, "unit": "kHz"}})) == (2, 2)
    assert preserved(case, bundle_of(plan={**PLAN, "bandwidth": {"value": 10.05, "unit": "MHz"}})) == (1, 2)
    assert preserved(case, bundle_of(None, plan={})) == (0, 2)
    assert preserved(case, bundle_of(proposed=None)) == (0, 0)
    slipped = RawProposal("APPLY", None, {**PLAN, "bandwidth": {"value": 11.0, "unit": "MHz"}})
    assert preserved(case, bundle_of(proposed=slipped)) == (1, 1), "what was wrong may be changed"
