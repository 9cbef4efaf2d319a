"""`wirelessops optbench show`: an episode's label with all that it follows from, and what methods made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from optbench_suites import suite as whole

from simulators.optbench.certificate import certify
from simulators.optbench.episode_account import account
from simulators.optbench.model import Case
from simulators.optbench.realisation import FAMILIES
from simulators.optbench.scoring.outcome import judge
from simulators.optbench.suite import load, subset, write

MAIN = (sys.executable, "-c", "from streams.cli import main; main()", "optbench")
CASES = whole().cases[::30]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("suite")
    write(subset(whole(), CASES), directory)
    return directory


@pytest.fixture(scope="module")
def results(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results")
    asked = ("--method", "direct", "--method", "wirelessopsagent", "--backbone", "synthetic-a")
    assert optbench("run", "--suite", suite, *asked, "--results", directory).returncode == 0
    return directory


def optbench(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )


def shown(*words: object) -> dict[str, Any]:
    result = optbench("show", *words, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sealed.family)
def test_an_account_says_why_an_episode_has_its_label(case: Case) -> None:
    told, verdict = account(case), certify(case.view)
    assert (told["reference"], told["predicate"]) == (case.sealed.reference, verdict.predicate)
    assert {name: tuple(cited) for name, cited in told["blocked"].items()} == dict(verdict.cites)
    assert told["symptom"] in {family.symptom for family in FAMILIES if family.name == case.sealed.family}
    assert told["guard"]["action"] == case.sealed.reference, "on the reference plan the guard decides as the judges"
    assert any(one["blocking"] for one in told["guard"]["violations"]) == (case.sealed.reference != "APPLY")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sealed.family)
def test_everything_that_was_done_is_shown_beside_an_observation_that_it_was_done_to(case: Case) -> None:
    told = account(case)["ledger"]
    assert [one["id"] for one in told] == [o["id"] for o in case.view["episode"]["observations"]]
    for exposure in case.sealed.facts.exposures:
        of_it = [one for one in told if (one["field"], one["source"]) == (exposure.field, exposure.source)]
        of_it = [one for one in of_it if (one["origin"] == "memory") == exposure.memory]
        assert of_it
        assert all(len(one["done"]) == len(exposure.changes) for one in of_it)
    limits = case.view["episode"]["contract"]["fields"]
    assert all(one["limit_ms"] == limits[one["field"]]["freshness_ms"] for one in told)


def test_a_page_shows_ledger_label_guard_and_what_methods_did(suite: Path, results: Path) -> None:
    for case in CASES[:6]:
        page = optbench("show", case.episode_id, "--suite", suite, "--results", results)
        assert (page.returncode, page.stderr) == (0, "")
        assert max(map(len, page.stdout.splitlines())) <= 80
        text = " ".join(page.stdout.split())
        for said in (
            case.episode_id, f"reference {case.sealed.reference}", case.sealed.family, "wirelessopsagent",
            f"the guard, on the reference plan: {case.sealed.reference}",
        ):  # fmt: skip
            assert said in text
        for outage in case.sealed.facts.outages:
            assert f"in outage: {outage.source}" in text
        for o in case.view["episode"]["observations"]:
            assert f"\n{o['id']} " in page.stdout


def test_stored_bundles_are_shown_as_they_are_judged(suite: Path, results: Path) -> None:
    from simulators.optbench.results import read

    for case in CASES[:6]:
        told = shown(case.episode_id, "--suite", suite, "--results", results)["bundles"]
        assert [one["method"] for one in told] == ["direct", "wirelessopsagent"]
        for one in told:
            _, bundles = read(results / f"{one['method']}--synthetic-a.jsonl")
            found = judge(case, bundles[case.episode_id])
            assert (one["action"], one["ops"], tuple(one["unsafe"])) == (found.action, found.ops, found.blockers)
            parts = sum(one[part] for part in ("decision", "utility", "state", "record")) / 4
            assert one["ops"] == (0 if found.blockers else pytest.approx(parts))


def test_results_of_another_suite_hold_nothing_of_an_episode(suite: Path, results: Path, tmp_path: Path) -> None:
    write(subset(load(suite), CASES[:2]), tmp_path)
    assert shown(CASES[0].episode_id, "--suite", tmp_path, "--results", results)["bundles"] == []
    page = optbench("show", CASES[0].episode_id, "--suite", tmp_path, "--results", results)
    assert "no results of this episode on this suite" in page.stdout


@pytest.mark.parametrize("typed", ["wob-", "nobody", "", "wob-\n\x1b", "wob-" + "0" * 500])
def test_an_unknown_episode_is_told_in_one_line_with_those_that_begin_like_it(suite: Path, typed: str) -> None:
    result = optbench("show", "--suite", suite, "--", typed)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "\x1b" not in result.stderr
    assert "wob-" in result.stderr


def test_the_nearest_are_those_that_share_most_of_their_beginning(suite: Path) -> None:
    known = CASES[7].episode_id
    result = optbench("show", known[:-3], "--suite", suite)
    assert f"the nearest are {known}, " in result.stderr


@pytest.mark.parametrize("content", [None, "[" * 5000, "notes\n"])
def test_results_that_cannot_be_read_are_told_in_one_line(suite: Path, tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "results"
    if content is not None:
        folder.mkdir()
        (folder / "x.jsonl").write_text(content)
    result = optbench("show", CASES[0].episode_id, "--suite", suite, "--results", folder)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
