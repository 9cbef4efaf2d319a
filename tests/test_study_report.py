"""The study's report: what a run saved beside what the paper published, each claim by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simulators.closedloop import published
from simulators.closedloop.report import write
from simulators.closedloop.report.cells import interval, number, share
from simulators.closedloop.report.figures import FIGURES
from simulators.closedloop.report.sections import document
from simulators.closedloop.report.study import Study
from simulators.closedloop.report.study import study as saved
from simulators.report.document import Heading, Paragraph, Picture, Table
from streams.cli import app
from streams.commands.study_folder import NAMES


def files_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in NAMES}


@pytest.fixture(scope="session")
def written(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the run that tests share."""
    folder = tmp_path_factory.mktemp("report")
    write(files_of(study), folder)
    return folder


@pytest.fixture(scope="session")
def text(written: Path) -> str:
    return (written / "report.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def read(study: Path) -> Study:
    return saved(files_of(study))


def tables(read: Study) -> dict[str, Table]:
    return {block.caption: block for block in document(read).blocks if isinstance(block, Table)}


def test_every_figure_stands_in_the_text_and_beside_it(written: Path, read: Study) -> None:
    shown = [block.name for block in document(read).blocks if isinstance(block, Picture)]
    assert sorted(shown) == sorted(FIGURES)
    for name in shown:
        assert (written / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (written / f"{name}.svg").read_bytes()
        assert f"({name}.png)" in (written / "report.md").read_text(encoding="utf-8")


def test_the_same_study_gives_the_same_bytes(study: Path, written: Path, tmp_path: Path) -> None:
    for path in write(files_of(study), tmp_path):
        assert path.read_bytes() == (written / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    "figure",
    [
        "55 of 72", "54 of 55", "20 of 24", "0 of 20", "0.1391", "0.1264", "[0.0593, 0.1918]", "0.0015", "0.0066",
        "| 0 | 17 | 37 | 52 | 54 |", "| 0 | 13 | 35 | 49 | 54 |", "9/12", "8/9", "0/9", "55.5 %",
    ],
)  # fmt: skip
def test_what_the_paper_published_stands_beside_ours(figure: str, text: str) -> None:
    assert figure in text


def test_published_figures_hang_together() -> None:
    assert published.CASES * 15 == published.ROWS
    assert published.ROWS * 160 == published.EPISODES
    assert all(counts[-1] <= published.RUNTIME_ADMITTED for counts in published.DETECTIONS.values())
    assert published.DIFFERENCE_INTERVAL[0] < published.DIFFERENCE < published.DIFFERENCE_INTERVAL[1]
    assert round(0.01 - published.FAMILY_BOUND, 4) == 0.0034  # section 9


def test_our_figures_are_those_that_were_saved(study: Path, text: str) -> None:
    analysis, calibration = (json.loads((study / f"{name}.json").read_bytes()) for name in ("analysis", "calibration"))
    for counts in analysis["detections"].values():
        assert f"| {' | '.join(map(str, counts))} |" in text
    for told in (analysis["models"]["difference"], analysis["family"]["gain"], calibration["bound"]):
        assert number(told) in text
    assert share(calibration["false_admissions"], calibration["represented"]) in text


def test_every_claim_stands_in_the_report_with_its_status_and_what_it_forbids(study: Path, read: Study) -> None:
    rows = {row[0]: row for row in tables(read)["The claim ledger"].rows}
    claims = [json.loads(one) for one in (study / "ledger.jsonl").read_bytes().splitlines()]
    assert list(rows) == [claim["id"] for claim in claims]
    for claim in claims:
        assert rows[claim["id"]][1] == claim["status"]
        assert rows[claim["id"]][-1] == claim["forbidden_inference"]


def test_there_is_no_verdict_over_the_claims(read: Study) -> None:
    """Statuses stand in the ledger, beside one claim each, and nowhere are they counted or summed up."""
    statuses = ("EXECUTED", "CONFIRMED", "PASS", "FAIL", "WITHDRAWN")
    for block in document(read).blocks:
        if isinstance(block, Table):
            if block.caption != "The claim ledger":
                assert not any(
                    re.search(rf"\b{status}\b", cell) for status in statuses for row in block.rows for cell in row
                )
            continue
        told = block.text if isinstance(block, Heading | Paragraph) else getattr(block, "caption", "")
        for sentence in re.split(r"(?<=[.:]) ", told):
            assert not re.search(
                r"\b(overall|in total|all claims|verdict of|passed|\d+ (of \d+ )?claims)\b", sentence, re.I
            )
        for status in statuses:
            if re.search(rf"\b{status}\b", told):
                assert "Claim " in told or "EXECUTED says" in told


def test_the_ledger_comes_last_and_every_unit_has_a_cell(read: Study) -> None:
    last = [block for block in document(read).blocks if isinstance(block, Heading)][-1]
    assert last.text == "The claim ledger"
    (units,) = (table for caption, table in tables(read).items() if caption.startswith("Units: eligible"))
    cells = [cell for row in units.rows for cell in row[1:]]
    assert len(cells) == 72
    assert sum(cell.startswith("eligible") for cell in cells) == read.analysis["admitted"]


def test_what_cannot_be_estimated_is_a_dash() -> None:
    assert number(None) == interval(None) == share(None, 3) == "–"
    assert number(-0.00001) == "0.0000"
    assert number(-0.5) == "−0.5000"
    assert interval([None, 0.25]) == "at most 0.2500"
    assert share([0, 3], 56) == "0, 3 of 56"


def test_a_study_without_estimates_has_a_report_all_the_same(study: Path, tmp_path: Path) -> None:
    files = files_of(study)
    analysis = json.loads(files["analysis.json"])
    nothing = {"traffic": {"nll": None, "coefficients": None}, "fraction": {"nll": None, "coefficients": None},
               "difference": None, "interval": None}  # fmt: skip
    analysis |= {
        "admitted": 0, "models": nothing, "within_family": dict.fromkeys(analysis["within_family"], nothing),
        "family": {"nll": None, "gain": None, "bound": None, "rule": 0.01},
    }  # fmt: skip
    files["analysis.json"] = json.dumps(analysis).encode()
    files["arms.csv"] = re.sub(rb"(NOT_)?DETECTED", b"RUNTIME_ABSTAIN", files["arms.csv"])
    write(files, tmp_path)
    assert "nothing can be estimated" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_command_writes_into_the_study_or_elsewhere_and_changes_nothing_of_it(study: Path, tmp_path: Path) -> None:
    before = files_of(study)
    ran = CliRunner().invoke(app, ["study", "report", str(study), "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    assert {Path(one).name for one in ran.output.split()} == {path.name for path in (tmp_path / "out").iterdir()}
    assert files_of(study) == before


def test_the_command_refuses_what_is_no_finished_study(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["study", "report", str(tmp_path)])
    assert ran.exit_code == 2
    assert not list(tmp_path.iterdir())
