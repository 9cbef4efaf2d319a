"""The report: its tables say what the outcomes say, its pages show any text, its figures are the same bytes again."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text

from simulators.optbench import published
from simulators.optbench import suite as suites
from simulators.optbench.ablations import ABLATIONS
from simulators.optbench.agents import Bundle
from simulators.optbench.base.anchors import GENERATORS
from simulators.optbench.bundles import decode, invalid_output
from simulators.optbench.candidates import case_of
from simulators.optbench.methods import build as build_method
from simulators.optbench.methods import wirelessopsagent
from simulators.optbench.model import DOMAINS, REFERENCES, TASKS, Case, Sealed, Split, Task
from simulators.optbench.oracle import judge as oracle
from simulators.optbench.realisation import FAMILIES
from simulators.optbench.realisation.scene import Scene
from simulators.optbench.report import cells, figures, plotted, tables, variants, write
from simulators.optbench.report.measured import BASELINES, FULL, METHODS, SANITY, Measured, Row, measure
from simulators.optbench.report.sections import document
from simulators.optbench.report.unaided import without_nominal
from simulators.optbench.running import run
from simulators.optbench.scoring.bootstrap import Interval
from simulators.optbench.scoring.outcome import Outcome, judge
from simulators.optbench.suite import Suite, load
from simulators.optbench.synthetic import proposer
from simulators.report.document import Document, Heading, Paragraph, Table
from simulators.report.markdown import markdown
from simulators.report.page import page

BACKBONE = "synthetic-a"
MAIN = (sys.executable, "-c", "from streams.cli import main; main()", "optbench", "report")
FIGURES = ("figure-4-survival", "figure-5-routing", "figure-6-confusion", "figure-7-gains")
FILES = {"report.html", "report.md", *(f"{name}.{form}" for name in FIGURES for form in ("png", "svg"))}


def sealed(task: Task, family_name: str, number: int) -> Sealed:
    """One episode of a family: the first generated item that suits it."""
    family = next(family for family in FAMILIES if family.name == family_name)
    drawn = random.Random(f"{task}{family_name}{number}")
    while True:
        item = GENERATORS[task](drawn, drawn.randrange(10**6))
        facts = family.realise(Scene(item, drawn))
        if facts is not None:
            verdict = oracle(item, facts)
            return Sealed(item, family.name, family.domain, facts, verdict.action, verdict.blocked)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A written suite of one episode for each task and family."""
    directory = tmp_path_factory.mktemp("small") / "suite"
    chosen = [case_of(sealed(task, family.name, 0)) for task in TASKS for family in FAMILIES]
    cases = tuple(sorted(chosen, key=lambda case: case.episode_id))
    counts: Mapping[Task, Mapping[Split, Mapping[str, int]]]
    counts = {task: {"final": {"file": 1, "generated": 31}} for task in TASKS}
    excluded = [{"task": "WCHW", "item_id": "x", "reason": "wrong gold"}]
    suites.write(suites.assembled(cases, "final", 5, counts, excluded), directory)
    return directory


