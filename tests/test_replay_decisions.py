"""What recorded faults do to decisions: they turn up as what they are, and never as good evidence."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streams.replay import replay
from streams.replay.player import THINK_MS
from tests.replay_samples import END, T0, event, flexric_file, flexric_row, sample, scope_file, scope_row
from xapp.faithfulness import verify

ROOT = Path(__file__).parent.parent
Decision = dict[str, Any]
SAMPLES = [
    ("tractor", "Trial2__multi5__1010123456003_metrics.csv"),
    ("tractor", "Trial2__multi5__1010123456004_metrics.csv"),
    ("nist_flexric", "sample_KPI_Metrics.csv"),
    ("ranpm", "A20000626.2315+0200-2330+0200_HTTPS-6-73.json"),
    ("ranpm", "pm_report.json"),
    ("ranpm", "pm_report_filtered.json"),
]


def decide(tmp_path: Path, *paths: Path) -> list[Decision]:
    out = tmp_path / "decisions.jsonl"
    assert replay(list(paths), out=out) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def scope(tmp_path: Path, *rows: str) -> list[Decision]:
    return decide(tmp_path, scope_file(tmp_path / "rows.csv", rows))


def steady(count: int, start: int = T0, **columns: Any) -> list[str]:
    return [scope_row(start + 250 * i, **columns) for i in range(count)]


def at(decisions: list[Decision], t_ms: int) -> Decision:
    (found,) = (d for d in decisions if d["record"]["episode"]["decided_at_ms"] == t_ms)
    return found


def blocking(decision: Decision) -> set[str]:
    return {v["code"] for v in decision["violations"] if v["blocking"]}


def line_of(observation_id: str) -> int:
    return int(observation_id.split("#")[0].split(":")[1])


def test_steady_rows_are_good_evidence(tmp_path: Path) -> None:
    decisions = scope(tmp_path, *steady(13))
    live = [d for d in decisions if d["record"]["episode"]["decided_at_ms"] <= T0 + 3_000 + THINK_MS]
    assert [d["action"] for d in live] == ["APPLY"] * 4
    assert all(d["released"]["prb"]["unit"] == "PRB" for d in live)


def test_in_a_gap_proposals_go_on_and_every_one_meets_stale_evidence(tmp_path: Path) -> None:
    gap_ms = 600_000
    decisions = scope(tmp_path, *steady(5), *steady(5, start=T0 + 1_000 + gap_ms))
    within = [d for d in decisions if T0 + 1_500 < d["record"]["episode"]["decided_at_ms"] < T0 + 1_000 + gap_ms]
    assert len(within) >= 5
    assert all(d["action"] == "HOLD" and blocking(d) == {"stale"} for d in within)
    after = [
        d for d in decisions
        if T0 + 1_000 + gap_ms < d["record"]["episode"]["decided_at_ms"] <= T0 + 2_000 + gap_ms + THINK_MS
    ]  # fmt: skip
    assert "APPLY" in {d["action"] for d in after}


def test_a_jump_of_months_costs_dozens_of_proposals_and_supports_none(tmp_path: Path) -> None:
    months_ms = 13_850_477_473
    decisions = scope(tmp_path, *steady(5), *steady(5, start=T0 + months_ms, rnti=82))
    within = [d for d in decisions if T0 + 1_500 < d["record"]["episode"]["decided_at_ms"] < T0 + months_ms]
    assert 10 <= len(within) <= 60
    assert {d["action"] for d in within} == {"HOLD"}
    for decision in decisions:
        if decision["record"]["episode"]["decided_at_ms"] > T0 + months_ms and decision["action"] == "APPLY":
            assert all(line_of(i) > 6 for ids in decision["used"].values() for i in ids)


def test_a_row_without_samples_supports_nothing_and_no_older_row_stands_in_for_it(tmp_path: Path) -> None:
    decisions = scope(tmp_path, *steady(4), scope_row(T0 + 1_000, samples=0, cqi=9, requested=0, granted=0))
    decision = at(decisions, T0 + 1_000 + THINK_MS)
    assert decision["action"] == "HOLD"
    assert blocking(decision) == {"no_value"}
    assert "cqi" not in decision["used"]


def test_a_ue_that_re_attached_while_the_proposer_thought_is_another_ue(tmp_path: Path) -> None:
    decisions = scope(tmp_path, *steady(5), scope_row(T0 + 1_100, rnti=71), scope_row(T0 + 1_350, rnti=71))
    decision = at(decisions, T0 + 1_000 + THINK_MS)
    assert decision["bindings"]["ue"] == "imsi-1010123456002/rnti-70/epoch-1.1"
    assert decision["action"] == "ABSTAIN"
    assert blocking(decision) == {"plan_mismatch"}


def test_evidence_of_an_old_epoch_is_none_for_the_new_ue(tmp_path: Path) -> None:
    rows = [*steady(5), scope_row(T0 + 1_250, rnti=71, samples=0), scope_row(T0 + 2_000, rnti=70, samples=0)]
    decisions = scope(tmp_path, *rows)
    renewed = at(decisions, T0 + 2_000 + THINK_MS)
    assert renewed["bindings"]["ue"] == "imsi-1010123456002/rnti-70/epoch-1.3"
    assert blocking(renewed) == {"no_value"}
    seen = {line_of(o["id"]) for o in renewed["record"]["episode"]["observations"] if o["subject"].startswith("ue:")}
    assert seen == {8}


def test_an_older_row_that_comes_late_and_differs_is_out_of_order(tmp_path: Path) -> None:
    decisions = scope(tmp_path, *steady(5, cqi=9), scope_row(T0 + 650, cqi=3))
    decision = at(decisions, T0 + 1_000 + THINK_MS)
    assert "out_of_order" in blocking(decision)
    assert decision["action"] == "ESCALATE"


def test_a_clock_that_jumped_ahead_and_returned_leaves_nothing_current(tmp_path: Path) -> None:
    ahead_ms = 86_400_000
    decisions = scope(tmp_path, *steady(3), scope_row(T0 + ahead_ms), *steady(20, start=T0 + 1_000))
    late = [d for d in decisions if d["record"]["episode"]["decided_at_ms"] > T0 + ahead_ms + 1_000]
    assert late
    assert all(d["action"] != "APPLY" for d in late)
    applied = [d for d in decisions if d["action"] == "APPLY"]
    assert all(line_of(i) <= 5 for d in applied for ids in d["used"].values() for i in ids)


def test_counters_that_contradict_each_other_are_no_ground_to_act_on(tmp_path: Path) -> None:
    decisions = scope(tmp_path, *steady(5, requested=20, granted=30))
    decision = at(decisions, T0 + 1_000 + THINK_MS)
    assert decision["action"] == "ABSTAIN"
    assert {v["constraint"] for v in decision["violations"] if v["blocking"]} == {"granted-within-requested"}


def test_a_negative_latency_is_evidence_from_the_future(tmp_path: Path) -> None:
    rows = [flexric_row(T0, 1), flexric_row(T0 + 1_000, 2), flexric_row(T0 + 2_000, 3, latency=-400)]
    decisions = decide(tmp_path, flexric_file(tmp_path / "rows.csv", rows))
    assert at(decisions, T0 + THINK_MS)["action"] == "APPLY"
    decision = at(decisions, T0 + 2_000 + THINK_MS)
    assert decision["action"] == "HOLD"
    assert blocking(decision) == {"future"}


def counters(tmp_path: Path, attempts: str, successes: str) -> Decision:
    """The first decision on one file with one cell's two counters."""
    more = [{"p": 3, "sValue": successes}]
    document = event(END, value=attempts, names=("attImmediateAssignProcs", "", "succImmediateAssignProcs"), more=more)
    path = tmp_path / "pm.json"
    path.write_text(json.dumps(document))
    return decide(tmp_path, path)[0]


