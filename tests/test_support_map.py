"""Reference maps: built from what arrived, read strictly, and refused where they were touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from support_rig import (
    GATED,
    HERE,
    NOW,
    PARTITION,
    SLICE,
    TERMED,
    T,
    built,
    capacity,
    counted,
    recorded,
    report,
    steady,
)

from xapp.support.building import ALPHA, NEEDED, admissions
from xapp.support.carried import MapClaim
from xapp.support.drift import conformal_limit
from xapp.support.reference_map import DriftLimit, MapError, digest_of, map_json, read_map

FIRST = NOW - 360  # `recorded` begins here, within an hour
DAY = 86_400_000 // PARTITION
QUARTER = DAY // 4


def test_a_map_says_what_it_was_built_from_and_for() -> None:
    made = built(recorded())
    assert (made.contract_digest, made.terms_digest) == (GATED.digest, TERMED.digest)
    assert (made.recordings, made.label, made.version) == (("sha256:a",), "REFRESHED", 1)
    assert made.expires_at_ms - made.built_at_ms == TERMED.expires_after_ms
    assert made.digest == digest_of(made)
    claim = made.claim
    assert isinstance(claim, MapClaim)
    assert all(getattr(claim, name) == getattr(made, name) for name in MapClaim.__dataclass_fields__)


def test_the_reference_is_the_newest_run_that_the_recordings_cover() -> None:
    made = built(recorded(30))
    assert made.runs == {1: FIRST + 30 - 4}  # of the partitions FIRST + 1 … FIRST + 30; the two at the ends are parts
    book = counted(recorded(30), kept_partitions=1000)
    run = range(FIRST + 26, FIRST + 31)
    for (field, component), by_slot in made.visits.items():
        for index in run:
            assert by_slot[index % 5] == book.visits(index).get((field, component), 0)
    assert set(made.visits) == {("sinr", HERE), ("capacity", SLICE)}


def test_a_partition_in_which_nothing_arrived_breaks_a_run() -> None:
    gap = [a for a in recorded(30) if a[1] // PARTITION != FIRST + 28]
    assert built(gap).runs == {1: FIRST + 26 - 4}


def test_what_the_recordings_do_not_cover_long_enough_has_no_reference() -> None:
    made = built(recorded(4))
    assert (made.runs, made.visits) == ({}, {})
    assert made.drift[1] == "the recordings cover no 5 consecutive partitions of this quarter"


def test_each_quarter_of_the_day_has_a_reference_of_its_own() -> None:
    begin = T // 86_400_000 * DAY  # midnight
    around = [a for at in (begin + QUARTER, begin + 2 * QUARTER) for a in steady(range(at - 10, at + 10))]
    made = built(around)
    assert made.runs == {0: begin + QUARTER - 5, 1: begin + 2 * QUARTER - 5, 2: begin + 2 * QUARTER + 9 - 5}
    assert {component.quarter for _, component in made.visits} == {0, 1, 2}


def test_who_has_enough_visits_in_enough_partitions_is_admitted() -> None:
    thin = steady(range(FIRST, FIRST + 4), visits=1)
    made = built([*thin, *steady(range(FIRST + 4, FIRST + 7))])  # whole: 3 thin ones, then 2
    told = {(a.field, a.component): (a.partitions, a.admitted) for a in admissions(made, TERMED.rule)}
    assert told == {("sinr", HERE): (2, False), ("capacity", SLICE): (2, False)}
    full = {(a.field, a.component): (a.partitions, a.admitted) for a in admissions(built(recorded()), TERMED.rule)}
    assert full == {("sinr", HERE): (5, True), ("capacity", SLICE): (5, True)}


def test_a_refresh_from_the_same_buffer_is_labelled_a_smoke_test() -> None:
    first = built(recorded(30))
    again = {"version": 2, "previous": first}
    assert built(recorded(30), **again).label == "SMOKE_TEST"
    assert built(recorded(30), recordings=("sha256:b",), **again).label == "SMOKE_TEST"  # the same visits
    assert built(recorded(31), **again).label == "SMOKE_TEST"  # the same digests
    assert built(recorded(31), recordings=("sha256:b",), **again).label == "REFRESHED"


def test_the_same_buffer_is_known_however_it_was_cut_thinned_reordered_or_mixed() -> None:
    buffer = recorded(30)
    first = built(buffer, recordings=("sha256:a", "sha256:b"))
    ends = buffer[-1][1]
    cheats = {
        "its end cut": [one for one in buffer if one[1] < ends - PARTITION],
        "its beginning cut": buffer[40:],
        "thinned": [one for i, one in enumerate(buffer) if i % 7],
        "reordered": [one for pair in zip(buffer[1::2], buffer[::2], strict=False) for one in pair],
        "mixed": [*steady(range(FIRST - DAY, FIRST - DAY + 9)), *buffer],
    }
    for what, arrivals in cheats.items():
        made = built(arrivals, version=2, recordings=("sha256:c", "sha256:d"), previous=first)
        assert made.label == "SMOKE_TEST", what
    part = built(recorded(31), version=2, recordings=("sha256:b",), previous=first)
    assert part.label == "SMOKE_TEST"  # one of its files
    more = built(
        [*steady(range(FIRST - QUARTER, FIRST - QUARTER + 9)), *buffer],
        version=2,
        recordings=("sha256:a", "sha256:e"),
        previous=first,
    )
    assert more.label == "REFRESHED"  # a quarter that it had none of


# Drift


def test_the_drift_limit_is_split_conformal_over_the_partitions_that_the_fit_has_not_seen() -> None:
    made = built(recorded(5 + NEEDED))
    limit = made.drift[1]
    assert isinstance(limit, DriftLimit)
    assert limit.calibrated_on == NEEDED
    assert NEEDED == 19
    assert conformal_limit([1.0] * NEEDED, ALPHA) is not None
    assert conformal_limit([1.0] * (NEEDED - 1), ALPHA) is None


def test_too_few_partitions_for_a_limit_say_so() -> None:
    assert built(recorded(5 + NEEDED - 1)).drift[1] == (
        "18 further partitions of this quarter: at least 19 are needed for a limit"
    )


# Reading


def test_partitions_without_visits_calibrate_no_limit() -> None:
    """As none is scored by it."""
    since = (FIRST + 10) * PARTITION
    arrivals = [(one if at >= since else report(one.event_time_ms, capacity(-1.0)), at) for one, at in recorded(30)]
    assert built(arrivals).drift[1] == ("16 further partitions of this quarter: at least 19 are needed for a limit")


def test_a_map_reads_back_to_what_was_written() -> None:
    made = built(recorded())
    written = map_json(made)
    read = read_map(written)
    assert map_json(read) == written
    assert read.visits == made.visits
    assert read.claim == made.claim
    spaced = orjson.dumps(orjson.loads(written), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    assert map_json(read_map(spaced)) == written
    undrifted = built(recorded(6))
    assert read_map(map_json(undrifted)).drift == undrifted.drift


def test_equal_arrivals_make_equal_maps() -> None:
    assert map_json(built(recorded())) == map_json(built(iter(recorded())))


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [p for key, item in value.items() for p in _leaves(item, (*path, key))]
    if isinstance(value, list):
        return [p for i, item in enumerate(value) for p in _leaves(item, (*path, i))]
    return [path]


def test_a_map_that_was_touched_anywhere_is_refused() -> None:
    written = map_json(built(recorded()))
    paths = _leaves(orjson.loads(written))
    assert len(paths) > 60
    for path in paths:
        document = orjson.loads(written)
        place = document
        for key in path[:-1]:
            place = place[key]
        old = place[path[-1]]
        place[path[-1]] = old + 1 if isinstance(old, (int, float)) else f"{old}x"
        with pytest.raises(MapError):
            read_map(orjson.dumps(document))


def _with(change: Callable[[dict[str, Any]], Any]) -> bytes:
    document = orjson.loads(map_json(built(recorded())))
    change(document)
    return orjson.dumps(document)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"{", "$"),
        (b"[]", "$"),
        (_with(lambda d: d.pop("digest")), "$.digest"),
        (_with(lambda d: d.update(version=2)), "$.digest"),
        (_with(lambda d: d.update(colour="red")), "$.colour"),
        (_with(lambda d: d.update(version=0)), "$.version"),
        (_with(lambda d: d.update(label="FINE")), "$.label"),
        (_with(lambda d: d.update(built_at_ms=1_800_000_000)), "$.built_at_ms"),
        (_with(lambda d: d.update(expires_at_ms=T - 86_400_000)), "$.expires_at_ms"),
        (_with(lambda d: d["visits"][0]["visits"].pop()), "$.visits[0].visits"),
        (_with(lambda d: d["visits"][0]["visits"].__setitem__(0, -1)), "$.visits[0].visits[0]"),
        (_with(lambda d: d["visits"].append(d["visits"][0])), "$.visits[2]"),
        (_with(lambda d: d["visits"][0]["component"].update(load="middle")), "$.visits[0].component.load"),
        (_with(lambda d: d["drift"][1].update(because="no")), "$.drift[1]"),
        (_with(lambda d: d["drift"].insert(1, d["drift"][0])), "$.drift[1]"),
        (_with(lambda d: d["runs"].insert(0, d["runs"][0] | {"first": 7})), "$.runs[1]"),
        (_with(lambda d: d["drift"][1]["limit"]["mean"].pop()), "$.drift[1].limit"),
    ],
)
def test_a_map_with_a_fault_is_refused_with_its_place(data: bytes, path: str) -> None:
    with pytest.raises(MapError) as caught:
        read_map(data)
    assert path in [place for place, _ in caught.value.errors]
    assert caught.value.reason


def test_a_digest_that_was_made_anew_over_a_touched_map_reads() -> None:
    """The digest shows that a map is whole, and not who made it."""
    made = built(recorded())
    touched = replace(made, version=2)
    assert read_map(map_json(replace(touched, digest=digest_of(touched)))).version == 2


def test_the_reference_of_a_window_is_in_the_order_of_time() -> None:
    made = built(recorded(30))
    run = made.runs[1]
    book = counted(recorded(30), kept_partitions=1000)
    in_order = tuple(book.visits(index)["sinr", HERE] for index in range(run, run + 5))
    assert made.reference("sinr", HERE, run) == in_order
    assert made.reference("sinr", HERE, run + 5 * 7) == in_order
    assert made.reference("sinr", HERE, run + 2) == in_order[2:] + in_order[:2]
    assert made.reference("sinr", SLICE, run) is None
