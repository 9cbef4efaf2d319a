"""`wirelessops optbench audit`: what it says of a suite that holds, and that each thing it looks for would be found."""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import runpy
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from optbench_suites import suite as whole
from typer.testing import CliRunner

from simulators.optbench import oracle
from simulators.optbench.agents import Backbone, Bundle
from simulators.optbench.audit.checks import CHECKS
from simulators.optbench.audit.claims import composition, hard_negatives
from simulators.optbench.audit.deciding import Bench
from simulators.optbench.audit.evidence import evidence_mutations
from simulators.optbench.audit.isolation import imports, objects, runtime, source_of
from simulators.optbench.audit.labels import LABELS, label_mutations
from simulators.optbench.audit.leaks import LEAKS, POSITION, leaks_in, seeded
from simulators.optbench.audit.shortcuts import shortcuts
from simulators.optbench.audit.strip import EVIDENCE, strip, strip_equality
from simulators.optbench.audit.subject import Subject
from simulators.optbench.audit.sufficiency import evidence_sufficiency
from simulators.optbench.candidates import case_of, scene_of
from simulators.optbench.model import REFERENCES, Case, Facts, Sealed
from simulators.optbench.realisation import FAMILIES
from simulators.optbench.suite import subset, write
from streams.cli import app
from streams.commands import optbench_audit
from streams.commands.optbench_audit import SeededLeak
from streams.commands.optbench_suites import SuiteOptions

NOTHING_SAID = SuiteOptions(None, None, None, None)
STRENGTHS = {"everywhere": (1.0, None), "in a tenth of the items": (0.1, None), "in one family": (1.0, "stale_primary")}


@cache
def subject(step: int = 15) -> Subject:
    """Every so-manieth episode of the final suite; 15 meets all tasks, actions and the family that leaks."""
    return Subject(whole().cases[::step], 0)


def few() -> Subject:
    """Two episodes, and of those behind: some of the tenth of items that leak, and some of the family that does."""
    first, behind = whole().cases[:2], whole().cases[2:]
    tenth = [case for case in behind if leaks_in(case.sealed, 0.1, None)][:2]
    family = [case for case in behind if leaks_in(case.sealed, 1.0, "stale_primary")][:2]
    return Subject(sorted([*first, *tenth, *family], key=lambda case: case.episode_id), 0)


def one_of_each_action() -> Subject:
    return Subject([next(c for c in whole().cases if c.sealed.reference == action) for action in REFERENCES], 0)


# the shipped suite


def test_no_label_of_any_kind_changes_a_view_of_the_whole_suite() -> None:
    check = label_mutations(Subject(whole().cases, 0), methods={})
    assert check.passed, check.failures[:5]
    assert set(LABELS) == {"stress name", "reference action", "materiality flag", "gold answer", "hidden order"}
    assert check.counts["mutations"] == 600 * 5


def test_no_label_changes_what_a_method_asks_or_decides() -> None:
    check = label_mutations(subject())
    assert check.passed, check.failures[:5]
    assert check.counts["decisions"] == len(subject().cases) * 8


def test_the_evidence_alone_gives_every_label_of_the_whole_suite() -> None:
    check = evidence_sufficiency(Subject(whole().cases, 0))
    assert check.passed, check.failures[:5]
    assert check.counts["reproduced"] == 600


def test_every_other_check_passes_over_a_part_of_the_suite() -> None:
    for name in sorted(CHECKS.keys() - {"label-mutations", "evidence-sufficiency"}):
        check = CHECKS[name](subject(20))
        assert check.name == name
        assert check.passed, check.failures[:5]


def test_the_methods_are_asked_something_that_they_can_decide() -> None:
    decided = Bench().decide(whole().cases[0].view)
    bundles = {name: orjson.loads(one.bundle) for name, one in decided.items()}
    assert all(bundle["invalid"] is None and bundle["action"] for bundle in bundles.values())
    assert bundles["direct"]["action"] == "APPLY"
    assert orjson.loads(decided["direct"].prompts)


# leaks


