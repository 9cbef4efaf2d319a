"""The verdict of the support gate: what abstains, what the deficit is, and when it could pass at the earliest."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_rig import (
    BINDINGS,
    CAPACITY,
    CONTRACT,
    FULL,
    GATED,
    HERE,
    NOW,
    PARTITION,
    RESOLVED,
    SINR,
    SLICE,
    TERMED,
    Arrival,
    T,
    built,
    capacity,
    carried,
    contract,
    counted,
    map_of,
    measured,
    recorded,
    report,
    sealed,
    sinr,
    steady,
    terms,
    verdict,
)

from xapp.model import Measurement
from xapp.support.book import Profile
from xapp.support.carried import Asked, DriftClaim, MapClaim, Short, Support, read_support, support_document
from xapp.support.component import Component
from xapp.support.gate import SupportGate, judge, least_of
from xapp.support.reference_map import DriftLimit
from xapp.support.rule import SEVERITY

ENOUGH = counted(steady(range(NOW - 6, NOW)))
SOUND = carried(ENOUGH, FULL)
QUARTER_END = T + 4 * 3_600_000  # 12:00


def judged(support: Support, t_ms: int = T) -> Any:
    return judge(support, GATED, RESOLVED, t_ms)


def asked(support: Support, pair: tuple[str, str | None]) -> Asked:
    return next(a for a in support.asked if (a.field, a.subject) == pair)


def with_asked(pair: tuple[str, str | None], **changes: Any) -> Support:
    items = (replace(a, **changes) if (a.field, a.subject) == pair else a for a in SOUND.asked)
    return replace(SOUND, asked=tuple(items))


def test_enough_visits_in_the_reference_and_now_are_supported() -> None:
    found = judged(SOUND)
    assert (found.state, found.short, found.earliest_ms) == ("SUPPORTED", (), None)
    assert found.permits
    assert found.map == FULL.claim
    assert verdict(ENOUGH, FULL) == found


# The reference cannot be used


def mapped(**changes: Any) -> Support:
    assert SOUND.map is not None
    return replace(SOUND, map=replace(SOUND.map, **changes))


UNUSABLE: dict[str, tuple[Support, str]] = {
    "there is none": (replace(SOUND, map=None), "no reference map"),
    "it expired": (mapped(built_at_ms=T - 86_400_001, expires_at_ms=T - 1), "expired at"),
    "it says that it expires later than the terms allow": (mapped(expires_at_ms=T + 86_400_000), "later than its term"),
    "it was built after the decision": (mapped(built_at_ms=T + 1), "after the decision"),
    "it is of another contract": (mapped(contract_digest="sha256:x"), "other content of contract 'gated/1'"),
    "it is of other terms": (mapped(terms_digest="sha256:x"), "other terms"),
    "the terms are of another contract": (replace(SOUND, terms=terms(contract_id="gated/2")), "'gated/2'"),
    "the network has drifted": (replace(SOUND, drift=DriftClaim(3, 9.0, 2.0)), "has drifted"),
    "a component was not asked": (replace(SOUND, asked=SOUND.asked[:1]), "capacity of cell:1/slice:embb was not asked"),
    "nothing was asked": (replace(SOUND, asked=()), "was not asked"),
    "something else was asked": (
        replace(SOUND, asked=(*SOUND.asked, replace(SOUND.asked[0], field="note"))),
        "the action does not rest on it",
    ),
    "one was asked twice": (replace(SOUND, asked=(*SOUND.asked, SOUND.asked[0])), "asked twice"),
    "the window is of another instant": (replace(SOUND, first=SOUND.first - 1), "the window begins at"),
    "the place is not that of the subject": (with_asked(SINR, component=HERE._replace(place="cell:2")), "at 'cell:2'"),
    "the quarter is not that of the instant": (with_asked(SINR, component=HERE._replace(quarter=2)), "of quarter 2"),
    "its load is none": (with_asked(SINR, component=HERE._replace(load="middle")), "which the terms do not know"),
    "its CQI is none": (with_asked(SINR, component=HERE._replace(cqi="")), "which the terms do not know"),
    "the window is too short": (with_asked(SINR, current=(9,) * 4), "visits of 4 partitions"),
    "the window is too long": (with_asked(SINR, current=(9,) * 6), "visits of 6 partitions"),
    "the reference is too short": (with_asked(SINR, reference=(9,) * 4), "visits of 4 partitions"),
}


@pytest.mark.parametrize("what", sorted(UNUSABLE))
def test_the_reference_abstains_where(what: str) -> None:
    support, because = UNUSABLE[what]
    found = judged(support)
    assert found.state == "REFERENCE_ABSTAIN"
    assert because in found.because
    assert not found.permits
    assert found.earliest_ms is None


def test_a_map_counts_from_the_instant_it_was_built_to_the_one_it_expires_both_included() -> None:
    for built_at, state in ((T, "SUPPORTED"), (T + 1, "REFERENCE_ABSTAIN")):
        assert judged(mapped(built_at_ms=built_at, expires_at_ms=T + 1)).state == state
    for expires, state in ((T, "SUPPORTED"), (T - 1, "REFERENCE_ABSTAIN")):
        assert judged(mapped(built_at_ms=T - 5, expires_at_ms=expires)).state == state
    allowed = TERMED.expires_after_ms
    assert judged(mapped(built_at_ms=T, expires_at_ms=T + allowed)).state == "SUPPORTED"
    assert judged(mapped(built_at_ms=T, expires_at_ms=T + allowed + 1)).state == "REFERENCE_ABSTAIN"


def test_fewer_drifted_partitions_than_the_terms_allow_are_an_alarm_and_no_veto() -> None:
    assert judged(replace(SOUND, drift=DriftClaim(2, 9.0, 2.0))).state == "SUPPORTED"


def test_an_axis_that_the_terms_do_not_have_can_only_be_any() -> None:
    bare = terms(axes={})
    support = replace(SOUND, terms=bare, map=replace(FULL.claim, terms_digest=bare.digest))
    assert "does" not in judged(support).because
    assert judged(support).state == "REFERENCE_ABSTAIN"


def test_whatever_goes_wrong_inside_the_gate_abstains() -> None:
    broken = replace(SOUND, asked=(replace(SOUND.asked[0], current=None), SOUND.asked[1]))  # type: ignore[arg-type]
    found = judged(broken)
    assert (found.state, found.permits) == ("REFERENCE_ABSTAIN", False)
    assert "error inside the support gate" in found.because


# Too few visits

RUNTIME = with_asked(SINR, current=(9, 1, 0, 9, 9))


def test_too_few_joint_partitions_abstain_with_the_deficit() -> None:
    found = judged(RUNTIME)
    assert found.state == "RUNTIME_ABSTAIN"
    # three of five are enough by now, four are needed: the cheaper one lacks a single visit
    assert found.short == (Short("sinr", "cell:1/ue:7", HERE, 1, 1),)
    assert "sinr of cell:1/ue:7 (cell:1, quarter 1, load low, cqi high) lacks 1 visit in 1 partition" in found.because
    assert "It could pass at 2027-01-15 08:00:20 UTC at the earliest." in found.because


def test_a_component_that_the_map_does_not_have_abstains_for_the_reference_and_no_waiting_helps() -> None:
    found = judged(with_asked(CAPACITY, reference=None, current=(0,) * 5))
    assert (found.state, found.earliest_ms) == ("REFERENCE_ABSTAIN", None)
    assert found.short == (Short("capacity", "cell:1/slice:embb", SLICE, 4, 8),)
    assert "No waiting helps. A refresh of the reference map is needed." in found.because


def test_reference_and_current_count_in_the_same_partition() -> None:
    crossed = with_asked(SINR, reference=(0, 9, 9, 9, 9), current=(9, 0, 9, 9, 9))
    assert judged(crossed).state == "RUNTIME_ABSTAIN"
    assert judged(with_asked(SINR, reference=(0, 9, 9, 9, 9), current=(0, 9, 9, 9, 9))).state == "SUPPORTED"


COUNTS = st.lists(st.integers(0, 4), min_size=5, max_size=5).map(tuple)
REFERENCES = st.one_of(st.none(), COUNTS, st.just((2,) * 5), st.just((2, 2, 0, 2, 2)))


def drawn(sinr: Any, capacity: Any) -> Support:
    items = tuple(
        replace(a, reference=reference, current=current)
        for a, (reference, current) in zip(SOUND.asked, (sinr, capacity), strict=True)
    )
    return replace(SOUND, asked=items)


@given(st.tuples(REFERENCES, COUNTS), st.tuples(REFERENCES, COUNTS))
@settings(max_examples=300, deadline=None)
def test_the_worst_component_wins_the_derived_fields_included(sinr: Any, capacity: Any) -> None:
    support = drawn(sinr, capacity)
    rule = TERMED.rule
    states = [rule.judge(*one) for one in (sinr, capacity)]
    index = least_of("index", support.asked, rule)  # computed from both
    states.append(rule.judge(index.reference, index.current))
    assert judged(support).state == max(states, key=SEVERITY.index)


@given(COUNTS, COUNTS, st.integers(0, 4), st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_more_current_visits_never_turn_supported_into_abstain(
    sinr: tuple[int, ...], capacity: tuple[int, ...], at: int, more: int
) -> None:
    before = drawn(((2,) * 5, sinr), ((2,) * 5, capacity))
    raised = tuple(count + more * (i == at) for i, count in enumerate(sinr))
    after = drawn(((2,) * 5, raised), ((2,) * 5, capacity))
    assert SEVERITY.index(judged(after).state) <= SEVERITY.index(judged(before).state)
    missing = [sum(s.visits for s in judged(one).short) for one in (before, after)]
    assert missing[1] <= missing[0] or judged(before).short[0].field != judged(after).short[0].field


def test_a_derived_field_has_the_least_of_its_parents_partition_by_partition() -> None:
    a = replace(asked(SOUND, SINR), reference=(9, 1, 9, 9, 9), current=(9, 9, 3, 9, 0))
    b = replace(asked(SOUND, CAPACITY), reference=(7, 7, 7, 7, 2), current=(0, 9, 5, 9, 9))
    least = least_of("index", [a, b], TERMED.rule)
    assert (least.reference, least.current) == ((7, 1, 7, 7, 2), (0, 9, 3, 9, 0))
    assert least_of("index", [a, replace(b, reference=None)], TERMED.rule).reference is None


def test_parents_that_pass_alone_but_not_together_leave_the_derived_field_short() -> None:
    support = drawn(((9,) * 5, (0, 9, 9, 9, 9)), ((9,) * 5, (9, 9, 9, 9, 0)))
    found = judged(support)
    assert found.state == "RUNTIME_ABSTAIN"
    assert [s.field for s in found.short] == ["index"]
    assert found.earliest_ms == T + PARTITION


# The earliest time


def visited(first: int, sinr_visits: tuple[int, ...], slice_visits: tuple[int, ...]) -> list[Arrival]:
    """So many visits of each field in each of the partitions from `first` on."""
    found = []
    for i, (users, slices) in enumerate(zip(sinr_visits, slice_visits, strict=True)):
        begin = (first + i) * PARTITION
        axes = (Measurement("RRU.PrbUsedDl", 30, "%", "cell:1"), Measurement("cqi", 12, None, "cell:1/ue:7"))
        found.append((report(begin, *axes, name=f"axes{begin}"), begin))
        for k in range(max(users, slices)):
            said = ([sinr()] if k < users else []) + ([capacity()] if k < slices else [])
            found.append((report(begin + 1 + k, *said), begin + 20 + k))
    return found


MAYBE_SHORT = st.lists(st.integers(0, 3), min_size=5, max_size=5).map(tuple)
ADMITTED = st.sampled_from([(2,) * 5, (0, 2, 2, 2, 2), (2, 2, 1, 2, 2), (5, 5, 5, 5, 0)])


@given(MAYBE_SHORT, MAYBE_SHORT, ADMITTED, ADMITTED)
@settings(max_examples=120, deadline=None)
def test_at_the_earliest_time_it_passes_if_every_partition_was_full_and_one_partition_before_it_does_not(
    users: tuple[int, ...], slices: tuple[int, ...], reference: tuple[int, ...], of_slice: tuple[int, ...]
) -> None:
    reference_map = map_of({("sinr", HERE): reference, ("capacity", SLICE): of_slice})
    now = verdict(counted(visited(NOW - 5, users, slices)), reference_map, T)
    future = visited(NOW, (2,) * 6, (2,) * 6)
    later = {}
    for ended in range(1, 6):
        at = T + ended * PARTITION
        later[at] = verdict(counted([*visited(NOW - 5, users, slices), *upto(future, at)]), reference_map, at).state
    passing = [at for at, state in sorted(later.items()) if state == "SUPPORTED"]
    if now.state == "RUNTIME_ABSTAIN":
        assert now.earliest_ms == passing[0]
        assert later.get(passing[0] - PARTITION, now.state) != "SUPPORTED"
    else:
        assert now.earliest_ms is None
        assert (now.state == "SUPPORTED") == bool(passing)


def upto(arrivals: list[Arrival], t_ms: int) -> list[Arrival]:
    return [one for one in arrivals if one[1] <= t_ms]


def at_instant(t_ms: int, current: tuple[int, ...], **of_map: Any) -> Any:
    quarter_map = replace(SOUND.map or FULL.claim, **of_map)
    support = replace(
        SOUND,
        first=TERMED.first_of(t_ms),
        map=quarter_map,
        asked=tuple(replace(a, current=current) for a in SOUND.asked),
    )
    return judged(support, t_ms)


def test_no_waiting_is_known_to_help_beyond_the_quarter_of_the_day() -> None:
    """In the next quarter it is in another component."""
    for before, earliest in ((3, QUARTER_END - PARTITION), (2, None)):
        found = at_instant(QUARTER_END - before * PARTITION, (9, 0, 0, 9, 9))
        assert (found.state, found.earliest_ms) == ("RUNTIME_ABSTAIN", earliest)
    assert "before the quarter of the day or the map is over" in found.because


def test_no_waiting_is_known_to_help_beyond_the_expiry_of_the_map() -> None:
    for expires, earliest in ((T + 2 * PARTITION, T + 2 * PARTITION), (T + 2 * PARTITION - 1, None)):
        found = at_instant(T, (9, 0, 0, 9, 9), expires_at_ms=expires)
        assert (found.state, found.earliest_ms) == ("RUNTIME_ABSTAIN", earliest)


# Drift, live


def test_a_steady_network_has_not_drifted_and_a_changed_one_has() -> None:
    reference = built(recorded(60))
    assert isinstance(reference.drift[1], DriftLimit)
    same = carried(
        counted(a for i in range(NOW - 6, NOW) for a in steady([i], 3 + i % 3, load=28.0 + i % 5)), reference
    )
    assert same.drift is not None
    assert same.drift.exceeded < TERMED.drift_partitions
    changed = carried(counted(steady(range(NOW - 6, NOW), visits=3, load=95.0)), reference)
    assert changed.drift is not None
    assert (changed.drift.exceeded, changed.drift.limit) == (5, same.drift.limit)
    assert changed.drift.score is not None
    assert changed.drift.score > changed.drift.limit
    found = judged(changed)
    assert (found.state, "has drifted" in found.because) == ("REFERENCE_ABSTAIN", True)


@pytest.mark.parametrize(
    "drift",
    [
        DriftClaim(0, 99.0, 3.0),  # above the limit, and no partition is
        DriftClaim(2, None, 3.0),  # two are, and none was scored
        DriftClaim(2, 3.0, 3.0),
        DriftClaim(6, 4.0, 3.0),  # six of five
    ],
)
def test_what_is_said_of_drift_must_agree_with_itself(drift: DriftClaim) -> None:
    found = judged(replace(SOUND, drift=drift))
    assert (found.state, found.because) == (
        "REFERENCE_ABSTAIN",
        "what is said of drift from reference map 'north' version 1 contradicts itself",
    )


def test_a_window_that_is_not_full_yet_lacks_visits_and_has_not_drifted() -> None:
    """After the very first start: it could pass when the window is full, and no new map is needed for that."""
    reference = built(recorded(60))
    begun = [a for i in (NOW - 2, NOW - 1) for a in steady([i], 3 + i % 3, load=28.0 + i % 5)]
    found = verdict(counted(begun), reference)
    assert (found.state, found.earliest_ms) == ("RUNTIME_ABSTAIN", T + 2 * PARTITION)
    assert carried(counted([]), reference).drift == DriftClaim(0, None, reference.drift[1].limit)  # type: ignore[union-attr]


def test_a_score_beyond_all_measure_is_a_number_in_the_record() -> None:
    reference = built(recorded(60))
    limit = reference.drift[1]
    assert isinstance(limit, DriftLimit)
    narrow = replace(limit, standard=replace(limit.standard, deviation=(5e-324,) * len(limit.standard.deviation)))
    support = carried(ENOUGH, sealed(reference, drift={**reference.drift, 1: narrow}))
    assert read_support(orjson.loads(orjson.dumps(support_document(support)))).drift == support.drift
    assert judged(support).because.startswith("the network has drifted")


def test_scores_are_kept_of_the_window_only() -> None:
    gate, reference, book = SupportGate(TERMED), built(recorded(60)), counted([])
    for index in range(NOW, NOW + 40):
        for one, ingest_ms in steady([index]):
            book.observe(one, ingest_ms)
        gate.drift(reference, book.window((), (index + 1) * PARTITION), (index + 1) * PARTITION)
    del book
    gc.collect()
    assert 0 < sum(type(o) is Profile and o.index >= NOW for o in gc.get_objects()) <= 5


def test_a_map_without_a_limit_watches_no_drift() -> None:
    assert carried(ENOUGH, built(recorded(6))).drift is None


def test_partitions_of_another_quarter_are_not_held_against_the_limit_of_this_one() -> None:
    begin = T - 2 * 3_600_000  # 06:00
    reference = built(recorded(60))
    book = counted(steady(range(begin // PARTITION - 6, begin // PARTITION), load=95.0))
    support = carried(book, reference, begin)
    assert support.drift == DriftClaim(0, None, reference.drift[1].limit)  # type: ignore[union-attr]


# A live book and a built map, end to end


def test_a_recording_supports_the_same_network_an_hour_later() -> None:
    reference = built(recorded(60))
    live = counted(a for i in range(NOW - 6, NOW) for a in steady([i], 3 + i % 3, load=28.0 + i % 5))
    assert verdict(live, reference).state == "SUPPORTED"
    assert verdict(counted([]), reference).state == "REFERENCE_ABSTAIN"  # where it is is not known: another component
    elsewhere = counted(steady(range(NOW - 6, NOW), cqi=1))
    assert verdict(elsewhere, reference).state == "REFERENCE_ABSTAIN"


def test_a_map_of_another_length_of_window_is_no_reference() -> None:
    short = sealed(FULL, partitions=3, visits={key: counts[:3] for key, counts in FULL.visits.items()})
    assert verdict(ENOUGH, short).state == "REFERENCE_ABSTAIN"


@pytest.mark.parametrize("change", [lambda d: d | {"max_clock_skew_ms": 51}, lambda d: d | {"override_intent": True}])
def test_a_contract_that_was_edited_needs_a_new_map(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    edited = contract(**change({}))
    found = judge(SOUND, edited, edited.resolve({"cell": "1", "ue": "7", "slice": "embb"}), T)
    assert found.state == "REFERENCE_ABSTAIN"
    assert "other content" in found.because


def test_over_many_users_each_is_asked_and_the_derived_field_is_of_each() -> None:
    many = GATED.resolve({"cell": "1", "ue": ("7", "8"), "slice": "embb"})
    eight = replace(asked(SOUND, SINR), subject="cell:1/ue:8")
    support = replace(SOUND, asked=(*SOUND.asked, eight))
    assert judge(support, GATED, many, T).state == "SUPPORTED"
    assert judge(SOUND, GATED, many, T).state == "REFERENCE_ABSTAIN"
    short = replace(support, asked=(*SOUND.asked, replace(eight, current=(0, 9, 9, 9, 9))))
    assert judge(short, GATED, many, T).state == "SUPPORTED"
    both = tuple(replace(a, current=(9, 9, 9, 9, 0)) if a.field == "capacity" else a for a in short.asked)
    found = judge(replace(short, asked=both), GATED, many, T)
    assert [s.field for s in found.short] == ["index"]


def test_a_derived_field_of_each_user_rests_on_that_user_and_one_of_all_on_all() -> None:
    fields = copy.deepcopy(CONTRACT["fields"])
    both = {("sinr", "cell:1/ue:7"): (9, 9, 9, 9, 0), ("sinr", "cell:1/ue:8"): (0, 9, 9, 9, 9)}
    for subject, state in (("cell:{cell}/ue:{ue}", "SUPPORTED"), (None, "RUNTIME_ABSTAIN")):
        for name in ("rate", "index"):
            fields[name] = fields[name] | {"subject": subject}
        many = contract(fields=fields)
        resolution = many.resolve(BINDINGS | {"ue": ("7", "8")})
        sinr = asked(SOUND, SINR)
        support = replace(
            SOUND,
            map=replace(SOUND.map, contract_digest=many.digest),  # type: ignore[type-var]
            asked=(asked(SOUND, CAPACITY), *(replace(sinr, subject=s, current=c) for (_, s), c in both.items())),
        )
        assert judge(support, many, resolution, T).state == state


def test_what_a_component_is_called_is_told_apart() -> None:
    assert Component("", 1, "any", "any").text == "the network, quarter 1, load any, cqi any"
    assert isinstance(SOUND.map, MapClaim)
    assert measured(T).source == "e2:1"
