"""Support terms, places and components: what is read, and what is refused with its place."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support_rig import TERMS, T, terms

from xapp.support.component import cell_of, place_of, quarter_of
from xapp.support.terms import TermsError, load_terms, read_terms


@pytest.mark.parametrize(
    ("subject", "place"),
    [
        ("cell:1/ue:7", "cell:1"),
        ("ue:7/cell:2", "cell:2"),
        ("cell:1/slice:embb", "cell:1/slice:embb"),
        ("slice:embb/ue:7", "slice:embb"),
        ("ue:7", "ue:7"),
        (None, ""),
    ],
)
def test_a_place_is_the_cell_and_slice_of_a_subject(subject: str | None, place: str) -> None:
    assert place_of(subject) == place
    assert place_of(place or None) == place


def test_a_place_lies_in_the_cell_that_it_names() -> None:
    assert cell_of("cell:1/slice:embb") == "cell:1"
    assert cell_of("slice:embb") is None


def test_quarters_of_the_day_begin_at_0_6_12_and_18_of_the_local_clock() -> None:
    midnight = T - 8 * 3_600_000
    assert [quarter_of(midnight + h * 3_600_000, 0) for h in (0, 6, 12, 18, 24)] == [0, 1, 2, 3, 0]
    assert quarter_of(midnight + 6 * 3_600_000 - 1, 0) == 0
    assert quarter_of(midnight, 330) == 0  # 05:30 in India
    assert quarter_of(midnight, 360) == 1
    assert quarter_of(midnight, -1) == 3


def test_terms_read_alike_from_yaml_json_and_their_own_canonical_form() -> None:
    import yaml

    read = read_terms(orjson.dumps(TERMS))
    assert read_terms(yaml.safe_dump(TERMS)) == read == read_terms(read.document)
    shuffled = dict(reversed(TERMS.items()))
    assert load_terms(shuffled).digest == read.digest
    assert terms(partition_ms=20_000).digest != read.digest


def test_what_terms_leave_out_is_written_in_their_document() -> None:
    short = {key: TERMS[key] for key in ("format", "contract_id", "partition_ms", "expires_after_ms")}
    read = load_terms(short | {"rule": {"min_visits": 12, "min_partitions": 14, "partitions": 15}})
    assert read.drift_partitions == 5
    assert (read.load, read.cqi, read.utc_offset_min) == (None, None, 0)
    assert orjson.loads(read.document)["drift_partitions"] == 5


def bent(path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(TERMS)
    *way, last = path.split(".")
    place: Any = document
    for key in way:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document


FAULTS: list[tuple[dict[str, Any], str]] = [
    (bent("format", "x"), "$.format"),
    (bent("rule", None), "$.rule"),
    (bent("rule.min_visits", None), "$.rule.min_visits"),  # no threshold has a default: none transfers
    (bent("rule.min_visits", 0), "$.rule.min_visits"),
    (bent("rule.min_partitions", 6), "$.rule.min_partitions"),
    (bent("rule.partitions", 1001), "$.rule.partitions"),
    (bent("partition_ms", 0), "$.partition_ms"),
    (bent("partition_ms", True), "$.partition_ms"),
    (bent("partition_ms", 6 * 3_600_000), "$.partition_ms"),
    (bent("expires_after_ms", None), "$.expires_after_ms"),
    (bent("expires_after_ms", 10**12), "$.expires_after_ms"),
    (bent("drift_partitions", 6), "$.drift_partitions"),
    (bent("utc_offset_min", 900), "$.utc_offset_min"),
    (bent("axes.load.unit", "percent"), "$.axes.load.unit"),
    (bent("axes.load.splits", [10, 50]), "$.axes.load.splits"),
    (bent("axes.cqi.splits", [10, 5]), "$.axes.cqi.splits"),
    (bent("axes.cqi.splits", [5, 5]), "$.axes.cqi.splits"),
    (bent("axes.cqi.names", []), "$.axes.cqi.names"),
    (bent("axes.cqi.names", ["cqi", "CQI"]), "$.axes.cqi.names"),
    (bent("axes.rank", {}), "$.axes.rank"),
]


@pytest.mark.parametrize(("document", "place"), FAULTS)
def test_terms_with_a_fault_are_refused_with_its_place(document: dict[str, Any], place: str) -> None:
    with pytest.raises(TermsError) as caught:
        load_terms(document)
    assert place in [path for path, _ in caught.value.errors]


def test_every_fault_is_named_at_once() -> None:
    document = bent("axes.load.unit", "percent") | {"drift_partitions": 9}
    with pytest.raises(TermsError) as caught:
        load_terms(document)
    assert [path for path, _ in caught.value.errors] == ["$.drift_partitions", "$.axes.load.unit"]


def test_a_value_on_a_split_belongs_to_the_upper_part() -> None:
    read = terms()
    assert read.load is not None
    assert read.cqi is not None
    assert [read.load.label(v) for v in (0, 49.9, 50, 100)] == ["low", "low", "high", "high"]
    assert [read.cqi.label(v) for v in (0, 5, 9.9, 10)] == ["low", "middle", "middle", "high"]


@given(st.integers(0, 10**12), st.integers(-720, 840))
def test_a_partition_lies_in_one_quarter_or_in_none(index: int, offset: int) -> None:
    read = terms(partition_ms=7 * 60_000, utc_offset_min=offset, rule=TERMS["rule"])
    every = {quarter_of(index * 420_000 + ms, offset) for ms in range(0, 420_000, 60_000)}
    every.add(quarter_of(index * 420_000 + 419_999, offset))
    assert read.quarter_of_partition(index) == (every.pop() if len(every) == 1 else None)