@pytest.mark.parametrize("strength", sorted(STRENGTHS))
@pytest.mark.parametrize("kind", sorted(LEAKS))
def test_a_leak_that_is_planted_is_caught_by_the_check_that_should(kind: str, strength: str) -> None:
    leaking = seeded(few(), kind, *STRENGTHS[strength])
    assert not strip_equality(leaking).passed
    assert label_mutations(leaking, methods={}).passed == (kind == POSITION), "a place is in no view"


@pytest.mark.parametrize("kind", ["position", "time-base"])
def test_a_leak_in_every_episode_is_a_shortcut_too(kind: str) -> None:
    assert not shortcuts(seeded(subject(5), kind)).passed


def test_a_name_or_a_time_that_comes_of_the_facts_is_a_leak_though_no_label_is_in_it() -> None:
    """A hash of what was done commits to it: whoever can guess the facts can check the guess."""

    def named_by_facts(sealed: Sealed) -> Case:
        case = case_of(sealed)
        name = "wob-" + hashlib.sha256(orjson.dumps(sealed.facts)).hexdigest()[:16]
        return replace(case, view={**case.view, "episode_id": name})

    cases = sorted((named_by_facts(c.sealed) for c in few().cases), key=lambda c: c.episode_id)
    leaking = Subject(cases, 0, named_by_facts)
    assert len([f for f in strip_equality(leaking).failures if "still differs" in f]) == len(cases)
    assert any("hidden order" in failure for failure in label_mutations(leaking).failures)
    assert shortcuts(leaking).passed, "no statistic sees a hash: it supplements strip equality"


def test_a_spelling_that_tells_of_the_stress_elsewhere_is_found_inside_evidence() -> None:
    def spelled(sealed: Sealed) -> Case:
        case = case_of(sealed)
        episode = case.view["episode"]
        if sealed.reference != "RETRY":
            return case
        told = [{**o, "unit": "1"} if o["unit"] is None else o for o in episode["observations"]]
        return replace(case, view={**case.view, "episode": {**episode, "observations": told}})

    leaking = Subject([spelled(case.sealed) for case in few().cases], 0, spelled)
    assert any("the unit of" in failure for failure in strip_equality(leaking).failures)


View = dict[str, Any]


def _first(view: View, **members: Any) -> View:
    """A view with members of the first report from a source that tells of several changed."""
    first, *rest = view["episode"]["observations"]
    return _observing(view, [{**first, **members}, *rest])


def _observing(view: View, observations: list[View]) -> View:
    return {**view, "episode": {**view["episode"], "observations": observations}}


def _each(view: View, change: Callable[[View], View]) -> View:
    return _observing(view, [change(one) for one in view["episode"]["observations"]])


def _asking(view: View, change: Callable[[str], str]) -> View:
    return {**view, "task": {**view["task"], "question": change(view["task"]["question"])}}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


LOOKS_LIKE_A = "\u0430"  # Cyrillic

SUBTLE: Mapping[str, Callable[[View], View]] = {
    "a unit spelled otherwise": lambda v: _each(v, lambda o: {**o, "unit": "1"} if o["unit"] is None else o),
    "a blank behind a unit": lambda v: _first(v, unit=f"{v['episode']['observations'][0]['unit']} "),
    "a letter of a source that looks alike": lambda v: _each(
        v, lambda o: {**o, "source": o["source"].replace("a", LOOKS_LIKE_A)}
    ),
    "a letter of a name that looks alike": lambda v: _each(
        v, lambda o: {**o, "name": o["name"].replace("a", LOOKS_LIKE_A)}
    ),
    "whole numbers written with .0": lambda v: _each(
        v, lambda o: {**o, "value": float(o["value"])} if _is_number(o["value"]) else o
    ),
    "the last digits of values": lambda v: _each(
        v, lambda o: {**o, "value": o["value"] * (1 + 1e-13)} if _is_number(o["value"]) else o
    ),
    "blanks behind the question": lambda v: _asking(v, lambda text: text + "  "),
    "a letter of the question that looks alike": lambda v: _asking(v, lambda text: text.replace("a", LOOKS_LIKE_A, 1)),
    "numbering from o2": lambda v: _each(v, lambda o: {**o, "id": f"o{int(o['id'][1:]) + 1}"}),
    "delays longer by 1 ms": lambda v: _each(v, lambda o: {**o, "ingest_time_ms": o["ingest_time_ms"] + 1}),
    "the delay of what is computed": lambda v: _each(
        v, lambda o: {**o, "ingest_time_ms": o["ingest_time_ms"] + 1} if o["parents"] else o
    ),
    "a report that is there twice": lambda v: _observing(
        v, [*v["episode"]["observations"], {**v["episode"]["observations"][0], "id": "o99"}]
    ),
    "a member that may be left out": lambda v: _first(v, note=None),
    "the order of members of a report": lambda v: _each(v, lambda o: dict(reversed(o.items()))),
    "the order of reports": lambda v: _observing(v, v["episode"]["observations"][::-1]),
    "the order of parents": lambda v: _each(v, lambda o: {**o, "parents": o["parents"][::-1]}),
    "steps of versions": lambda v: _each(v, lambda o: {**o, "version": 2 * o["version"]}),
}
"""What its planter hopes that nobody looks at → a view that says so."""