@pytest.mark.parametrize(
    ("attempts", "successes", "action", "codes"),
    [
        ("100", "95", "APPLY", set()),
        ("100", "101", "ABSTAIN", {"constraint"}),
        ("100", "", "HOLD", {"no_value"}),
        ("100", "95,0,0", "HOLD", {"no_value"}),
        ("0,0,0,0", "95", "HOLD", {"no_value"}),
    ],
)
def test_counters_of_a_cell_support_an_action_only_as_sound_scalars(
    tmp_path: Path, attempts: str, successes: str, action: str, codes: set[str]
) -> None:
    decision = counters(tmp_path, attempts, successes)
    assert (decision["action"], blocking(decision)) == (action, codes)


def test_the_same_ue_in_two_files_is_not_taken_for_one_attach(tmp_path: Path) -> None:
    one = scope_file(tmp_path / "1.csv", steady(5))
    two = scope_file(tmp_path / "2.csv", steady(5, start=T0 + 1_250))
    for decision in decide(tmp_path, one, two):
        number = decision["bindings"]["ue"].split("/epoch-")[1][0]
        about_ue = {i for ids in decision["used"].values() for i in ids if not i.endswith("#0")}
        assert {i.split(":")[0] for i in about_ue} <= {number}


@pytest.mark.parametrize("parts", SAMPLES, ids=lambda parts: parts[1][:32])
def test_every_decision_on_a_real_recording_is_faithful(tmp_path: Path, parts: tuple[str, str]) -> None:
    decisions = decide(tmp_path, sample(*parts))
    assert decisions
    assert [(d["proposal_id"], claims) for d in decisions if (claims := verify(d))] == []


