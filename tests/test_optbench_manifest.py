"""A suite is taken for what its manifest pins, and for nothing else; what is malformed is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from optbench_suites import SEED, suite

from simulators.optbench import frozen
from simulators.optbench import suite as suites
from simulators.optbench.model import REFERENCES
from simulators.optbench.suite import ManifestError, Suite, assembled, load, subset, write
from streams.commands.answering import NotRun
from streams.commands.optbench_suites import SuiteOptions, suite_of

FILES = ("episodes.jsonl", "sealed.jsonl", "manifest.json")


@pytest.fixture(scope="module")
def part() -> Suite:
    """Six episodes."""
    return subset(suite(), suite().cases[::100])


@pytest.fixture
def written(part: Suite, tmp_path: Path) -> Path:
    write(part, tmp_path / "suite")
    return tmp_path / "suite"


def refused(directory: Path) -> str:
    with pytest.raises(ManifestError) as told:
        load(directory)
    assert len(str(told.value).splitlines()) == 1
    assert str(directory) in str(told.value)
    return str(told.value)


def rehashed(directory: Path) -> None:
    """What someone does who changes a suite and pins it anew."""
    documents = [[json.loads(line) for line in (directory / name).read_text().splitlines()] for name in FILES[:2]]
    told = json.loads((directory / FILES[2]).read_text())
    told["episodes"] = [
        {"id": view["episode_id"], "view": hashed(view), "sealed": suites._sha256(suites._canonical(of(part)))}
        for view, part in zip(*documents, strict=True)
    ]
    told["count"], told["digest"] = len(told["episodes"]), suites._digest(told)
    (directory / FILES[2]).write_text(json.dumps(told))


def hashed(document: Any) -> str:
    return suites._sha256(suites._canonical(document))


def of(document: Any) -> Any:
    """The sealed part as `load` reads it, where it can be read."""
    try:
        return suites.sealed_from(document)
    except Exception:
        return document


def changed(directory: Path, name: str, change: Callable[[Any], Any]) -> None:
    """The first document of a file, changed; in place or by what `change` gives."""
    text = (directory / name).read_text()
    first, rest = (text, "") if name == FILES[2] else text.split("\n", 1)
    document = json.loads(first)
    given = change(document)
    (directory / name).write_text(json.dumps(document if given is None else given) + "\n" + rest)


def test_a_part_of_a_suite_is_a_suite_that_counts_its_episodes(part: Suite, written: Path) -> None:
    read = load(written)
    assert (read.digest, read.manifest["count"]) == (part.digest, 6)
    assert read.digest == read.manifest["digest"] != suite().digest
    assert [case.episode_id for case in read.cases] == [case.episode_id for case in suite().cases[::100]]
    rehashed(written)
    assert load(written).digest == part.digest, "pinned anew, what was not changed is the same"


def test_the_digest_covers_all_that_results_depend_on_and_no_comment_in_a_source(part: Suite) -> None:
    told = part.manifest
    again = {
        name: assembled(part.cases, *values).digest
        for name, values in {
            "same": ("final", SEED, told["base"]),
            "split": ("development", SEED, told["base"]),
            "seed": ("final", SEED + 1, told["base"]),
            "base": ("final", SEED, {**told["base"], "WCNS": told["base"]["WCHW"] | {"development": {}}}),
        }.items()
    }
    again["episodes"] = assembled(part.cases[1:], "final", SEED, told["base"]).digest
    assert again.pop("same") == part.digest
    assert len({*again.values(), part.digest}) == 5
    assert Suite(part.cases, {**told, "generator": "sha256:0"}).digest == part.digest


@pytest.mark.parametrize("member", ["split", "seed", "base", "format", "count", "digest", "generator", "excluded"])
def test_a_manifest_without_a_member_or_with_another_value_of_it_is_refused(written: Path, member: str) -> None:
    whole = (written / FILES[2]).read_text()
    for value in (None, "x", [], {}, SEED + 1, -1, True, "development", [[[[]]]], {"WCHW": None}, [{"task": 1}]):
        changed(written, FILES[2], lambda told, value=value: told.update({member: value}))
        if not (member == "generator" and isinstance(value, str)) and not (member == "excluded" and value == []):
            refused(written)
        (written / FILES[2]).write_text(whole)
    changed(written, FILES[2], lambda told: told.pop(member))
    refused(written)
    (written / FILES[2]).write_text(whole)
    changed(written, FILES[2], lambda told: told.update({member + "s": 1}))
    refused(written)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "document", ["null", '"text"', "[]", "{}", "7", "[" * 5000, "[" * 500 + "]" * 500, "{", "\udcff", '{"a": NaN}']
)
def test_a_file_that_holds_another_document_is_refused(written: Path, name: str, document: str) -> None:
    lines = (written / name).read_bytes().splitlines(keepends=True)
    first = document.encode("utf-8", "surrogateescape") + b"\n"
    (written / name).write_bytes(first + (b"" if name == FILES[2] else b"".join(lines[1:])))
    refused(written)
    if name != FILES[2] and document not in ("{", "\udcff", '{"a": NaN}', "[" * 5000):
        try:
            rehashed(written)
        except Exception:
            return
        refused(written)


def test_no_episodes_or_one_that_is_there_twice_are_no_suite(part: Suite, tmp_path: Path) -> None:
    told = part.manifest
    for cases in ((), (part.cases[0],) * 5):
        write(assembled(cases, "final", SEED, told["base"]), tmp_path)
        refused(tmp_path)


PLACES: list[tuple[str, Callable[[Any], Any]]] = [
    (FILES[0], lambda d: d.update(hint="APPLY")),
    (FILES[0], lambda d: d.pop("task")),
    (FILES[0], lambda d: d["task"].update(question=None)),
    (FILES[0], lambda d: d["task"].update(more=1)),
    (FILES[0], lambda d: d.update(episode=[])),
    (FILES[0], lambda d: d["episode"].update(observations={})),
    (FILES[0], lambda d: d["episode"]["contract"].update(fields=None)),
    (FILES[0], lambda d: d["episode"].update(episode_id="other")),
    (FILES[0], lambda d: d["episode"]["observations"].pop()),
    (FILES[1], lambda d: d.update(note="more")),
    (FILES[1], lambda d: d["item"].update(note="more")),
    (FILES[1], lambda d: d["facts"].update(note="more")),
    (FILES[1], lambda d: d.pop("blocked")),
    (FILES[1], lambda d: d.update(blocked=None)),
    (FILES[1], lambda d: d.update(blocked=[3])),
    (FILES[1], lambda d: d.update(domain="other")),
    (FILES[1], lambda d: d.update(family=3)),
    (FILES[1], lambda d: d.update(item=None)),
    (FILES[1], lambda d: d["item"].update(plan=None)),
    (FILES[1], lambda d: d["item"].update(answer="text")),
    (FILES[1], lambda d: d["item"].update(observed={"x": [1]})),
    (FILES[1], lambda d: d["item"].update(task="WCXX")),
    (FILES[1], lambda d: d["facts"].update(exposures=[None])),
    (FILES[1], lambda d: d["facts"].update(exposures="text")),
    (FILES[1], lambda d: d["facts"]["exposures"][0].update(parents=[["one"]])),
    (FILES[1], lambda d: d.update(reference="ABSTAIN")),
    (FILES[1], lambda d: d.update(reference=next(r for r in REFERENCES if r != d["reference"]))),
]


@pytest.mark.parametrize(("name", "change"), PLACES)
def test_what_is_malformed_is_refused_even_where_it_is_pinned_anew(
    written: Path, name: str, change: Callable[[Any], Any]
) -> None:
    changed(written, name, change)
    refused(written)
    try:
        rehashed(written)
    except Exception:
        return
    refused(written)


def test_a_whole_suite_is_composed_as_the_rules_say(tmp_path: Path) -> None:
    whole = suite()
    applied = [case for case in whole.cases if case.sealed.reference == "APPLY"]
    more = [case for case in suite("final", SEED + 1).cases if case.sealed.reference == "APPLY"]
    held = [case for case in whole.cases if case not in applied]
    write(assembled([*applied, *more, *held[:200]], "final", SEED, whole.manifest["base"]), tmp_path)
    assert "composed" in refused(tmp_path)


def test_labels_of_another_version_are_those_of_its_files(written: Path) -> None:
    changed(written, FILES[2], lambda told: told.update(generator="sha256:another"))
    changed(written, *PLACES[-1])
    rehashed(written)
    assert load(written).manifest["generator"] == "sha256:another"


# the frozen suites


@pytest.mark.parametrize(("split", "seed"), sorted(frozen.FROZEN))
def test_a_suite_is_built_as_it_is_frozen(split: Any, seed: int) -> None:
    built = suite(split, seed)
    assert frozen.content(built) == frozen.FROZEN[split, seed], (
        "`python -m simulators.optbench.frozen` prints the table for simulators/optbench/frozen.py"
    )


def test_only_whole_suites_of_generated_items_are_held_against_the_frozen_ones(part: Suite) -> None:
    whole = suite()
    assert frozen.fault(whole, {}) is None
    assert frozen.fault(whole, {("final", SEED): frozen.content(whole)}) is None
    differs = frozen.fault(whole, {("final", SEED): "sha256:0"})
    assert differs is not None
    assert "sha256:0" in differs
    assert frozen.content(whole) in differs
    assert frozen.fault(part, {("final", SEED): "sha256:0"}) is None
    of_files = {**whole.manifest, "base": {"WCNS": {"final": {"file": 1, "generated": 199}}}}
    assert frozen.fault(Suite(whole.cases, of_files), {("final", SEED): "sha256:0"}) is None


def test_a_suite_that_is_built_otherwise_than_frozen_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    held_against = frozen.fault
    monkeypatch.setattr(suites, "build", lambda *_: suite())
    monkeypatch.setattr(frozen, "fault", lambda built: held_against(built, {("final", SEED): "sha256:0"}))
    with pytest.raises(NotRun, match="frozen as sha256:0") as told:
        suite_of(SuiteOptions(None, None, None, None))
    assert len(str(told.value).splitlines()) == 1


def test_what_is_frozen_is_what_methods_see_and_the_reference(part: Suite) -> None:
    first, *rest = part.cases
    relabelled = replace(first, sealed=replace(first.sealed, reference="ABSTAIN"))
    noted = replace(first, view={**first.view, "hint": 1})
    sealed = replace(first, sealed=replace(first.sealed, family="another name"))
    found = [
        frozen.content(assembled(cases, "final", SEED, part.manifest["base"]))
        for cases in (part.cases, (relabelled, *rest), (noted, *rest), rest, part.cases[::-1], (sealed, *rest))
    ]
    assert len(set(found)) == 5
    assert found[0] == found[5]
