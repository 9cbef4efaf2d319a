"""The book of visits: what counts, where, when, and what is forgotten."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_rig import (
    CAPACITY,
    CONTRACT,
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
    capacity,
    counted,
    measured,
    report,
    sinr,
    steady,
    terms,
)

from xapp.contract_loading import load_contract
from xapp.evidence.series import Shapes, columns_of
from xapp.model import Measurement, Report
from xapp.support.book import SupportBook, Window

WINDOW = range(NOW - 5, NOW)


def window(book: SupportBook, t_ms: int = T) -> Window:
    return book.window(RESOLVED.members, t_ms)


def told(book: SupportBook, t_ms: int = T) -> tuple[Any, ...]:
    """All that a window says, by value."""
    seen = window(book, t_ms)
    profiles = [(p.index, dict(p.visits), p.load, p.cqi) for p in seen.profiles]
    return seen.first, dict(seen.components), dict(seen.visits), profiles


def test_visits_are_counted_by_partition_in_the_component_of_their_time() -> None:
    book = counted([*steady([NOW - 5, NOW - 3], 3), *steady([NOW - 2], 2, load=80), *steady([NOW - 1], 1)])
    seen = window(book)
    assert seen.first == NOW - 5
    assert seen.components[SINR] == HERE
    assert seen.components[CAPACITY] == SLICE
    assert seen.visits[SINR] == (3, 0, 3, 0, 1)  # under high load it was somewhere else
    assert seen.visits[CAPACITY] == (3, 0, 3, 0, 1)
    assert sum(book.visits(NOW - 2).values()) == 4


def test_the_running_partition_is_no_part_of_the_window_until_it_ends() -> None:
    book = counted(steady([NOW], 3))
    assert window(book, T + PARTITION - 1).visits[SINR] == (0, 0, 0, 0, 0)
    assert window(book, T + PARTITION).visits[SINR] == (0, 0, 0, 0, 3)


def test_users_of_one_cell_are_in_one_place_and_count_together() -> None:
    event = T - 5_000
    axes = [Measurement("RRU.PrbUsedDl", 30, "%", "cell:1"), Measurement("cqi", 12, None, "cell:1")]
    book = counted([(report(event, *axes, sinr(ue="7"), sinr(ue="8"), sinr(ue="9")), event + 10)])
    assert window(book).visits[SINR] == (0, 0, 0, 0, 3)


BASE = T - 4_000  # the sample that the others come beside
SOUND = (report(BASE, sinr()), BASE + 20)
ADDS_NOTHING: dict[str, Arrival] = {
    "of bad quality": (report(BASE + 100, sinr(quality="suspect")), BASE + 120),
    "in a report of bad quality": (report(BASE + 100, sinr(), quality="incomplete"), BASE + 120),
    "without a value": (report(BASE + 100, sinr(None)), BASE + 120),
    "stale when it arrived": (report(BASE + 100, sinr()), BASE + 1101),
    "out of order": (report(BASE - 100, sinr()), BASE + 120),
    "ahead of the clocks": (report(BASE + 200, sinr()), BASE + 149),
    "above its range": (report(BASE + 100, sinr(40.1)), BASE + 120),
    "below its range": (report(BASE + 100, sinr(-20.1)), BASE + 120),
    "of another type": (report(BASE + 100, sinr("15")), BASE + 120),
    "a boolean for a number": (report(BASE + 100, sinr(True)), BASE + 120),
    "in a unit that does not convert": (report(BASE + 100, sinr(unit="MHz")), BASE + 120),
    "in an unknown unit": (report(BASE + 100, sinr(unit="decibel")), BASE + 120),
    "without its unit": (report(BASE + 100, sinr(unit=None)), BASE + 120),
    "of another schema": (replace(report(BASE + 100, sinr()), schema="kpm/1"), BASE + 120),
    "of another source": (report(BASE + 100, sinr(), source="spoofed"), BASE + 120),
    "of another cell's source": (report(BASE + 100, sinr(), source="e2:2"), BASE + 120),
    "under another name": (report(BASE + 100, sinr(name="snr")), BASE + 120),
    "of a subject of another kind": (report(BASE + 100, sinr(subject="cell:1/slice:7")), BASE + 120),
    "of a subject within the subject": (report(BASE + 100, sinr(subject="cell:1/ue:7/slice:a")), BASE + 120),
    "without a subject": (report(BASE + 100, sinr(subject=None)), BASE + 120),
    "a memory": (report(BASE + 100, sinr(origin="memory")), BASE + 120),
    "an operator's answer": (report(BASE + 100, sinr(origin="operator")), BASE + 120),
    "computed from others": (report(BASE + 100, sinr(parents=("x",))), BASE + 120),
    "of a field that nothing rests on": (report(BASE + 100, Measurement("note", 1, None, "cell:1/ue:7")), BASE + 120),
    "the same report again": SOUND,
    "the same again under another id": (report(BASE, sinr(), name="again"), BASE + 120),
    "the same event from the secondary source": (report(BASE, sinr(), source="o1:1"), BASE + 120),
}


@pytest.mark.parametrize("what", sorted(ADDS_NOTHING))
def test_a_sample_adds_nothing_that_is(what: str) -> None:
    before = counted([SOUND])
    assert sum(before.visits(BASE // PARTITION).values()) == 1
    assert told(counted([SOUND, ADDS_NOTHING[what]])) == told(before)


@pytest.mark.parametrize(
    "one",
    [
        (report(BASE + 100, sinr()), BASE + 1100),  # exactly as old as it may be
        (report(BASE + 100, sinr()), BASE + 50),  # exactly as far ahead as the clocks may differ
        (report(BASE + 100, sinr(40)), BASE + 120),
        (report(BASE + 1, sinr(), source="o1:1"), BASE + 120),
        (report(BASE + 100, sinr(name="UE-SINR")), BASE + 120),
        (report(BASE, sinr(ue="8")), BASE + 120),
        (report(BASE, sinr(ue="imsi-1/rnti-70")), BASE + 120),
        (report(BASE, sinr(event_time_ms=BASE + 100)), BASE + 120),
    ],
)
def test_a_sound_and_newer_sample_is_one_visit_more(one: Arrival) -> None:
    assert sum(counted([SOUND, one]).visits(BASE // PARTITION).values()) == 2


def test_a_bad_sample_does_not_stand_in_the_way_of_a_good_one_of_the_same_time() -> None:
    for bad in ("of bad quality", "of another source", "above its range", "stale when it arrived"):
        late = (report(BASE + 100, sinr(), name="good"), BASE + 1100)
        assert sum(counted([SOUND, ADDS_NOTHING[bad], late]).visits(BASE // PARTITION).values()) == 2


def test_a_late_sample_that_is_still_fresh_counts_where_it_was_measured() -> None:
    event = T - 100  # in the last whole partition; it arrives in the running one
    book = counted([(report(event, sinr()), T + 500)])
    assert sum(book.visits(NOW - 1).values()) == 1
    assert book.visits(NOW) == {}


def test_a_name_that_always_means_two_fields_counts_for_neither() -> None:
    document = document_of_contract()
    document["fields"]["note"] |= {"critical": True, "aliases": ["sinr"], "unit": "dB"}
    ambiguous = load_contract(document)
    book = SupportBook(ambiguous, TERMED)
    book.observe(SOUND[0], SOUND[1])
    assert book.visits(BASE // PARTITION) == {}


def test_the_bindings_that_subject_and_source_share_tell_serving_and_target_apart() -> None:
    """As in handover/1: one name for both, and the serving cell's node measures both."""
    both = {"kind": "observed", "unit": "dBm", "aliases": ["rsrp"], "freshness_ms": 500, "sources": ["cu:{serving}"]}
    handover = load_contract(
        {
            "contract_id": "gated/1",
            "fields": {
                "serving": both | {"subject": "ue:{ue}/cell:{serving}"},
                "target": both | {"subject": "ue:{ue}/cell:{target}"},
            },
        }
    )
    book = SupportBook(handover, terms(axes={}))
    own, neighbour = (Measurement("rsrp", -90, "dBm", f"ue:7/cell:{c}") for c in "12")
    book.observe(Report("r", "cu:1", BASE, (own, neighbour)), BASE)
    counts = {(field, component.place): n for (field, component), n in book.visits(BASE // PARTITION).items()}
    assert counts == {("serving", "cell:1"): 1, ("target", "cell:2"): 1}


def document_of_contract() -> dict[str, Any]:
    return copy.deepcopy(CONTRACT)


# Axes


def component_with(*axes: Measurement, age_ms: int = 1_000) -> Any:
    event = T - age_ms
    book = counted([(report(event, *axes), event)])
    return window(book).components[SINR]


def load(value: Any, subject: str | None, **more: Any) -> Measurement:
    return replace(Measurement("RRU.PrbUsedDl", value, "%", subject), **more)


def test_an_axis_is_looked_for_at_the_subject_then_its_place_then_the_cell() -> None:
    assert component_with(load(80, "cell:1")).load == "high"
    assert component_with(load(80, "cell:1"), load(20, "cell:1/ue:7")).load == "low"
    event = T - 1_000
    cell = counted([(report(event, load(80, "cell:1")), event)])
    assert window(cell).components[CAPACITY].load == "high"
    slice_too = counted([(report(event, load(80, "cell:1"), load(10, "cell:1/slice:embb")), event)])
    assert window(slice_too).components[CAPACITY].load == "low"
    assert window(slice_too).components[SINR].load == "high"


def test_an_axis_converts_its_unit() -> None:
    assert component_with(load(0.8, "cell:1", unit="1")).load == "high"


@pytest.mark.parametrize(
    "unknown",
    [
        load(80, "cell:2"),
        load(80, "cell:1", quality="suspect"),
        load(80, "cell:1", origin="memory"),
        load(80, "cell:1", unit="MHz"),
        load(80, "cell:1", parents=("x",)),
        load(None, "cell:1"),
        load("80", "cell:1"),
    ],
)
def test_what_is_not_known_of_an_axis_is_any(unknown: Measurement) -> None:
    assert component_with(unknown).load == "any"


def test_a_reading_stands_for_its_freshness_and_no_longer() -> None:
    assert component_with(load(80, "cell:1"), age_ms=12_000).load == "high"
    assert component_with(load(80, "cell:1"), age_ms=12_001).load == "any"


def test_an_older_reading_replaces_no_newer_one() -> None:
    book = counted([(report(T - 100, load(80, "cell:1")), T - 90), (report(T - 200, load(20, "cell:1")), T - 80)])
    assert window(book).components[SINR].load == "high"


def test_an_axis_that_the_terms_leave_out_is_any() -> None:
    book = SupportBook(GATED, terms(axes={}))
    book.observe(measured(T - 100), T - 90)
    assert window(book).components[SINR] == ("cell:1", 1, "any", "any")


# Determinism and bounds


def arrival(draw: Any, reach: int) -> Arrival:
    event = T + 5_000 - 500 * draw(st.integers(0, reach))
    late = draw(st.sampled_from([0, 20, 900, 1100, 11_000]))
    said = draw(
        st.lists(
            st.sampled_from(
                [
                    sinr(),
                    sinr(50.0),
                    sinr(ue="8"),
                    capacity(),
                    load(30, "cell:1"),
                    load(70, "cell:1"),
                    Measurement("cqi", 4, None, "cell:1/ue:7"),
                    sinr(event_time_ms=event - 300),
                ]
            ),
            min_size=1,
            max_size=4,
        )
    )
    return report(event, *said, source=draw(st.sampled_from(["e2:1", "o1:1", "e2:2"]))), event + late


@st.composite
def traffic(draw: st.DrawFn, reach: int = 130) -> list[Arrival]:
    """In order of arrival; events reach so many half seconds back."""
    found = [arrival(draw, reach) for _ in range(draw(st.integers(0, 40)))]
    return sorted(found, key=lambda one: one[1])


@given(traffic(), st.sets(st.integers(0, 40)))
@settings(max_examples=60, deadline=None)
def test_a_book_depends_on_the_arrivals_alone(arrivals: list[Arrival], looks: set[int]) -> None:
    """Not on when it is looked at, nor on the form of a report."""
    shapes, book, columns = Shapes(100), SupportBook(GATED, TERMED), SupportBook(GATED, TERMED)
    for i, (one, ingest_ms) in enumerate(arrivals):
        book.observe(one, ingest_ms)
        columns.observe(columns_of(one, shapes.of(one)), ingest_ms)
        if i in looks:
            window(book, ingest_ms)
    assert told(book) == told(columns) == told(counted(arrivals))


@given(traffic())
@settings(max_examples=60, deadline=None)
def test_a_repetition_of_what_arrived_adds_no_visit(arrivals: list[Arrival]) -> None:
    for partition in range(NOW - 7, NOW + 2):
        once = counted(arrivals).visits(partition)
        assert counted([one for one in arrivals for _ in range(2)]).visits(partition) == once


def test_a_book_forgets_what_the_kept_partitions_do_not_rest_on() -> None:
    def crowd(index: int) -> list[Arrival]:
        """Five users, and no user twice in all."""
        at = index * PARTITION + 5_000
        users = [sinr(ue=f"{index}-{i}") for i in range(5)]
        loads = [load(30, f"cell:1/ue:{index}-{i}") for i in range(5)]
        return [(report(at, *users, *loads), at + 10)]

    sizes = []
    book = SupportBook(GATED, TERMED)
    for index in range(NOW - 200, NOW):
        for one, ingest_ms in crowd(index):
            book.observe(one, ingest_ms)
        sizes.append(book.entries)
    assert max(sizes) == sizes[20]
    book.observe(report(T + 100 * PARTITION, capacity()), T + 100 * PARTITION)
    assert book.entries <= 2  # the network was silent: one visit, one subject


def test_forgetting_lets_nothing_count_twice() -> None:
    """A sample that was counted, and comes again when its subject was forgotten, lies before what is kept."""
    document = document_of_contract()
    document["fields"]["capacity"]["freshness_ms"] = 10**9
    long = load_contract(document)
    book = SupportBook(long, TERMED)
    old = report(T - 90_000, capacity())
    book.observe(old, T - 89_000)
    book.observe(report(T, sinr()), T)
    book.observe(old, T + 10)
    assert [sum(book.visits(i).values()) for i in range(NOW - 12, NOW)] == [0] * 12


@given(traffic(reach=300))
@settings(max_examples=60, deadline=None)
def test_a_book_that_reads_back_far_enough_has_the_window_of_one_that_read_all(arrivals: list[Arrival]) -> None:
    """One partition more than the window, and the longest freshness."""
    since = (NOW - 6) * PARTITION - 12_000
    assert told(counted(a for a in arrivals if a[1] >= since)) == told(counted(arrivals))


def test_a_sample_of_two_sources_counts_once_however_they_interleave() -> None:
    samples = [(event, source) for event in (T - 300, T - 200) for source in ("e2:1", "o1:1")]
    for order in permutations(samples):
        book = counted((report(event, sinr(), source=source), T - 100 + i) for i, (event, source) in enumerate(order))
        assert sum(book.visits(NOW - 1).values()) == (2 if order[0][0] < T - 200 else 1)


def counts(book: SupportBook) -> dict[Any, int]:
    return {(index, key): n for index in range(NOW - 40, NOW + 10) for key, n in book.visits(index).items()}


@given(traffic(reach=300), st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_a_book_that_may_hold_less_only_ever_loses_visits(arrivals: list[Arrival], most: int) -> None:
    book, everything = counted([], kept_partitions=60, max_held=most), counted(arrivals, kept_partitions=60)
    for one, ingest_ms in arrivals:
        book.observe(one, ingest_ms)
        assert book.entries <= most
    there = counts(everything)
    assert all(count <= there.get(key, 0) for key, count in counts(book).items())
    assert book.overflows or counts(book) == there


def test_more_subjects_than_may_be_held_leave_the_book_without_visits_until_they_are_fewer() -> None:
    book = counted(steady(range(NOW - 20, NOW)), max_held=200)
    assert (book.overflows, window(book).visits[SINR]) == (0, (3,) * 5)
    crowd = report(T + 100, *(sinr(ue=str(ue)) for ue in range(300)))
    book.observe(crowd, T + 110)
    assert (book.overflows, book.entries) == (1, 0)
    assert window(book).visits[SINR] == (0,) * 5
    for one, ingest_ms in steady(range(NOW, NOW + 8)):
        book.observe(one, ingest_ms)
    assert book.overflows == 1
    assert window(book, T + 8 * PARTITION).visits[SINR] == (3,) * 5


@pytest.mark.parametrize("leap_ms", [86_400_000, 30 * PARTITION])
def test_a_clock_that_leapt_ahead_and_came_back_costs_a_window_and_no_more(leap_ms: int) -> None:
    book = counted(steady(range(NOW - 20, NOW - 10)))
    book.observe(measured(T + leap_ms), T + leap_ms)
    for one, ingest_ms in steady(range(NOW - 10, NOW)):
        book.observe(one, ingest_ms)
    assert window(book).visits[SINR] == (3,) * 5


@pytest.mark.parametrize("unit", ["%", "1"])
def test_readings_beyond_all_measure_leave_a_profile_finite(unit: str) -> None:
    book = counted([])
    for i in range(200):
        said = Measurement("RRU.PrbUsedDl", (1.7e308, -1.7e308)[i % 3 == 0], unit, "cell:1")
        book.observe(report(T - 500 + i, said, sinr()), T - 200 + i)
    assert abs(book.profile(NOW - 1).load) <= 1e9


def test_terms_for_another_contract_are_refused() -> None:
    with pytest.raises(ValueError, match="gated/2"):
        SupportBook(GATED, terms(contract_id="gated/2"))


def test_fewer_partitions_than_the_window_has_are_refused() -> None:
    with pytest.raises(ValueError, match="4 partitions kept"):
        SupportBook(GATED, TERMED, kept_partitions=4)