OF_SEVERAL_REPORTS = ("the delay of what is computed", "the order of parents")
"""Of these strip equality does not know what is usual."""


@pytest.mark.parametrize("what", sorted(SUBTLE))
def test_a_leak_inside_evidence_is_caught_though_it_reads_no_label(what: str) -> None:
    """It is planted where the facts, and not the labels, give some action: no label mutation can move it."""

    def render(sealed: Sealed) -> Case:
        case = case_of(sealed)
        leaks = oracle.judge(sealed.item, sealed.facts).action in ("HOLD", "ESCALATE")
        return replace(case, view=SUBTLE[what](dict(case.view))) if leaks else case

    cases = sorted((render(c.sealed) for c in one_of_each_action().cases), key=lambda case: case.episode_id)
    leaking = Subject(cases, 0, render)
    assert label_mutations(leaking, methods={}).passed
    caught = {check.name for check in (strip_equality(leaking), evidence_mutations(leaking)) if not check.passed}
    wanted = {"evidence-mutations"} if what in OF_SEVERAL_REPORTS else {"evidence-mutations", "strip-equality"}
    assert caught >= wanted


def test_a_mark_on_the_items_of_one_action_is_a_shortcut() -> None:
    """Of an item's own text, strip equality says nothing: it is the same under every stress."""

    def marked(case: Case) -> Case:
        if case.sealed.reference != "RETRY":
            return case
        item = replace(case.sealed.item, question=case.sealed.item.question + " ")
        return case_of(replace(case.sealed, item=item))

    cases = sorted(map(marked, subject(5).cases), key=lambda case: case.episode_id)
    assert not shortcuts(Subject(cases, 0)).passed


def test_what_is_stripped_is_what_is_declared() -> None:
    item = whole().cases[0].sealed.item
    view = whole().cases[0].view
    first, *rest = view["episode"]["observations"]
    for name in first:
        changed = {**view, "episode": {**view["episode"], "observations": [{**first, name: "other"}, *rest]}}
        assert (strip(changed) == strip(view)) == (name in EVIDENCE), name
    quiet = {**view, "episode": {**view["episode"], "observations": [], "sources": {}}}
    assert strip(quiet) == strip(view)
    by_family = {strip(case_of(Sealed(item, f.name, f.domain, facts, "", frozenset())).view)
                 for f in FAMILIES if (facts := f.realise(scene_of(item, f, 0))) is not None}  # fmt: skip
    assert by_family == {strip(view)}


# an audit that were blind


@pytest.mark.parametrize("what", ["the age of", "that '", "the outage of", "the terms of"])
def test_evidence_that_a_view_does_not_show_fails_the_positive_control(what: str) -> None:
    """A maker that shows the same whatever it is told of that kind of fact."""
    shown = {case.sealed.item.item_id: case for case in subject(60).cases}
    blind = Subject(subject(60).cases, 0, lambda sealed: shown[sealed.item.item_id])
    check = evidence_mutations(blind)
    assert check.counts["unseen"] == check.counts["mutations"] > 0
    assert any(what in failure for failure in check.failures) or not any(c.sealed.facts.outages for c in blind.cases)


def test_a_label_that_the_evidence_does_not_bear_out_fails_where_it_should() -> None:
    first, *rest = subject(60).cases
    wrong = "HOLD" if first.sealed.reference != "HOLD" else "RETRY"
    relabelled = Subject([replace(first, sealed=replace(first.sealed, reference=wrong)), *rest], 0)
    assert not CHECKS["labels"](relabelled).passed
    assert not evidence_sufficiency(relabelled).passed