def test_what_was_applied_on_the_real_scope_recordings_rests_on_rows_that_measured(tmp_path: Path) -> None:
    """Judged by the rows themselves, read here by other means."""
    applied = 0
    for imsi in range(1010123456003, 1010123456007):
        path = sample("tractor", f"Trial2__multi5__{imsi}_metrics.csv")
        rows = dict(enumerate(csv.DictReader(path.open()), start=2))
        starts = [2] + [b for a, b in pairwise(sorted(rows)) if rows[a]["RNTI"] != rows[b]["RNTI"]]
        for decision in decide(tmp_path, path):
            t = decision["record"]["episode"]["decided_at_ms"]
            arrived = max((line for line, row in rows.items() if int(row["Timestamp"]) <= t), default=0)
            epoch_start = max(s for s in starts if s <= arrived)
            if decision["action"] != "APPLY":
                continue
            applied += 1
            for line in {line_of(i) for ids in decision["used"].values() for i in ids}:
                row = rows[line]
                assert float(row["dl_n_samples"]) > 0
                assert 0 <= t - int(row["Timestamp"]) <= 500
                assert epoch_start <= line <= arrived
                assert float(row["sum_granted_prbs"]) <= float(row["sum_requested_prbs"])
    assert applied > 100


RUN = "import sys; from pathlib import Path; from streams.replay import replay; " \
      "sys.exit(replay([Path(sys.argv[1])], out=Path(sys.argv[2]), as_json=True))"  # fmt: skip