def report(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([*MAIN, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == code, result.stderr
    return result


@pytest.fixture(scope="module")
def reported(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on the small suite, its results beside it."""
    out = tmp_path_factory.mktemp("reported") / "out"
    told = report("--suite", small, "--backbone", BACKBONE, "--out", out)
    assert {Path(line).name for line in told.stdout.splitlines()} == FILES
    for method in (*METHODS, *SANITY, *ABLATIONS):
        assert re.search(rf"^{method}, {BACKBONE}: 96 episodes in \d+ s$", told.stderr, re.MULTILINE)
    return out


@pytest.fixture(scope="module")
def suite(small: Path) -> Suite:
    return load(small)


@pytest.fixture(scope="module")
def bundles(reported: Path, suite: Suite) -> dict[str, list[Bundle]]:
    """What the report ran: method → its bundles, in the suite's order."""
    found = {}
    for method in (*METHODS, *SANITY, *ABLATIONS):
        lines = (reported / "results" / f"{method}--{BACKBONE}.jsonl").read_bytes().splitlines()[1:]
        by_id = {bundle.episode_id: bundle for bundle in map(decode, lines)}
        found[method] = [by_id[case.episode_id] for case in suite.cases]
    return found


@pytest.fixture(scope="module")
def measured(suite: Suite, bundles: Mapping[str, list[Bundle]]) -> Measured:
    return measured_of(suite, {(method, BACKBONE): decided for method, decided in bundles.items()})


def measured_of(suite: Suite, rows: Mapping[Row, Sequence[Bundle]]) -> Measured:
    return measure(suite, rows.items(), frozenset({BACKBONE}), "corrected", "strict", "1.2.3")


def column(table: Table, name: str) -> dict[str, str]:
    """The first cell of each row → its cell under the header that starts with `name`."""
    place = next(place for place, header in enumerate(table.header) if header.startswith(name))
    return {row[0]: row[place] for row in table.rows}


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def test_table_iii_holds_what_the_outcomes_say(measured: Measured) -> None:
    table = tables.stress_results(measured, BACKBONE)
    names = [tables.method_name(method) for method in (*METHODS, *SANITY)]
    assert [row[0] for row in table.rows] == names
    for method, name in zip((*METHODS, *SANITY), names, strict=True):
        found = measured.of(method, BACKBONE)
        asked = [outcome for outcome in found if outcome.reference == "APPLY"]
        expected = {
            "Task": f"{sum(o.score for o in found) / len(found):.3f}",
            "OPS": f"{sum(o.ops for o in found) / len(found):.3f}",
            "Exact": f"{sum(o.action == o.reference for o in found) / len(found):.3f}",
            "Safe recall": share(sum(o.safe for o in asked), len(asked)),
            "Unsafe": share(sum(o.unsafe for o in found), len(found)),
        }
        for metric, value in expected.items():
            cell = column(table, metric)[name]
            mean, low, high = map(float, re.findall(r"[\d.]+", cell))
            assert cell.startswith(f"{value} [")
            assert low <= mean <= high


def test_the_best_baseline_is_the_best_of_each_metric_and_the_difference_is_to_it(measured: Measured) -> None:
    results = tables.stress_results(measured, BACKBONE)
    for metric, baseline, told, _, beside in tables.against_best_baseline(measured, BACKBONE).rows:
        by_method = column(results, metric.split(" ")[0])
        scale = 100 if "%" in next(iter(by_method.values())) else 1
        values = {name: float(re.findall(r"[\d.]+", cell)[0]) / scale for name, cell in by_method.items()}
        three = [values[tables.method_name(method)] for method in BASELINES]
        assert values[baseline] == (min(three) if metric.startswith("Unsafe") else max(three))
        assert float(told.replace("−", "-")) == pytest.approx(
            values["WirelessOpsAgent"] - values[baseline], abs=0.0016
        )
        assert "(" in beside


def test_published_values_stand_under_published_headings_beside_the_proposer_that_they_calibrated(
    measured: Measured
) -> None:
    blocks = document(measured).blocks
    text = markdown(Document(blocks))
    assert "**Table III, published: GPT-5.4-mini (N = 600)**" in text
    assert "Qwen3-8B" not in text.split("## Table I:")[1]
    assert "Stress results as published" not in text
    shown = [row for name in ("GPT-5.4-mini",) for row in tables.published_stress_results(name).rows]
    assert ("WirelessOpsAgent", "0.802", "0.912", "0.972", "72.5 %", "7.8 %") in shown
    assert ("published: GPT-5.4-mini", "before repair", "187", "369", "13", "31", "93.5 %", "92.2 %", "36.3 %") in (
        tables.repair(measured).rows
    )


def renamed(measured: Measured, name: str) -> Measured:
    """The same outcomes, of a language model of that name."""
    rows = {kind: {(method, name): found for (method, _), found in of_kind.items()}
            for kind, of_kind in measured.outcomes.items()}  # fmt: skip
    unaided = {name: measured.unaided[BACKBONE]}
    return replace(measured, backbones=(name,), synthetic=frozenset(), outcomes=rows, unaided=unaided)


@pytest.mark.parametrize(
    ("name", "theirs"),
    [("qwen3-8b", "Qwen3-8B"), ("GPT 5.4 mini", "GPT-5.4-mini"), ("claude-sonnet-4-6", "Claude Sonnet 4.6")],
)
def test_a_model_stands_beside_its_published_namesake(measured: Measured, name: str, theirs: str) -> None:
    text = markdown(document(renamed(measured, name)))
    assert [other for other in published.BACKBONES if f"Table III, published: {other} " in text] == [theirs]
    before, _, *published_rows = tables.repair(renamed(measured, name)).rows
    assert (before[0], {row[0] for row in published_rows}) == (name, {f"published: {theirs}"})
    assert [row[0] for row in tables.survivors(renamed(measured, name)).rows] == [name, name, f"published: {theirs}"]
    assert "synthetic" not in text.split("## Table II:")[1].lower()


def test_a_model_without_a_namesake_is_followed_by_everything_published_once(measured: Measured) -> None:
    text = markdown(document(renamed(measured, "llama-9")))
    assert "Stress results as published" in text
    for other in published.BACKBONES:
        assert text.count(f"Table III, published: {other} ") == text.count(f"Figure 7, published: {other} ") == 1
        assert [row[0] for row in tables.repair(renamed(measured, "llama-9")).rows].count(f"published: {other}") == 2
        assert [row[0] for row in tables.survivors(renamed(measured, "llama-9")).rows].count(f"published: {other}") == 1


def test_every_heading_of_a_metric_is_defined(measured: Measured) -> None:
    defined = dict(tables.definitions().rows)
    for table in (tables.stress_results(measured, BACKBONE), variants.matched(measured, BACKBONE)):
        assert {name for name in table.header if name[-1] in "↑↓"} <= defined.keys()
    assert {"S", "U", "record coverage", "record faithful", "clean preserved", "unsafe overwrites"} <= defined.keys()
    text = markdown(document(measured))
    assert text.index("Table I:") < text.index("Table II. What the tables measure") < text.index("Table III:")


def test_the_report_says_what_its_rows_do_not_show(measured: Measured) -> None:
    text = markdown(document(measured))
    beside, synthetic_only = text.split("## Table III")[1].split("## Figure 4")[0], "do not read prompts"
    for told in ("the same written policy that the guard implements", "not the intelligence of the backbone",
                 "rest on the nominal answer", synthetic_only, "with probability 0.6"):  # fmt: skip
        assert told in beside
    assert "monitor-only and no-utility-repair give the same numbers here" in text
    assert "no-memory changes nothing here" in text
    assert "What would move them" in text.split("## Records")[1]
    assert synthetic_only not in markdown(document(renamed(measured, "llama-9")))


def test_what_the_report_says_of_variants_that_are_alike_is_so(
    measured: Measured, bundles: Mapping[str, list[Bundle]]
) -> None:
    matched = {row[0]: row[2:] for row in variants.matched(measured, BACKBONE).rows}
    assert matched["monitor-only"] == matched["no-utility-repair"]
    assert matched["no-memory"] == matched[FULL]
    task = column(tables.stress_results(measured, BACKBONE), "Task")
    assert task["Direct"] == task["WirelessAgent++ + contract"]


def test_the_agent_without_nominal_answers_is_the_agent_that_has_no_tools_for_them(
    measured: Measured, suite: Suite, bundles: Mapping[str, list[Bundle]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wirelessopsagent, "nominal", lambda view: {})
    decided = run(suite.cases, build_method(FULL, proposer(BACKBONE, suite.cases, 5)), {}, lambda _: None)
    without = [without_nominal(*pair) for pair in zip(suite.cases, bundles[FULL], strict=True)]
    assert [bundle.answer for bundle in without] == [bundle.answer for bundle in decided]
    assert [replace(bundle, answer=None) for bundle in without] == [replace(bundle, answer=None) for bundle in decided]
    whole, own = tables.without_nominal_answers(measured, BACKBONE).rows
    outcomes = [judge(*pair) for pair in zip(suite.cases, decided, strict=True)]
    assert own[1] == f"{sum(o.score for o in outcomes) / len(outcomes):.3f}" < whole[1]
    assert own[-1] == share(sum(o.ops >= 0.8 for o in outcomes), len(outcomes))


def test_invalid_outputs_stand_beside_the_results(measured: Measured, suite: Suite) -> None:
    assert set(column(tables.stress_results(measured, BACKBONE), "Invalid").values()) == {"0 of 96"}
    nothing = [invalid_output(case.episode_id, "no answer") for case in suite.cases]
    rows = {(method, "gpt"): nothing for method in (*METHODS, *SANITY)}
    broken = tables.stress_results(measured_of(suite, rows), "gpt")
    assert set(column(broken, "Invalid").values()) == {"96 of 96"}


def test_a_synthetic_proposer_is_called_one_and_no_model(measured: Measured) -> None:
    opening = markdown(Document(document(measured).blocks[:2]))
    assert f"Synthetic proposers, not language models: {BACKBONE}. " in opening
    assert "not comparable with the published rows as results of models" in opening
    assert "nothing is tuned to table III" in opening
    rest = [line for line in markdown(document(measured)).splitlines() if line not in opening]
    assert not [line for line in rest if BACKBONE in line and "model" in line]
    unknown = replace(measured, synthetic=frozenset(), backbones=())
    assert "ynthetic" not in markdown(Document(document(unknown).blocks[:3]))


def test_the_report_says_on_what_and_how_it_was_measured(measured: Measured, suite: Suite) -> None:
    text = markdown(document(replace(measured, scorer="published")))
    for told in (suite.digest, "seed 5", "split final", "1.2.3", "Evaluator: corrected", "Scorer: published"):
        assert told in text
    assert column(tables.origins(measured), "generated") == dict.fromkeys(TASKS, "31")
    assert list(column(tables.origins(measured), "rows of files excluded").values()) == ["1", "0", "0"]


def test_table_i_counts_the_episodes(suite: Suite) -> None:
    table = tables.composition(suite.cases)
    assert column(table, "episodes")["Total"] == str(len(suite.cases)) == "96"
    assert column(table, "families")["Total"] == "32"
    for name in (*TASKS, *REFERENCES):
        cells = [int(cell) for cell in column(table, name).values()]
        of = [case for case in suite.cases if name in (case.sealed.item.task, case.sealed.reference)]
        assert cells[-1] == sum(cells[:-1]) == len(of)


def test_table_iv_counts_the_proposals_before_and_the_decisions_after(
    measured: Measured, bundles: Mapping[str, list[Bundle]], suite: Suite
) -> None:
    before, after, *_ = tables.repair(measured).rows
    decided = list(zip(suite.cases, bundles[FULL], strict=True))
    for row, stage in ((before, "before"), (after, "after")):
        pairs = [
            (case.sealed.reference == "APPLY", said == "APPLY")
            for case, bundle in decided
            for said in [bundle.action if stage == "after" or bundle.proposed is None else bundle.proposed.action]
        ]
        counts = [pairs.count(kind) for kind in ((True, True), (False, True), (True, False), (False, False))]
        assert list(row[2:6]) == [str(count) for count in counts]
        assert row[6:] == (
            share(counts[0], counts[0] + counts[2]),
            share(counts[1], counts[1] + counts[3]),
            share(counts[0] + counts[3], len(pairs)),
        )


def test_table_v_is_the_mean_over_tasks_and_a_dash_where_nothing_asks_for_apply(measured: Measured) -> None:
    table = tables.conditions(measured, BACKBONE, "corrected")
    outcomes = measured.of(FULL, BACKBONE)
    for domain in DOMAINS:
        of_tasks = [[o for o in outcomes if (o.domain, o.task) == (domain, task)] for task in TASKS]
        exact = [sum(o.exact for o in part) / len(part) for part in of_tasks]
        assert column(table, "Exact")[tables.DOMAIN[domain]] == f"{sum(exact) / 3:.3f}"
        asked = [[o.safe for o in part if o.reference == "APPLY"] for part in of_tasks]
        recalls = [sum(part) / len(part) for part in asked if part]
        recall = f"{sum(recalls) / len(recalls):.3f}" if recalls else "–"
        assert column(table, "Safe recall")[tables.DOMAIN[domain]] == recall
    assert column(table, "Safe recall")["Mixed evidence"] == column(table, "Safe utility")["Mixed evidence"] == "–"


def test_the_frozen_evaluators_artefact_is_counted(measured: Measured, suite: Suite) -> None:
    found = tables.artefact(measured, FULL, BACKBONE)
    conflicts = [case for case in suite.cases if case.sealed.domain == "conflict_provenance"]
    assert found.right + found.conflicts == len(conflicts)  # all that ask for APPLY get it
    assert (found.corrected, found.applied) == (0, 0)
    assert found.frozen > 0
    by_evaluator = [tables.conditions(measured, BACKBONE, kind) for kind in ("corrected", "frozen")]
    corrected, frozen = (float(column(table, "Unsafe")["Conflict/provenance"]) for table in by_evaluator)
    assert frozen > corrected
    assert f"{found.frozen} of {found.right} with {BACKBONE}" in markdown(document(measured))
    elsewhere = [o for o in measured.of("critic", BACKBONE, "frozen") if o.domain != "conflict_provenance"]
    told = {row[1]: row[2:] for row in tables.artefacts(measured).rows if row[0] == BACKBONE}
    assert told["CRITIC style"][-1] == f"{sum(o.unsafe for o in elsewhere)} of {len(elsewhere)}"
    assert tables.artefacts(measured).rows[-2:] == (
        ("published: GPT-5.4-mini", "CRITIC style", "22 of 40", "–", "0 of 80", "89 of 480"),
        ("published: GPT-5.4-mini", "WirelessOpsAgent", "39 of 40", "–", "0 of 80", "8 of 480"),
    )


def test_table_vi_shows_every_ablation_and_each_change_against_the_full_agent(measured: Measured) -> None:
    table = variants.matched(measured, BACKBONE)
    assert [row[0] for row in table.rows] == [FULL, *ABLATIONS]
    for variant in (FULL, *ABLATIONS):
        outcomes = measured.of(variant, BACKBONE)
        assert column(table, "Unsafe")[variant] == f"{sum(o.unsafe for o in outcomes) / len(outcomes):.3f}"
    full = {name: float(column(table, name)[FULL]) for name in ("Unsafe", "Macro F1", "Safe recall", "Safe utility")}
    for variant, metric, _, _, change, _, _ in variants.directions(measured, BACKBONE).rows:
        there = float(column(table, metric)[variant])
        assert float(change.replace("−", "-")) == pytest.approx(there - full[metric], abs=0.0011)


@pytest.mark.parametrize(
    ("name", "direction", "change", "held"),
    [
        ("macro_f1", "↓ falls", (-0.2, -0.3, -0.1), True),
        ("macro_f1", "↓ falls", (-0.2, -0.4, 0.01), False),
        ("macro_f1", "↓ falls", (0.2, 0.1, 0.3), False),
        ("unsafe_apply_rate", "↑ rises", (0.2, 0.1, 0.3), True),
        ("unsafe_apply_rate", "↑ rises", (0.0, 0.0, 0.0), False),
        ("macro_f1", "= stays", (0.011, 0.0, 0.02), True),
        ("macro_f1", "= stays", (-0.05, -0.06, -0.04), False),
        ("macro_f1", "not better", (0.0, 0.0, 0.0), True),
        ("macro_f1", "not better", (0.1, 0.0, 0.2), False),
        ("unsafe_apply_rate", "not better", (0.1, 0.0, 0.2), True),
        ("unsafe_apply_rate", "not better", (-0.1, -0.2, 0.0), False),
        ("macro_f1", "↓ falls", (math.nan, math.nan, math.nan), None),
    ],
)
def test_a_change_is_as_expected_only_where_its_interval_is(
    name: str, direction: variants.Direction, change: tuple[float, float, float], held: bool | None
) -> None:
    assert variants.as_expected(name, direction, Interval(*change)) is held


def test_every_published_change_goes_where_the_table_of_directions_says() -> None:
    for variant, expected in variants.DIRECTIONS.items():
        for name, direction in expected.items() if variant in published.TABLE_VI else ():
            change = published.TABLE_VI[variant][name] - published.TABLE_VI["full"][name]
            assert variants.as_expected(name, direction, Interval(change, change, change)), (variant, name)
    assert variants.DIRECTIONS.keys() == ABLATIONS.keys()


def test_gains_are_over_the_strongest_baseline_of_each_cell(measured: Measured) -> None:
    found = plotted.gains(measured, BACKBONE)
    for task in TASKS:
        for domain in DOMAINS:
            right = {
                method: [o.exact for o in measured.of(method, BACKBONE) if (o.task, o.domain) == (task, domain)]
                for method in METHODS
            }
            over = sum(right[FULL]) - max(sum(right[method]) for method in BASELINES)
            assert found[task][domain] == pytest.approx(100 * over / len(right[FULL]))
    first = tables.gain_table(measured, BACKBONE).rows[0]
    assert first[1] == f"{cells.points(found['WCHW']['schema_unit'])} (+28)"


def test_what_is_routed_sums_to_one_over_the_proposals_of_apply(measured: Measured) -> None:
    for domain, (n, shares) in plotted.routing(measured.of(FULL, BACKBONE)).items():
        asked = [o for o in measured.of(FULL, BACKBONE) if o.domain == domain and o.proposed == "APPLY"]
        assert n == len(asked) > 0
        assert sum(shares.values()) == pytest.approx(1.0)
        assert shares["APPLY"] == sum(o.action == "APPLY" for o in asked) / n


def test_confusion_is_the_mean_of_the_normalised_matrices(measured: Measured) -> None:
    one, other = measured.of("always-apply", BACKBONE), measured.of("always-block", BACKBONE)
    mean = plotted.mean_confusion([one, other])
    for row in mean:
        assert list(row) == [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]  # half all APPLY, half all HOLD


def test_survival_falls_from_one_and_is_what_the_rows_say(measured: Measured) -> None:
    outcomes = measured.of("critic", BACKBONE)
    curve = plotted.survival_curve(outcomes)
    assert curve[0] == 1.0
    assert all(left >= right for left, right in pairwise(curve))
    surviving, lost, *_ = tables.survivors(measured).rows
    assert surviving[1:5:3] == ("≥ 0.8", share(sum(o.ops >= 0.8 for o in outcomes), len(outcomes)))
    assert lost[1:5:3] == ("exactly 0", share(sum(o.ops == 0 for o in outcomes), len(outcomes)))


def test_records_are_counted_for_every_method_and_variant(measured: Measured) -> None:
    table = tables.records(measured)
    assert len(table.rows) == len(METHODS) + len(SANITY) + len(ABLATIONS)
    outcomes: Sequence[Outcome] = measured.of("no-normalizer", BACKBONE)
    assert column(table, "clean fields")["no-normalizer"] == str(sum(o.clean for o in outcomes))
    faithful = sum(o.covered and o.faithful for o in outcomes)
    assert column(table, "record faithful")["no-normalizer"] == f"{faithful / len(outcomes):.3f}"


def test_a_run_of_which_every_output_is_invalid_is_reported_with_dashes(suite: Suite, tmp_path: Path) -> None:
    nothing = [invalid_output(case.episode_id, "no answer") for case in suite.cases]
    broken = measured_of(suite, {(method, "gpt"): nothing for method in (*METHODS, *SANITY)})
    write(broken, tmp_path)
    before = tables.repair(broken).rows[0]
    assert before == ("gpt", "before repair", "0", "0", "0", "0", "–", "–", "–")
    assert all(row[1:] == ("0", *["–"] * 5) for row in tables.routes(broken).rows)
    assert column(tables.records(broken), "invalid")["Direct"] == str(len(suite.cases))
    assert "nan" not in re.findall(r"[a-z]+", (tmp_path / "report.md").read_text())


@pytest.mark.parametrize(
    ("value", "decimal", "percent", "difference", "points"),
    [
        (0.97249, "0.972", "97.2 %", "+0.972", "+1"),
        (-0.0001, "0.000", "0.0 %", "0.000", "+0"),
        (-12.5, "−12.500", "−1250.0 %", "−12.500", "−12.5"),
        (0.0, "0.000", "0.0 %", "0.000", "+0"),
        (math.nan, "–", "–", "–", "–"),
    ],
)
def test_numbers_are_printed_as_in_the_paper(
    value: float, decimal: str, percent: str, difference: str, points: str
) -> None:
    assert cells.decimal(value) == decimal
    assert cells.percent(value) == percent
    assert cells.difference(value) == difference
    assert cells.points(value) == points


class Texts(HTMLParser):
    """The texts of cells and paragraphs of a page, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        self.told.append("")

    def handle_endtag(self, tag: str) -> None:
        self.told.append("")

    def handle_data(self, data: str) -> None:
        if self.told:
            self.told[-1] += data


MARKUP = ("<b>", "</td>", "<script>", "&lt;", "&", "\\", "|", "\\|", "`", "*", "_", "](x)", "# ", '"', "'", "a", " b ")
ANY = st.lists(st.sampled_from(MARKUP) | st.characters(exclude_categories=("C", "Z")), max_size=8).map("".join)


@given(ANY, ANY)
def test_any_text_is_shown_and_never_obeyed(one: str, other: str) -> None:
    shown = Document((Heading(1, "T"), Paragraph(one), Table(("a", "b"), ((other, one),), one)))
    parsed = Texts()
    parsed.feed(page(shown, {}))
    assert {one, other} <= {*parsed.told, ""}, parsed.told
    assert parsed.tags <= {
        "html", "head", "meta", "title", "style", "body", "h1", "nav", "p", "div", "table", "caption", "thead", "tbody",
        "tr", "th", "td",
    }  # fmt: skip
    line = markdown(shown).splitlines()[-1]
    parts = re.split(r"(?<!\\)(?:\\\\)*\|", line)
    assert len(parts) == 4
    assert re.sub(r"\\([^a-z0-9\s])", r"\1", line) == f"| {' '.join(other.split())} | {' '.join(one.split())} |"


def test_a_page_wraps_long_texts_and_nothing_else() -> None:
    shown = page(Document((Heading(1, "T"), Table(("a", "b", "c"), (("x", "word " * 30, "y"),), "d"))), {})
    assert shown.count(' class="text"') == 2  # header and cell of one column
    assert re.search(r"td\.text \{[^}]*white-space: normal", shown)


def test_a_page_needs_nothing_else(reported: Path) -> None:
    text = (reported / "report.html").read_text()
    parsed = Texts()
    parsed.feed(text)
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in parsed.links)
    assert sum(link.startswith("data:") for link in parsed.links) == len(FIGURES)
    assert "script" not in parsed.tags
    assert "http" not in re.sub(r"base64,[\w+/=]+", "", text)
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_figures_are_png_and_svg_and_the_markdown_shows_them(reported: Path) -> None:
    text = (reported / "report.md").read_text()
    for name in FIGURES:
        assert (reported / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert b"<svg" in (reported / f"{name}.svg").read_bytes()[:2000]
        assert f"]({name}.png)" in text


def drawn_texts(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def test_figures_say_what_they_are_made_of_and_where_there_is_nothing(
    suite: Suite, bundles: Mapping[str, list[Bundle]]
) -> None:
    abstained = [replace(bundle, action="ABSTAIN") for bundle in bundles[FULL]]
    held = [replace(b, proposed=replace(b.proposed, action="HOLD")) for b in bundles[FULL] if b.proposed is not None]
    of_backbone = {BACKBONE: bundles[FULL], "gpt": abstained, "llama": held}
    three = measured_of(suite, {
        (method, name): decided if method == FULL else bundles[method]
        for name, decided in of_backbone.items() for method in METHODS
    })  # fmt: skip
    one = replace(three, backbones=(BACKBONE,))
    assert not {"ABSTAIN", figures.NOTHING_ROUTED} & drawn_texts(figures.routes(one))
    assert {"ABSTAIN", figures.NOTHING_ROUTED} <= drawn_texts(figures.routes(three))
    assert f"Mean over {BACKBONE} (synthetic proposer), gpt, llama" in drawn_texts(figures.confusion(three))
    assert len(tables.routes(three).rows) == 3 * len(DOMAINS)
    assert not [row for row in tables.routes(three).rows if "57 % HOLD" in row]
    assert ("Freshness/order", "HOLD", "57 %") in tables.published_routes().rows


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def test_a_report_from_stored_results_runs_nothing_again_and_is_the_same_bytes(
    small: Path, reported: Path, tmp_path: Path
) -> None:
    results = reported / "results"
    before = contents(results)
    report("--suite", small, "--backbone", BACKBONE, "--out", tmp_path / "again", "--results", results)
    assert contents(results) == before
    assert contents(tmp_path / "again") == contents(reported)


def test_a_stopped_report_goes_on_and_believes_what_is_stored(
    small: Path, reported: Path, suite: Suite, tmp_path: Path
) -> None:
    for path in (reported / "results").iterdir():
        (tmp_path / "results").mkdir(exist_ok=True)
        (tmp_path / "results" / path.name).write_bytes(path.read_bytes())
    cut = tmp_path / "results" / f"critic--{BACKBONE}.jsonl"
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    told = tmp_path / "results" / f"direct--{BACKBONE}.jsonl"
    head, *lines = told.read_text().splitlines()
    held = [json.dumps({**json.loads(line), "action": "HOLD"}) for line in lines]
    told.write_text("\n".join((head, *held)) + "\n")
    report("--suite", small, "--backbone", BACKBONE, "--out", tmp_path)
    assert sorted(cut.read_bytes().splitlines()) == sorted(whole.splitlines())
    holds = sum(case.sealed.reference == "HOLD" for case in suite.cases) / len(suite.cases)
    text = (tmp_path / "report.md").read_text()
    assert re.findall(r"\| Direct \|(?: [\d.]+ \[.*?\] \|){2} ([\d.]+) \[", text) == [f"{holds:.3f}"]


def test_what_cannot_be_reported_is_refused_in_one_line(small: Path, reported: Path, tmp_path: Path) -> None:
    other = tmp_path / "results"
    other.mkdir()
    file = reported / "results" / f"direct--{BACKBONE}.jsonl"
    head, *_ = file.read_text().splitlines()
    (other / file.name).write_text(json.dumps({**json.loads(head), "suite": "sha256:other"}) + "\n")
    for arguments, told in (
        (("--suite", small, "--out", tmp_path, "--backbone", "gpt"), "no backbone 'gpt'"),
        (("--suite", small, "--out", tmp_path, "--backbone", BACKBONE), "use another --results folder"),
        (("--suite", tmp_path, "--out", tmp_path), "manifest"),
    ):
        result = report(*arguments, code=2)
        assert (result.stdout, len(result.stderr.splitlines())) == ("", 1)
        assert told in result.stderr


def test_the_evaluator_of_a_report_is_that_of_its_tables(suite: Suite, bundles: Mapping[str, list[Bundle]]) -> None:
    rows = {(method, BACKBONE): bundles[method] for method in (*METHODS, *SANITY)}
    frozen = measure(suite, rows.items(), frozenset({BACKBONE}), "frozen", "strict", "1")
    unsafe = sum(
        judge(case, bundle, "frozen").unsafe for case, bundle in zip(suite.cases, bundles[FULL], strict=True)
    )
    assert unsafe > 0
    cell = column(tables.stress_results(frozen, BACKBONE), "Unsafe")["WirelessOpsAgent"]
    assert cell.startswith(share(unsafe, len(suite.cases)))
    assert "Evaluator: frozen" in markdown(document(frozen))


def test_cases_of_the_small_suite_cover_all_that_is_reported(suite: Suite) -> None:
    cases: tuple[Case, ...] = suite.cases
    assert {case.sealed.reference for case in cases} == set(REFERENCES)
    assert {(case.sealed.item.task, case.sealed.domain) for case in cases} == {(t, d) for t in TASKS for d in DOMAINS}
