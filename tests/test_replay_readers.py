"""What a row becomes: its own clocks, its own identity, its own units, and no measurement where there was none."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from streams.replay import perf3gpp
from streams.replay.formats import FORMATS, guess
from streams.replay.recorded import Arrival, Tally, UnreadableRecording
from streams.replay.units import SCOPE, TABLE, metric
from tests.replay_samples import END, GRANULARITY_S, T0, event, flexric_file, flexric_row, sample, scope_file, scope_row
from xapp import units
from xapp.model import Measurement


def read(form: str, path: Path) -> tuple[list[Arrival], Tally]:
    tally = Tally()
    return list(FORMATS[form].read(path, 1, tally)), tally


def by_name(arrival: Arrival) -> dict[str, Measurement]:
    return {m.name: m for m in arrival.report.measurements}


# SCOPE


def test_a_scope_row_arrives_at_its_own_time_with_its_units(tmp_path: Path) -> None:
    (arrival,), tally = read("scope", scope_file(tmp_path / "a.csv", [scope_row(T0, requested=30, granted=21)]))
    assert (arrival.report.event_time_ms, arrival.ingest_time_ms) == (T0, T0)
    found = {name: (m.value, m.unit) for name, m in by_name(arrival).items()}
    assert found["sum_requested_prbs"] == (30, "PRB")
    assert found["sum_granted_prbs"] == (21, "PRB")
    assert found["dl_buffer"] == (0, "byte")
    assert found["tx_brate downlink"] == (0.5, "Mbps")
    assert found["tx_errors downlink"] == (0, "%")
    assert tally.unreadable == []


@pytest.mark.parametrize("samples", [0, ""])
def test_a_row_without_downlink_samples_measured_nothing_on_the_downlink(tmp_path: Path, samples: Any) -> None:
    (arrival,), tally = read("scope", scope_file(tmp_path / "a.csv", [scope_row(T0, samples=samples)]))
    found = by_name(arrival)
    for name in ("dl_cqi", "dl_buffer", "tx_brate downlink", "sum_requested_prbs", "sum_granted_prbs", "dl_mcs"):
        assert found[name].quality == "no_value", name
    for name in ("ul_mcs", "rx_brate uplink", "slice_prb", "slicing_enabled", "attach_epoch"):
        assert found[name].quality is None, name
    assert tally.findings["rows_without_downlink_samples"] == 1
    assert tally.findings["rows_without_uplink_samples"] == 0


def test_every_change_of_rnti_is_another_ue_also_a_change_back(tmp_path: Path) -> None:
    rows = [scope_row(T0 + 250 * i, rnti=rnti) for i, rnti in enumerate([70, 70, 71, 70])]
    arrivals, tally = read("scope", scope_file(tmp_path / "a.csv", rows))
    subjects = [a.report.subject for a in arrivals]
    assert subjects[0] == subjects[1]
    assert len(set(subjects)) == 3
    assert [by_name(a)["attach_epoch"].value for a in arrivals] == ["1.1", "1.1", "1.2", "1.3"]
    assert {by_name(a)["attach_epoch"].subject for a in arrivals} == {"imsi:1010123456002"}
    assert tally.findings["epochs"] == 3


def test_a_time_that_runs_backwards_arrives_late_and_says_what_it_says(tmp_path: Path) -> None:
    rows = [scope_row(T0), scope_row(T0 + 250), scope_row(T0 - 3_600_000), scope_row(T0 + 500)]
    arrivals, tally = read("scope", scope_file(tmp_path / "a.csv", rows))
    assert [a.report.event_time_ms - T0 for a in arrivals] == [0, 250, -3_600_000, 500]
    assert [a.ingest_time_ms - T0 for a in arrivals] == [0, 250, 250, 500]
    versions = [a.report.version or 0 for a in arrivals]
    assert versions == sorted(set(versions))
    assert tally.findings["reversed_times"] == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (scope_row(T0 // 1000), "seconds"),
        (scope_row(T0 * 1000), "microseconds"),
        (scope_row("yesterday"), "no integer"),
        (scope_row(T0, imsi=""), "IMSI"),
        (scope_row(T0) + ",1", "cells"),
        ("1,2,3", "cells"),
    ],
)
def test_a_row_that_cannot_be_read_is_counted_with_its_line_and_the_rest_goes_on(
    tmp_path: Path, row: str, reason: str
) -> None:
    path = scope_file(tmp_path / "a.csv", [scope_row(T0), row, scope_row(T0 + 250)])
    arrivals, tally = read("scope", path)
    assert len(arrivals) == 2
    (unreadable,) = tally.unreadable
    assert unreadable.line == 3
    assert reason in unreadable.reason
    assert tally.rows == 3


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "", "1e999", "n/a"])
def test_a_cell_that_is_no_finite_number_is_no_value(tmp_path: Path, cell: str) -> None:
    (arrival,), tally = read("scope", scope_file(tmp_path / "a.csv", [scope_row(T0, cqi=cell)]))  # type: ignore[arg-type]
    assert by_name(arrival)["dl_cqi"].value is None
    assert by_name(arrival)["dl_cqi"].quality == "no_value"
    assert tally.findings["blank_values"] == 1


def test_bytes_that_are_no_text_cost_their_line_only(tmp_path: Path) -> None:
    path = scope_file(tmp_path / "a.csv", [scope_row(T0)])
    path.write_bytes(path.read_bytes() + b"\xff\xfe\n" + scope_row(T0 + 250).encode() + b"\n")
    arrivals, tally = read("scope", path)
    assert len(arrivals) == 2
    assert [(u.line, u.reason.startswith("no UTF-8")) for u in tally.unreadable] == [(3, True)]


def test_a_damaged_gzip_gives_what_came_before_the_damage(tmp_path: Path) -> None:
    plain = scope_file(tmp_path / "a.csv", [scope_row(T0 + 250 * i) for i in range(2000)])
    packed = gzip.compress(plain.read_bytes())
    (tmp_path / "whole.csv").write_bytes(packed)
    (tmp_path / "cut.csv").write_bytes(packed[: len(packed) // 2])
    assert read("scope", tmp_path / "whole.csv")[0] == read("scope", plain)[0]
    cut, tally = read("scope", tmp_path / "cut.csv")
    assert 0 < len(cut) < 2000
    assert "gzip" in tally.unreadable[-1].reason


def test_a_file_without_a_needed_column_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Timestamp,IMSI\n1,2\n")
    with pytest.raises(UnreadableRecording, match="RNTI"):
        read("scope", path)


def test_the_real_scope_sample_shows_its_gaps_attaches_and_empty_rows() -> None:
    path = sample("tractor", "Trial2__multi5__1010123456002_metrics.csv")
    rows = list(csv.DictReader(path.open()))
    times = [int(row["Timestamp"]) for row in rows]
    arrivals, tally = read("scope", path)
    assert len(arrivals) == len(rows)
    assert tally.unreadable == []
    assert tally.findings["gaps"] == sum(b - a > 500 for a, b in itertools.pairwise(times))
    changes = sum(a["RNTI"] != b["RNTI"] for a, b in itertools.pairwise(rows))
    assert tally.findings["epochs"] == changes + 1 == len({a.report.subject for a in arrivals})
    assert tally.findings["rows_without_downlink_samples"] == sum(float(r["dl_n_samples"]) == 0 for r in rows)
    good = sum(by_name(a)["dl_cqi"].quality is None for a in arrivals)
    assert good == sum(float(r["dl_n_samples"]) > 0 for r in rows)


# FlexRIC


def test_a_flexric_row_arrives_after_its_latency_in_declared_units(tmp_path: Path) -> None:
    (arrival,), _ = read("flexric", flexric_file(tmp_path / "a.csv", [flexric_row(T0, 1, latency=7)]))
    assert (arrival.report.event_time_ms, arrival.ingest_time_ms) == (T0, T0 + 7)
    found = {name: m.unit for name, m in by_name(arrival).items()}
    assert (found["DRB.RlcSduDelayDl"], found["DRB.UEThpDl"], found["RRU.PrbTotDl"]) == ("μs", "kbps", "%")
    assert arrival.report.source == "e2:gNB:3584"


def test_a_negative_latency_is_a_measurement_from_the_future_of_its_arrival(tmp_path: Path) -> None:
    rows = [flexric_row(T0, 1), flexric_row(T0 + 1000, 2, latency=-600), flexric_row(T0 + 2000, 3, latency=-(10**18))]
    arrivals, tally = read("flexric", flexric_file(tmp_path / "a.csv", rows))
    assert [(a.report.event_time_ms - T0, a.ingest_time_ms - T0) for a in arrivals] == [(0, 0), (1000, 400)]
    assert [u.line for u in tally.unreadable] == [4]


def test_a_delay_of_zero_and_a_blank_are_no_measurements(tmp_path: Path) -> None:
    rows = [flexric_row(T0, 1, delay="0.00"), flexric_row(T0 + 1000, 2, prb="")]
    (zero, blank), tally = read("flexric", flexric_file(tmp_path / "a.csv", rows))
    assert by_name(zero)["DRB.RlcSduDelayDl"].quality == "no_value"
    assert by_name(zero)["RRU.PrbTotDl"].quality is None
    assert by_name(blank)["RRU.PrbTotDl"] == Measurement("RRU.PrbTotDl", None, "%", quality="no_value")
    assert tally.findings["delays_without_samples"] == 1


def test_a_ue_that_missed_a_batch_of_its_node_comes_back_as_another(tmp_path: Path) -> None:
    rows = [flexric_row(T0 + 1000 * batch, batch, ue=ue) for batch, ue in [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2)]]
    arrivals, tally = read("flexric", flexric_file(tmp_path / "a.csv", rows))
    assert [a.report.subject for a in arrivals] == [
        "ue:gNB:3584/1/epoch-1.1",
        "ue:gNB:3584/2/epoch-1.1",
        "ue:gNB:3584/1/epoch-1.1",
        "ue:gNB:3584/1/epoch-1.1",
        "ue:gNB:3584/2/epoch-1.2",
    ]
    assert tally.findings["epochs"] == 3


def test_the_real_flexric_sample_is_read_whole() -> None:
    path = sample("nist_flexric", "sample_KPI_Metrics.csv")
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    arrivals, tally = read("flexric", path)
    assert (len(arrivals), tally.unreadable) == (len(rows), [])
    zeros = sum(float(r["DRB.RlcSduDelayDl (μs)"]) == 0 for r in rows)
    assert tally.findings["delays_without_samples"] == zeros > 0
    assert [a.ingest_time_ms for a in arrivals] == sorted(a.ingest_time_ms for a in arrivals)


# perf3gpp

def perf(tmp_path: Path, *documents: Any, name: str = "pm.json") -> tuple[list[Arrival], Tally]:
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(d) for d in documents))
    return read("perf3gpp", path)


@pytest.mark.parametrize(("factor", "divisor"), [(1000, 1), (1, 1), (1, 1000)], ids=["us", "ms", "s"])
def test_the_scale_of_a_microsec_field_is_read_off_its_size(tmp_path: Path, factor: int, divisor: int) -> None:
    start, end = ((t * factor) // divisor for t in (END - GRANULARITY_S * 1000, END))
    (arrival,), tally = perf(tmp_path, event(end, start))
    assert (arrival.report.event_time_ms, arrival.ingest_time_ms, arrival.report.quality) == (END, END, "good")
    assert tally.findings["periods_unlike_the_granularity"] == 0


@pytest.mark.parametrize("start", [END + 1, END - 1, END - 2 * GRANULARITY_S * 1000, 0])
def test_a_period_that_is_not_one_granularity_long_makes_every_value_suspect(tmp_path: Path, start: int) -> None:
    (arrival,), tally = perf(tmp_path, event(END, start))
    assert arrival.report.quality == "suspect"
    assert tally.findings["periods_unlike_the_granularity"] == 1
    assert tally.findings["starts_after_end"] == (start > END)


def test_an_end_that_is_no_time_is_evidence_of_1970_if_the_name_says_when_it_came(tmp_path: Path) -> None:
    (arrival,), _ = perf(tmp_path, event(151_983, 15_198_378), name="A20000626.2315+0200-2330+0200_x.json")
    assert arrival.report.event_time_ms == 151
    assert arrival.ingest_time_ms == 962_055_000_000  # 2000-06-26 21:30 UTC
    assert arrival.report.quality == "suspect"
    nameless, tally = perf(tmp_path, event(151_983, 15_198_378))
    assert nameless == []
    assert "no time at any scale" in tally.unreadable[0].reason


def test_the_name_of_a_file_may_cross_midnight() -> None:
    assert perf3gpp.end_by_name("A20231231.2345+0000-0000+0000_du") == 1_704_067_200_000
    assert perf3gpp.end_by_name("A20239931.2345+0000-0000+0000_du") is None
    assert perf3gpp.end_by_name("pm_report.json") is None


@pytest.mark.parametrize(
    ("flag", "value", "quality", "stored"),
    [
        ("false", "12", None, 12),
        ("true", "12", "suspect", 12),
        (True, "12", "suspect", 12),
        ("perhaps", "12", "suspect", 12),
        ("false", " ", "no_value", None),
        ("false", "NaN", "no_value", None),
        ("false", "0,0,0,0", "incomplete", "0,0,0,0"),
    ],
)
def test_a_value_is_what_it_is(tmp_path: Path, flag: Any, value: str, quality: str | None, stored: Any) -> None:
    (arrival,), _ = perf(tmp_path, event(END, flag=flag, value=value))
    (measurement,) = arrival.report.measurements
    assert (measurement.value, measurement.quality, measurement.subject) == (stored, quality, "X=1,UtranCell=9")


def test_a_value_whose_position_has_no_name_is_counted_and_left_out(tmp_path: Path) -> None:
    more = [{"p": 2, "sValue": "1"}, {"p": 9, "sValue": "1"}, {"p": 0, "sValue": "1"}, {"p": 3, "sValue": "1"}]
    (arrival,), tally = perf(tmp_path, event(END, more=more))
    assert [m.name for m in arrival.report.measurements] == ["attImmediateAssignProcs", "other"]
    assert tally.findings["values_without_a_name"] == 3


def test_documents_line_by_line_and_the_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    arrivals, tally = perf(tmp_path, event(END), {"event": {}}, event(END + 900_000))
    assert [a.report.event_time_ms for a in arrivals] == [END, END + 900_000]
    assert [(u.line, u.reason) for u in tally.unreadable] == [(2, "$.event.commonEventHeader: required, a dict")]


def test_the_real_ves_samples_are_read_with_what_is_wrong_with_them() -> None:
    (odd,), tally = read("perf3gpp", sample("ranpm", "pm_report.json"))
    assert tally.findings["periods_unlike_the_granularity"] == 1
    assert odd.report.quality == "suspect"
    (plain,), tally = read("perf3gpp", sample("ranpm", "pm_report_filtered.json"))
    assert (tally.findings["ends_in_ms"], tally.findings["suspect_objects"], plain.report.quality) == (1, 1, "good")
    name = "A20000626.2315+0200-2330+0200_HTTPS-6-73.json"
    (anonymous,), tally = read("perf3gpp", sample("ranpm", name))
    values = [
        r["sValue"]
        for info in json.loads(sample("ranpm", name).read_text())["event"]["perf3gppFields"]["measDataCollection"][
            "measInfoList"
        ]
        for entry in info["measValuesList"]
        for r in entry["measResults"]
    ]
    assert len(anonymous.report.measurements) == len(values)
    assert tally.findings["vectors"] == sum("," in v for v in values)
    assert tally.findings["starts_after_end"] == 1


# All formats


def test_formats_are_recognised_by_how_they_begin(tmp_path: Path) -> None:
    assert guess(scope_file(tmp_path / "a", [])) == "scope"
    assert guess(flexric_file(tmp_path / "b", [])) == "flexric"
    (tmp_path / "c").write_text(json.dumps(event(END), indent=2))
    assert guess(tmp_path / "c") == "perf3gpp"
    packed = gzip.compress((tmp_path / "a").read_bytes())
    (tmp_path / "d").write_bytes(packed)
    assert guess(tmp_path / "d") == "scope"
    (tmp_path / "e").write_text("hello\n")
    with pytest.raises(UnreadableRecording, match="--format"):
        guess(tmp_path / "e")


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_contract_of_a_format_loads_and_is_the_one_its_proposer_names(name: str) -> None:
    contracts = FORMATS[name].load_contracts()
    assert set(contracts) == {f"{file}/1" for file in FORMATS[name].contracts}


def test_every_unit_of_the_table_is_one_that_the_registry_knows() -> None:
    assert [unit for table in TABLE.values() for unit in table.values() if not units.known(unit)] == []
    assert metric(SCOPE, "a column nobody knows") == ("a column nobody knows", None)
    assert metric(SCOPE, "slice_prb [RBG]") == ("slice_prb", "RBG")


def test_report_ids_are_unique_over_files(tmp_path: Path) -> None:
    path = scope_file(tmp_path / "a.csv", [scope_row(T0), scope_row(T0 + 250)])
    ids = [a.report.report_id for number in (1, 2) for a in FORMATS["scope"].read(path, number, Tally())]
    assert len(set(ids)) == 4