def digests(path: Path, out: Path, **environment: str) -> tuple[str, str]:
    """SHA-256 of the decisions and of the summary, from a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(out)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
        timeout=120,
    )
    return hashlib.sha256(out.read_bytes()).hexdigest(), hashlib.sha256(ran.stdout).hexdigest()


def same_bytes(path: Path, tmp_path: Path) -> None:
    one = digests(path, tmp_path / "one", PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C")
    two = digests(path, tmp_path / "two", PYTHONHASHSEED="4242", TZ="Pacific/Auckland", LC_ALL="C.UTF-8")
    assert (tmp_path / "one").stat().st_size > 0
    assert one == two


@pytest.mark.parametrize("parts", [SAMPLES[0], SAMPLES[2], SAMPLES[3]], ids=lambda parts: parts[1][:32])
def test_the_same_recording_gives_the_same_bytes_in_another_process(tmp_path: Path, parts: tuple[str, str]) -> None:
    same_bytes(sample(*parts), tmp_path)


def test_the_same_rows_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    same_bytes(scope_file(tmp_path / "rows.csv", [*steady(9), *steady(9, start=T0 + 60_000, rnti=71)]), tmp_path)


def test_the_place_of_a_recording_is_no_part_of_its_decisions(tmp_path: Path) -> None:
    rows = steady(9)
    (tmp_path / "there").mkdir()
    here = decide(tmp_path, scope_file(tmp_path / "a.csv", rows))
    assert decide(tmp_path, scope_file(tmp_path / "there" / "b.csv", rows)) == here


def test_the_biggest_sample_is_replayed_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample("tractor", "Trial2__multi5__1010123456002_metrics.csv")
    out = tmp_path / "decisions.jsonl"
    assert replay([path], form="scope", out=out, as_json=True) == 0
    summary = json.loads(capsys.readouterr().out)
    decisions = [json.loads(line) for line in out.open()]
    assert summary["rows"] == len(path.read_text().splitlines()) - 1
    assert summary["proposals"] == len(decisions) == sum(summary["actions"].values())
    for code, counts in summary["violations"].items():
        found = [v for d in decisions for v in d["violations"] if v["code"] == code]
        assert counts["blocking"] == sum(v["blocking"] for v in found)
        assert sum(counts.values()) == len(found)
    assert {"stale", "no_value", "constraint"} <= summary["violations"].keys()
    assert summary["actions"]["APPLY"] > 0
    assert summary["unreadable"]["count"] == 0


def test_several_files_are_one_stream_in_order_of_arrival(tmp_path: Path) -> None:
    one = scope_file(tmp_path / "1.csv", steady(9))
    two = scope_file(tmp_path / "2.csv", steady(9, start=T0 + 100, imsi="1010123456003", rnti=90))
    decisions = decide(tmp_path, one, two)
    assert {d["bindings"]["imsi"] for d in decisions} == {"1010123456002", "1010123456003"}
    times = [d["record"]["episode"]["decided_at_ms"] for d in decisions]
    assert times == sorted(times)
    for decision in decisions:
        number = {"1010123456002": "1", "1010123456003": "2"}[decision["bindings"]["imsi"]]
        assert {i.split(":")[0] for ids in decision["used"].values() for i in ids} <= {number}


@pytest.mark.parametrize(
    ("content", "form", "reason"),
    [
        ("", "scope", "empty"),
        ("", None, "begins like none"),
        ("what is this\n", None, "begins like none"),
        ("what is this\n", "scope", "no column"),
        ("what is this\n", "flexric", "no column"),
        ("what is this\n", "perf3gpp", "no JSON"),
        ("{}\n", "perf3gpp", "$.event"),
        ("what is this\n", "recording", "no recording"),
        ("what is this\n", "pcap", "no format 'pcap'"),
    ],
)
def test_a_file_in_which_nothing_can_be_read_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, form: str | None, reason: str
) -> None:
    path = tmp_path / "odd"
    path.write_text(content)
    assert replay([path], form=form) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert reason in said.err
    assert said.err.count("\n") == 1


def test_what_cannot_be_opened_or_written_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = scope_file(tmp_path / "a.csv", steady(3))
    before = path.read_bytes()
    assert replay([tmp_path / "absent.csv"]) == 2
    assert replay([tmp_path]) == 2
    assert replay([]) == 2
    assert replay([path], out=tmp_path / "no" / "such" / "folder") == 2
    assert replay([path], out=path) == 2
    assert path.read_bytes() == before
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 5


def test_a_row_that_cannot_be_read_is_named_in_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = scope_file(tmp_path / "a.csv", [*steady(3), "garbage"])
    assert replay([path], as_json=True) == 0
    unreadable = json.loads(capsys.readouterr().out)["unreadable"]
    assert unreadable["count"] == 1
    assert (unreadable["first"][0]["file"], unreadable["first"][0]["line"]) == ("a.csv", 5)
    assert replay([path]) == 0
    assert "a.csv: line 5: 1 cells" in capsys.readouterr().out
