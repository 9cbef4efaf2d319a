"""The suite: 600 of 7,680, exactly composed, pinned, and with no label in what a method sees."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from optbench_suites import SEED, WIRELESSBENCH, suite

from simulators.optbench import candidates as making
from simulators.optbench.base.anchors import anchors
from simulators.optbench.candidates import ANCHORS_PER_FAMILY, BuildError, candidates
from simulators.optbench.certificate import certify
from simulators.optbench.certificate_ledger import Field, Ledger, Observation, read
from simulators.optbench.certificate_units import dimension
from simulators.optbench.model import DOMAINS, TASKS, Outage, Verdict
from simulators.optbench.oracle import judge
from simulators.optbench.realisation import FAMILIES
from simulators.optbench.scoring.outcome import immaterial_disagreements
from simulators.optbench.selection import QUOTAS, select
from simulators.optbench.suite import ManifestError, build, load, write


@pytest.fixture(scope="module")
def all_candidates() -> list[making.Sealed]:
    return list(candidates(anchors(SEED, None).final, SEED))


def test_there_are_7680_candidates_of_32_families_and_the_judges_agree_on_all(
    all_candidates: list[making.Sealed],
) -> None:
    assert len(FAMILIES) == 32
    assert len(all_candidates) == 7680 == 32 * len(TASKS) * ANCHORS_PER_FAMILY
    per_family = Counter((c.item.task, c.family) for c in all_candidates)
    assert set(per_family.values()) == {ANCHORS_PER_FAMILY}


def test_the_composition_is_the_published_one() -> None:
    cases = [case.sealed for case in suite().cases]
    assert len(cases) == 600
    found = Counter((c.domain, c.reference) for c in cases)
    assert found == {(domain, action): n for domain, row in QUOTAS.items() for action, n in row.items()}
    assert Counter(c.reference for c in cases) == {"APPLY": 200, "HOLD": 100, "RETRY": 100, "ESCALATE": 200}
    assert Counter((c.item.task, c.domain) for c in cases) == dict.fromkeys(
        ((task, domain) for task in TASKS for domain in DOMAINS), 40
    )
    assert len({(c.item.task, c.item.item_id) for c in cases}) == 600
    assert {c.family for c in cases} == {family.name for family in FAMILIES}


def test_every_apply_is_a_hard_negative() -> None:
    """Something was done to its evidence, and it shows: not every field is told as its primary would tell it."""
    for case in suite().cases:
        if case.sealed.reference == "APPLY":
            facts = case.sealed.facts
            assert facts.outages or any(e.changes or e.memory for e in facts.exposures), case.sealed.family


Seen = Callable[[Ledger, Observation], bool]


def _names(ledger: Ledger, o: Observation) -> int:
    return len(ledger.bound[o["id"]])


def _any_field(test: Callable[[Ledger, Field, Observation], bool]) -> Seen:
    """True where an observation is of one field, and `test` holds of both."""
    return lambda ledger, o: _names(ledger, o) == 1 and test(ledger, ledger.bound[o["id"]][0], o)


def _rivals(ledger: Ledger, o: Observation) -> list[Observation]:
    """Other live reports of one source under one name."""
    return [
        r for i, r in ledger.held.items()
        if i != o["id"] and {i, o["id"]} <= ledger.live and (r["source"], r["name"]) == (o["source"], o["name"])
    ]  # fmt: skip


def _old(ledger: Ledger, f: Field, o: Observation) -> bool:
    return o["id"] in ledger.live and bool(ledger.t - o["event_time_ms"] > f.limit_ms)


def _foreign_unit(ledger: Ledger, f: Field, o: Observation) -> bool:
    return bool(o["unit"]) and dimension(o["unit"]) not in (None, dimension(f.unit))


def _no_unit(ledger: Ledger, f: Field, o: Observation) -> bool:
    return o["unit"] is None and f.type == "number" and f.unit != "1"


def _schema(ledger: Ledger, f: Field, o: Observation) -> bool:
    return f.schemas is not None and o["schema"] not in f.schemas


def _dangles(ledger: Ledger, o: Observation) -> bool:
    return not ledger.held.keys() >= set(o["parents"])


IRREGULAR: dict[str, Seen] = {
    "no value": lambda ledger, o: o["quality"] != "good",
    "a memory": lambda ledger, o: o["origin"] == "memory",
    "a parent that is not there": _dangles,
    "a name of two fields": lambda ledger, o: _names(ledger, o) > 1,
    "a name of no field": lambda ledger, o: _names(ledger, o) == 0,
    "another spelling or alias": _any_field(lambda ledger, f, o: o["name"] != f.name),
    "a schema not accepted": _any_field(_schema),
    "a unit of another dimension": _any_field(_foreign_unit),
    "another unit of the dimension": _any_field(
        lambda ledger, f, o: o["unit"] not in (None, f.unit) and dimension(o["unit"]) == dimension(f.unit)
    ),
    "no unit": _any_field(_no_unit),
    "a unit unheard of": _any_field(lambda ledger, f, o: bool(o["unit"]) and dimension(o["unit"]) is None),
    "too old": _any_field(_old),
    "an older event of a higher version": lambda ledger, o: any(
        r["event_time_ms"] > o["event_time_ms"] and r["version"] < o["version"] for r in _rivals(ledger, o)
    ),
    "an older event that arrives later": lambda ledger, o: any(
        r["event_time_ms"] > o["event_time_ms"] and r["ingest_time_ms"] < o["ingest_time_ms"]
        for r in _rivals(ledger, o)
    ),
    "two reports of one instant": lambda ledger, o: any(
        r["event_time_ms"] == o["event_time_ms"] for r in _rivals(ledger, o)
    ),
    "anything wrong with the load": _any_field(
        lambda ledger, f, o: not f.critical and (
            o["quality"] != "good" or _dangles(ledger, o)
            or any(test(ledger, f, o) for test in (_schema, _foreign_unit, _no_unit, _old))
        )
    ),
    "an outage": lambda ledger, o: bool(ledger.out),
}  # fmt: skip


@pytest.mark.parametrize("kind", IRREGULAR)
def test_no_kind_of_irregularity_gives_the_label_away(kind: str) -> None:
    """Paper, section III: no shortcut. Each kind shows in episodes to apply, and in episodes not to."""
    found = Counter(
        case.sealed.reference
        for case in suite().cases
        if (ledger := read(case.view["episode"])) and any(IRREGULAR[kind](ledger, o) for o in ledger.held.values())
    )
    assert found["APPLY"] >= 3
    assert found.total() - found["APPLY"] >= 3
    assert max(found.values()) <= 0.8 * found.total()


def test_what_the_frozen_evaluator_takes_for_a_conflict_shows_where_conflicts_are_the_matter() -> None:
    """Section V-D: in every APPLY of conflict and provenance, and in no other episode."""
    for case in suite().cases:
        expected = (case.sealed.domain, case.sealed.reference) == ("conflict_provenance", "APPLY")
        assert bool(immaterial_disagreements(case)) == expected, case.sealed.family


def test_every_blocking_label_cites_what_blocks() -> None:
    for case in suite().cases:
        verdict = certify(case.view)
        ids = {o["id"] for o in case.view["episode"]["observations"]}
        assert set(verdict.cites) >= verdict.blocked == case.sealed.blocked
        assert (case.sealed.reference == "APPLY") == (not case.sealed.blocked)
        for cited in verdict.cites.values():
            assert cited
            assert all(one in ids or one.partition(":")[0] in ("source", "missing") for one in cited)


def test_a_judge_that_errs_stops_the_build_and_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = FAMILIES[-1].name
    item = anchors(SEED, None).final["WCNS"][0]

    def errs(view: dict[str, object]) -> Verdict:
        return replace(certify(view), action="HOLD", predicate="stale_required_state")

    monkeypatch.setattr(making, "certify", errs)
    with pytest.raises(BuildError, match=r"the oracle says .*, the certificate checker HOLD") as told:
        making._labelled(FAMILIES[-1], item, FAMILIES[-1].realise(making.Scene(item, random.Random(1))))
    assert wrong in str(told.value)
    assert item.item_id in str(told.value)


def test_a_state_outside_the_vocabulary_of_the_suite_names_family_and_item() -> None:
    family = FAMILIES[0]
    item = anchors(SEED, None).final["WCNS"][0]
    facts = family.realise(making.Scene(item, random.Random(1)))
    assert facts is not None
    final = replace(facts, outages=(Outage(facts.exposures[0].source, retryable=False),))
    with pytest.raises(BuildError, match=f"{family.name} on WCNS {item.item_id}: "):
        making._labelled(family, item, final)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    again = build("final", SEED)
    assert again.digest == suite().digest
    assert [orjson.dumps(c.view) for c in again.cases] == [orjson.dumps(c.view) for c in suite().cases]
    assert suite("final", SEED + 1).digest != suite().digest


def test_development_and_final_share_no_anchor() -> None:
    questions = {c.sealed.item.question for c in suite().cases}
    assert questions.isdisjoint(c.sealed.item.question for c in suite("development").cases)


def test_the_selection_does_not_depend_on_the_order_within_a_run(all_candidates: list[making.Sealed]) -> None:
    assert {c.item.item_id for c in select(all_candidates)} == {c.sealed.item.item_id for c in suite().cases}


def test_no_name_of_a_family_or_a_domain_or_an_item_shows_in_a_view() -> None:
    words = {family.name for family in FAMILIES} | set(DOMAINS)
    for case in suite().cases:
        text = orjson.dumps(case.view).decode()
        assert not any(word in text for word in words)
        assert case.sealed.item.item_id not in text


def test_a_suite_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write(suite(), tmp_path)
    read = load(tmp_path)
    assert read.digest == suite().digest
    for mine, theirs in zip(read.cases, suite().cases, strict=True):
        assert judge(mine.sealed.item, mine.sealed.facts) == judge(theirs.sealed.item, theirs.sealed.facts)
        assert mine.sealed == theirs.sealed
        assert orjson.dumps(mine.view) == orjson.dumps(theirs.view), "the order of members too"


@pytest.mark.parametrize("name", ["episodes.jsonl", "sealed.jsonl", "manifest.json"])
def test_a_changed_inventory_is_refused(tmp_path: Path, name: str) -> None:
    write(suite(), tmp_path)
    whole = (tmp_path / name).read_bytes()
    digits = [i for i, byte in enumerate(whole) if byte in b"123456"]
    for position in random.Random(5).sample(digits, 5):
        changed = bytes((whole[position] + 1,))
        (tmp_path / name).write_bytes(whole[:position] + changed + whole[position + 1 :])
        if name == "manifest.json" and not whole[:position].count(b'"episodes"'):
            continue
        with pytest.raises(ManifestError):
            load(tmp_path)
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ManifestError):
        load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ManifestError, match=name):
        load(tmp_path)


@pytest.mark.skipif(not WIRELESSBENCH.exists(), reason="WirelessBench's files are not here")
def test_items_of_files_come_first_and_generated_ones_fill_up() -> None:
    built = suite("final", SEED, WIRELESSBENCH)
    counts = built.manifest["base"]
    for task in TASKS:
        assert sum(counts[task]["final"].values()) == 200
        assert counts[task]["development"]["generated"] == 0 or counts[task]["final"]["generated"] == 0
    origins = Counter((c.sealed.item.task, c.sealed.item.origin) for c in built.cases)
    assert all(origins[task, "file"] == counts[task]["final"]["file"] for task in TASKS)
    assert built.manifest["excluded"]
    assert all(one["reason"] and one["task"] in TASKS for one in built.manifest["excluded"])