def test_an_apply_without_anything_irregular_and_a_wrong_composition_fail() -> None:
    applied = next(case for case in whole().cases if case.sealed.reference == "APPLY")
    assert not hard_negatives(Subject([replace(applied, sealed=replace(applied.sealed, facts=Facts(())))], 0)).passed
    swapped = [*whole().cases[1:], whole().cases[1]]
    assert not composition(Subject(swapped, 0)).passed


# methods that cheat


@dataclass
class Cheat:
    """An agent that does something on the side."""

    aside: Callable[[], Any]
    name: str = "cheat"

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        try:
            self.aside()
        except Exception:
            return Bundle(view["episode_id"], "HOLD")
        return Bundle(view["episode_id"], "APPLY")


def method(aside: Callable[[], Any]) -> Mapping[str, Callable[[str, Backbone], Cheat]]:
    return {"cheat": lambda name, backbone: Cheat(aside)}


def test_a_method_that_reads_the_sealed_part_is_told_though_it_hides_the_error() -> None:
    def reads() -> object:
        frame = sys._getframe()
        while "case" not in frame.f_locals:
            assert frame.f_back is not None
            frame = frame.f_back
        return frame.f_locals["case"].sealed.reference

    check = runtime(one_of_each_action(), method(reads))
    assert any("`reference` of the sealed part" in failure for failure in check.failures)
    assert runtime(one_of_each_action(), method(lambda: None)).passed


def test_a_method_that_asks_the_oracle_is_told() -> None:
    sealed = whole().cases[0].sealed
    check = runtime(one_of_each_action(), method(lambda: oracle.judge(sealed.item, sealed.facts)))
    assert any("simulators.optbench.oracle.judge ran" in failure for failure in check.failures)


def _by_a_frame_of_an_error() -> object:
    try:
        raise ValueError
    except ValueError as error:
        return error.__traceback__ and error.__traceback__.tb_frame.f_back


def _in_a_thread() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("aside", "why"),
    [
        (lambda: importlib.import_module("simulators.optbench.oracle").judge(None, None), "oracle.judge ran"),
        (lambda: runpy.run_module("colorsys"), "exec"),
        (gc.get_objects, "gc.get_objects"),
        (lambda: Path("sealed.jsonl").read_bytes(), "open sealed.jsonl"),
        (lambda: os.listdir("."), "os.listdir"),
        (lambda: sys._getframe(), "sys._getframe"),
        (_by_a_frame_of_an_error, "object.__getattr__ tb_frame"),
        (_in_a_thread, "a thread started"),
        (lambda: sys.setprofile(None), "sys.setprofile"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_method_that_reaches_for_what_it_was_not_handed_is_told(aside: Callable[[], Any], why: str) -> None:
    check = runtime(one_of_each_action(), method(aside))
    assert any(why in failure for failure in check.failures), check.failures


def test_a_method_that_cheats_when_it_is_made_is_told() -> None:
    def make(name: str, backbone: Backbone) -> Cheat:
        gc.get_objects()
        return Cheat(lambda: None)

    assert runtime(one_of_each_action(), {"cheat": make}).failures == ("while methods were made: gc.get_objects",)


def test_a_method_that_decides_by_a_label_beside_the_view_is_told_by_which() -> None:
    def decide(view: Mapping[str, Any]) -> Bundle:
        frame = sys._getframe()
        while "case" not in frame.f_locals:
            assert frame.f_back is not None
            frame = frame.f_back
        return Bundle(view["episode_id"], frame.f_locals["case"].sealed.reference)

    def make(name: str, backbone: Backbone) -> Cheat:
        cheat = Cheat(lambda: None)
        cheat.decide = decide  # type: ignore[method-assign]
        return cheat

    failures = label_mutations(subject(60), {"cheat": make}).failures
    assert any("reference action changes what cheat decides" in failure for failure in failures)
    assert not any("stress name" in failure for failure in failures)


def test_a_method_that_holds_a_sealed_part_anywhere_is_told_and_by_which_way() -> None:
    sealed = whole().cases[0].sealed
    hidden = {"deep": [(1, {"er": sealed})]}
    check = objects(one_of_each_action(), method(lambda: hidden))
    assert any("cheat reaches a Sealed by Cheat > " in failure for failure in check.failures)
    assert objects(one_of_each_action(), method(lambda: None)).passed


def test_an_import_of_the_sealed_side_is_found_however_far_away() -> None:
    def longer(module: str) -> str | None:
        source = source_of(module)
        if module == "simulators.optbench.replies" and source is not None:
            return source + "\ndef peek() -> None:\n    from simulators.optbench.suite import build\n"
        return source

    assert imports(subject()).passed
    check = imports(subject(), longer)
    assert any(one.startswith("simulators.optbench.oracle, which ") for one in check.failures)
    assert any(one.startswith("simulators.optbench.suite, which simulators.optbench.replies") for one in check.failures)


# the command


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_an_audit_says_what_was_checked_and_fails_where_a_claim_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = subset(whole(), few().cases[:4])
    monkeypatch.setattr(optbench_audit, "suite_of", lambda options: part)
    assert optbench_audit.audit(NOTHING_SAID) == 0
    lines = told(capsys).splitlines()
    assert len(lines) == len(CHECKS) + 1
    assert lines[-1] == f"{len(CHECKS)} of {len(CHECKS)} checks pass"
    assert "4 episodes of" in lines[0]
    first = part.cases[0]
    wrong = "HOLD" if first.sealed.reference != "HOLD" else "RETRY"
    relabelled = replace(first, sealed=replace(first.sealed, reference=wrong))
    monkeypatch.setattr(optbench_audit, "suite_of", lambda options: replace(part, cases=(relabelled, *part.cases[1:])))
    assert optbench_audit.audit(NOTHING_SAID) == 1
    assert f"labels fails: {first.episode_id}: its label is {wrong}" in told(capsys)


def test_a_suite_from_a_folder_is_audited_into_one_document_and_a_leak_names_its_check(tmp_path: Path) -> None:
    write(subset(whole(), few().cases[:4]), tmp_path)
    asked = ["optbench", "audit", "--suite", str(tmp_path), "--json"]
    clean = CliRunner().invoke(app, asked)
    assert clean.exit_code == 0, clean.output
    document = orjson.loads(clean.stdout)
    assert document["format"] == "wirelessops.optbench-audit/1"
    assert [check["name"] for check in document["checks"]] == list(CHECKS)
    assert document["passed"]
    leaking = CliRunner().invoke(app, [*asked, "--seed-leak", "time-base", "--leak-share", "0.9"])
    assert leaking.exit_code == 1
    document = orjson.loads(leaking.stdout)
    assert document["seeded_leak"] == {"kind": "time-base", "share": 0.9, "family": None}
    assert {"label-mutations", "strip-equality"} <= {one["name"] for one in document["checks"] if not one["passed"]}


@pytest.mark.parametrize(
    ("leak", "why"),
    [
        (SeededLeak("whisper"), "no leak 'whisper': note, "),
        (SeededLeak("note", 0.0), "--leak-share is a share above 0"),
        (SeededLeak("note", None, "nobody"), "no family 'nobody': "),
        (SeededLeak(None, 0.5), "--seed-leak says which"),
    ],
)
def test_a_leak_that_is_none_is_refused_in_a_line(
    leak: SeededLeak, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert optbench_audit.audit(NOTHING_SAID, leak=leak) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("broken", ["episodes.jsonl", "manifest.json", "sealed.jsonl"])
def test_a_folder_that_is_no_suite_is_refused_in_a_line(tmp_path: Path, broken: str) -> None:
    write(subset(whole(), whole().cases[::200]), tmp_path)
    (tmp_path / broken).write_bytes(b'{"half a')
    result = CliRunner().invoke(app, ["optbench", "audit", "--suite", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert str(tmp_path) in result.stderr


def test_the_level_can_be_reached_by_the_permutations_there_are() -> None:
    from simulators.optbench.audit.shortcuts import CONFIRMING, LEVEL, PERMUTATIONS, SUSPECT, TARGETS

    assert 1 / (1 + CONFIRMING) < LEVEL / len(TARGETS) < SUSPECT
    assert 1 / (1 + PERMUTATIONS) < SUSPECT
