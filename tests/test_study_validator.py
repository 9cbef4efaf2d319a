"""`wirelessops study validate`: 56 checks of saved rows, each of which fails where exactly its item is corrupted."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from simulators.closedloop.validator import audit, safety, sources
from simulators.closedloop.validator.checks import CHECKS, GROUPS, validate
from simulators.closedloop.validator.design import case_of
from simulators.closedloop.validator.layout import DOCUMENTS, FILES, LEDGER, TABLES
from simulators.closedloop.validator.reading import Saved, Unreadable, load, read_document, read_table
from simulators.closedloop.validator.support import reference_partitions

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "simulators" / "closedloop" / "validator"
MANIFEST: Final = "freeze/manifest"

Row = dict[str, str]
Changed = dict[str, bytes]
Corruption = Callable[[Saved], Changed]


@pytest.fixture(scope="module")
def saved(study: Path) -> Saved:
    return load(study)


def study_validate(folder: Path) -> Result:
    from streams.cli import app

    return CliRunner().invoke(app, ["study", "validate", str(folder)])


# How a parsed row or document is changed and written back.


def table(name: str, change: Callable[[list[Row], Saved], object]) -> Corruption:
    def corrupt(saved: Saved) -> Changed:
        header, *lines = saved.content[name].decode().splitlines()
        rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
        change(rows, saved)
        return {name: "".join(",".join(row) + "\n" for row in [list(rows[0]), *(r.values() for r in rows)]).encode()}

    return corrupt


def cell(name: str, column: str, value: str | Callable[[str], str], at: Callable[[Row, Saved], bool]) -> Corruption:
    """Changes one column of the first row at which something holds."""

    def change(rows: list[Row], saved: Saved) -> None:
        row = next(row for row in rows if at(row, saved))
        before = row[column]
        row[column] = value if isinstance(value, str) else value(before)
        assert row[column] != before

    return table(name, change)


def line(name: str, column: str, value: str | Callable[[str], str], number: int = 2) -> Corruption:
    def change(rows: list[Row], _: Saved) -> None:
        row = rows[number - 2]
        row[column] = value if isinstance(value, str) else value(row[column])

    return table(name, change)


def again(name: str, **other: str) -> Corruption:
    """Appends the first row, changed."""
    return table(name, lambda rows, _: rows.append({**rows[0], **other}))


def member(name: str, *path: str | int, value: Any) -> Corruption:
    """Sets a member of a document; a function is given what it was."""

    def corrupt(saved: Saved) -> Changed:
        document = json.loads(saved.content[name])
        within = document
        for step in path[:-1]:
            within = within[step]
        before = within.get(path[-1]) if isinstance(within, dict) else within[path[-1]]
        within[path[-1]] = value(before) if callable(value) else value
        assert repr(within[path[-1]]) != repr(before)
        return {name: json.dumps(document).encode()}

    return corrupt


def claim(identity: str, **members: Any) -> Corruption:
    def corrupt(saved: Saved) -> Changed:
        claims = [json.loads(line) for line in saved.content[LEDGER].splitlines()]
        next(one for one in claims if one["id"] == identity).update(members)
        return {LEDGER: b"".join(json.dumps(one).encode() + b"\n" for one in claims)}

    return corrupt


def both(*corruptions: Corruption) -> Corruption:
    return lambda saved: {name: content for one in corruptions for name, content in one(saved).items()}


def more(by: float) -> Callable[[Any], Any]:
    return lambda value: repr(float(value) + by) if isinstance(value, str) else value + by


def one_more(value: str) -> str:
    return str(int(value) + 1)


# Which row of a trace or cell can be changed without touching what is concluded from it.


def admitted(saved: Saved, regime: str, component: str) -> bool:
    unit = (5, 7, 9).index(int(regime)) * 24 + int(component)
    return bool(reference_partitions(saved)[unit] >= 14)


def of_admitted(row: Row, saved: Saved) -> bool:
    return admitted(saved, row["regime"], row["component"])


def of_refused(row: Row, saved: Saved) -> bool:
    return not of_admitted(row, saved)


def visited_and_never_joint(row: Row, saved: Saved) -> bool:
    """A row of a case whose unit is refused at the reference, in a partition in which that has too few visits."""
    regime, component, *_ = case_of(int(row["case"]))
    unit = (5, 7, 9).index(regime) * 24 + component
    counts = saved.tables["reference.csv"].ints["visits"].reshape(-1, 15)[unit]
    return counts[int(row["partition"])] < 12 and (counts >= 12).sum() < 14


def unvisited_and_free(row: Row, saved: Saved) -> bool:
    """A cell of an order that changes in both directions and has no clean visits."""
    if row["outward"] + row["inward"] != "11":
        return False
    occupied = saved.tables["occupancy.csv"].ints
    return not ((occupied["cell"] == int(row["cell"])) & (occupied["regime"] == int(row["regime"]))).any()


def with_case(change: Callable[[Row, Saved], object]) -> Corruption:
    """A row of no conclusion, after the first quarter, of which the channels are known."""

    def of(rows: list[Row], saved: Saved) -> None:
        later = (row for row in rows if case_of(int(row["case"]))[1] >= 6)
        change(next(row for row in later if visited_and_never_joint(row, saved)), saved)

    return table("current.csv", of)


def negative(row: Row, _: Saved) -> None:
    row["a7"] = str(int(row["a7"]) + int(row["a0"]) + 1)
    row["a0"] = "-1"


def too_many(row: Row, _: Saved) -> None:
    for action in range(8):
        row[f"a{action}"] = "0"
    row["visits"] = row["a0"] = "961"


def moved(block: str, to: str) -> Corruption:
    """A block that begins where another does, in the rows and in the protocol."""

    def of_rows(rows: list[Row], _: Saved) -> None:
        firsts = [row["first"] for row in rows if row["block"] == to]
        for row, first in zip([row for row in rows if row["block"] == block], firsts, strict=True):
            row["first"] = first

    def of_protocol(saved: Saved) -> Changed:
        first = saved.documents["protocol.json"]["seeds"]["blocks"][to]["first"]
        return member("protocol.json", "seeds", "blocks", block, "first", value=first)(saved)

    return both(table("seeds.csv", of_rows), of_protocol)


def development_before_0(rows: list[Row], _: Saved) -> None:
    for row in rows[:15]:
        row["first"] = str(int(row["first"]) - 2400)


def one_more_clean_visit(rows: list[Row], _: Saved) -> None:
    """In the first quarter and the low half of the credit, where the reference is never joint."""
    row = rows[0]
    assert (row["regime"], row["component"]) == ("5", "0")
    row["visits"], row["a0"] = one_more(row["visits"]), one_more(row["a0"])


def swap_directions(rows: list[Row], _: Saved) -> None:
    rows[0]["direction"], rows[1]["direction"] = rows[1]["direction"], rows[0]["direction"]


def drop_refused(rows: list[Row], saved: Saved) -> None:
    rows.remove(next(row for row in rows if visited_and_never_joint(row, saved)))


def planted(rows: list[Row], _: Saved) -> None:
    for row in rows:
        row["planted"] = "0"


def one_cell_twice_instead_of_another(rows: list[Row], _: Saved) -> None:
    """In a unit without visits, whose masks are its first cell."""
    last = next(number for number, row in enumerate(rows) if rows[number + 1]["place"] == "0")
    rows[last].update({name: rows[0][name] for name in ("cell", "outward", "inward")})


def below_the_target_before(rows: list[Row], _: Saved) -> None:
    number = next(n for n, row in enumerate(rows) if n % 5 and int(rows[n - 1]["selected"]) > 1)
    rows[number]["selected"] = str(int(rows[number - 1]["selected"]) - 1)


def one_selected_more(rows: list[Row], _: Saved) -> None:
    row = next(row for n, row in enumerate(rows) if n % 5 == 0 and int(row["selected"]) < int(rows[n + 1]["selected"]))
    row["selected"] = one_more(row["selected"])


def stated(name: str, value: Any) -> Corruption:
    return member("protocol.json", "hashes", name, value=value)


def planted_in(name: str) -> Corruption:
    return table(name, planted)


def schema_of_what_is_there(saved: Saved) -> Changed:
    """The hash of a schema in which occupancy.csv has one column more."""
    heads = {name: ",".join(saved.tables[name].header) for name in sorted(TABLES)}
    heads["occupancy.csv"] += ",planted"
    text = "".join(f"{name}: {head}\n" for name, head in heads.items())
    return stated("schema", "sha256:" + hashlib.sha256(text.encode()).hexdigest())(saved)


def two_cells_never_selected_exchanged(rows: list[Row], _: Saved) -> None:
    """In a unit without visits, whose masks are its first cell: no mask and no digest changes."""
    first, second = (next(row for row in rows if row["place"] == place) for place in ("1", "2"))
    for name in ("cell", "outward", "inward"):
        first[name], second[name] = second[name], first[name]


def more_than_its_channels(rows: list[Row], saved: Saved) -> None:
    """A refused unit of the first quarter, in a partition in which it stays without enough visits in the reference."""
    row = next(row for row in rows if visited_and_never_joint(row, saved))
    assert case_of(int(row["case"]))[1] < 6
    row["visits"] = row["a0"] = "960"
    for action in range(1, 8):
        row[f"a{action}"] = "0"


def the_traces_of_another_partition(rows: list[Row], _: Saved) -> None:
    """Of one regime the last two partitions: one is made the other, whoever is joint there."""
    for place, row in enumerate(rows):
        if row["regime"] == "5" and row["partition"] == "14":
            rows[place] = {**rows[place - 1], "partition": "14"}


def last_claim_first(saved: Saved) -> Changed:
    *others, last = saved.content[LEDGER].splitlines(keepends=True)
    return {LEDGER: b"".join((last, *others))}


def counted_otherwise(identity: str, counted: str, told: str) -> Corruption:
    def corrupt(saved: Saved) -> Changed:
        text = next(one["forbidden_inference"] for one in saved.ledger if one["id"] == identity)
        assert re.search(counted, text)
        return claim(identity, forbidden_inference=re.sub(counted, told, text))(saved)

    return corrupt


def one_clean_partition_twice(rows: list[Row], _: Saved) -> None:
    """Of the pilot block one that calibrates."""
    rows[28] = {**rows[27], "partition": rows[28]["partition"]}
    assert {rows[27]["block"], rows[28]["block"]} == {"pilot"}


def one_alarm_more(saved: Saved) -> Changed:
    """In drift.json and in the claim that counts it."""
    one = next(one for one in saved.ledger if one["id"] == "drift.same_demand")
    count = one["numerator"] + 1
    shares = {"numerator": count, "estimator": {**one["estimator"], "value": round(count / one["denominator"], 9)}}
    return both(
        member("drift.json", "policies", 0, "streams", 0, "alarms", value=more(1)), claim("drift.same_demand", **shares)
    )(saved)


def without_the_audit_of(mode: str) -> Corruption:
    """Neither leakage.json nor the ledger has it."""

    def corrupt(saved: Saved) -> Changed:
        kept = [line for line in saved.content[LEDGER].splitlines(keepends=True) if f".{mode}".encode() not in line]
        drop = member("leakage.json", "modes", value=lambda modes: [one for one in modes if one["mode"] != mode])
        return {**drop(saved), LEDGER: b"".join(kept)}

    return corrupt


OTHER_HASH: Final = "sha256:" + "0" * 64

CORRUPTIONS: Final[Mapping[str, tuple[Corruption, ...]]] = {
    "schedule/cases": (again("schedule.csv", case="1440", component="3"),),
    "schedule/numbers": (line("schedule.csv", "case", "7"),),
    "schedule/regimes": (cell("schedule.csv", "regime", "6", of_admitted),),
    "schedule/components": (cell("schedule.csv", "component", "24", of_admitted),),
    "schedule/families": (line("schedule.csv", "family", "random"),),
    "schedule/targets": (line("schedule.csv", "target", "0.2"),),
    "schedule/directions": (line("schedule.csv", "direction", "sideways"),),
    "schedule/grid": (table("schedule.csv", swap_directions),),
    "schedule/partitions": (again("current.csv"), again("current.csv", case="1440")),
    "schedule/derived_rows": tuple(
        again(name) for name in ("masks.csv", "units.csv", "signals.csv", "arms.csv", "null_signals.csv")
    ),
    "freeze/rules": (
        member("protocol.json", "thresholds", "min_visits", value=11),
        member("protocol.json", "constants", "credit", value=100),
        member("protocol.json", "constants", "horizon", value=24.0),
        member("protocol.json", "constants", "caps", 1, value=True),
        member("protocol.json", "constants", "secret", value=1),
        member("protocol.json", "formulas", "reference_gate", value="visits >= 12 in at least 14 of 15, or nearly"),
        member("protocol.json", "formulas", "alarm", value=None),
        member("protocol.json", "format", value="wirelessops.study-protocol/2"),
        member("protocol.json", "verdict", value="PASS"),
    ),
    "freeze/code": (stated("code", OTHER_HASH), stated("validator", OTHER_HASH)),
    "freeze/policies": (member("protocol.json", "hashes", "policies", "7", value=OTHER_HASH),),
    "freeze/masks": (stated("masks", OTHER_HASH),),
    "freeze/schema": (stated("schema", OTHER_HASH), both(planted_in("occupancy.csv"), schema_of_what_is_there)),
    "freeze/environment": (
        member("protocol.json", "environment", "numpy", value="0"),
        stated("environment", OTHER_HASH),
    ),
    "freeze/commit": (
        member("protocol.json", "commit", "id", value="main"),
        member("protocol.json", "commit", value={"id": None, "dirty": None, "reason": None}),
    ),
    "freeze/manifest": (
        member("manifest.json", "drift.json", value=OTHER_HASH),
        member("manifest.json", "notes.txt", value=OTHER_HASH),
        stated("frozen", OTHER_HASH),
    ),
    "seeds/blocks": (line("seeds.csv", "partition", "9", number=5),),
    "seeds/episodes": (line("seeds.csv", "count", "159"),),
    "seeds/contiguous": (line("seeds.csv", "first", one_more, number=5),),
    "seeds/disjoint": (moved("development", "pilot"),),
    "seeds/frozen": (
        member("protocol.json", "seeds", "blocks", "pilot", "first", value=1),
        member("protocol.json", "seeds", "master", value=-1),
        member("protocol.json", "seeds", "blocks", "pilot", "count", value=2400.0),
        both(
            table("seeds.csv", development_before_0),
            member("protocol.json", "seeds", "blocks", "development", "first", value=-2400),
        ),
    ),
    "masks/order": (
        line("cells.csv", "place", "9"),
        table("cells.csv", one_cell_twice_instead_of_another),
        table("cells.csv", two_cells_never_selected_exchanged),
    ),
    "masks/flags": (cell("cells.csv", "outward", "0", unvisited_and_free),),
    "masks/changeable": (line("masks.csv", "changeable", one_more),),
    "masks/nested": (table("masks.csv", below_the_target_before),),
    "masks/nearest": (table("masks.csv", one_selected_more),),
    "masks/tau_by_direction": (
        line("masks.csv", "tau_outward", more(0.01)),
        line("masks.csv", "tau_inward", more(0.01)),
    ),
    "masks/tau": (line("masks.csv", "tau", more(0.01)),),
    "masks/fraction": (line("masks.csv", "fraction", more(0.01)),),
    "masks/digests": (line("masks.csv", "digest", OTHER_HASH),),
    "traces/columns": (table("current.csv", planted),),
    "traces/clean_rows": (again("reference.csv"), again("null.csv")),
    "traces/no_negative": (with_case(negative),),
    "traces/sums": (with_case(lambda row, _: row.update(a0=one_more(row["a0"]))),),
    "traces/bounded": (with_case(too_many),),
    "traces/totals": (table("null.csv", one_more_clean_visit), table("current.csv", more_than_its_channels)),
    "gates/reference": (line("units.csv", "reference_partitions", one_more),),
    "gates/runtime": (
        cell("units.csv", "runtime_partitions", lambda count: str(int(count) - 1), of_admitted),
        cell("units.csv", "runtime_partitions", "0", of_refused),
    ),
    "gates/states": (cell("units.csv", "state", "RUNTIME_ABSTAIN", of_admitted),),
    "gates/joint": (line("signals.csv", "joint", lambda flag: str(1 - int(flag))),),
    "gates/joint_null": (line("null_signals.csv", "joint", lambda flag: str(1 - int(flag))),),
    "gates/stay_scheduled": (
        cell("schedule.csv", "component", "3", of_refused),
        table("current.csv", drop_refused),
    ),
    "signal/cutoff": (
        member("protocol.json", "cutoff", "shown", "cutoffs", 2, value=lambda row: {**row, "stable": 1, "worst": 14}),
        member("protocol.json", "cutoff", "shown", "cutoffs", 1, "stable", value=-1),
        member("protocol.json", "cutoff", "shown", "cutoffs", 2, "expected", value=0.9),
        member("protocol.json", "cutoff", "rule", value="what the reader likes"),
        member("protocol.json", "cutoff", "grid", value=[1.5]),
        member("protocol.json", "cutoff", "grid", value=[1, 1.25, 1.5, 1.75, 2]),
    ),
    "signal/z": (
        cell("signals.csv", "z", more(0.001), lambda row, _: row["z"] != ""),
        cell("null_signals.csv", "z", more(0.001), lambda row, _: row["z"] != ""),
        cell("signals.csv", "z", "", lambda row, _: row["z"] != ""),
    ),
    "signal/stable": (line("arms.csv", "stable_inward", lambda flag: str(1 - int(flag))),),
    "signal/states": (cell("arms.csv", "state", "NOT_DETECTED", lambda row, _: row["state"] == "DETECTED"),),
    "safety/null_apart": (moved("null", "current"), table("null.csv", the_traces_of_another_partition)),
    "safety/represented": (
        member("calibration.json", "represented", value=more(-1)),
        member("calibration.json", "by_component", 0, "stable", value=[5]),
        member("calibration.json", "by_component", 0, "most_signalling", value=float),
        member("calibration.json", "stable_means", value="never"),
        member("calibration.json", "verdict", value="PASS"),
    ),
    "safety/bound": (member("calibration.json", "bound", value=more(-1e-6)),),
    "analysis/detections": (
        member("analysis.json", "detections", "uniform", 2, value=more(1)),
        member("analysis.json", "nondecreasing", "uniform", value=lambda holds: not holds),
        member("analysis.json", "models", "verdict", value="CONFIRMED"),
    ),
    "analysis/models": (
        member("analysis.json", "models", "traffic", "nll", value=more(-0.001)),
        member("analysis.json", "within_family", "uniform", "fraction", "coefficients", 1, value=more(0.1)),
        member("analysis.json", "models", "difference", value=more(0.001)),
    ),
    "analysis/family": (member("analysis.json", "family", "gain", value=more(0.001)),),
    "analysis/intervals": (
        member("analysis.json", "models", "interval", 0, value=more(0.001)),
        member("analysis.json", "family", "bound", value=more(-0.001)),
        member("analysis.json", "bootstrap", "draws", value=20),
    ),
    "ledger/claims": (
        claim("coverage.reference", numerator=58),
        claim("safety.false_admission", status="CONFIRMED"),
        claim("execution.schedule", id="execution.overall"),
        claim("execution.schedule", layer="overall"),
        claim("power.uniform", verdict="PASS"),
        claim("solver.exact_mhs_advantage", status="VALID"),
        claim("drift.refresh", forbidden_inference="nothing"),
        claim("safety.false_admission", frozen_rule="the bound is as it is"),
        claim("coverage.reference", population="all cells of the network"),
        claim("coverage.reference", interval=[0.7, 0.9]),
        claim("drift.refresh", estimator={"name": "repaired", "value": 1.0}),
        last_claim_first,
        counted_otherwise("structure.family_sufficiency", r"[0-9]+ clusters", "90 clusters"),
        line("drift_features.csv", "unmet", "1.0", number=20),
        line("drift_features.csv", "share_5", more(0.001)),
        cell("drift_features.csv", "credit_3", more(0.001), lambda row, _: row["block"] == "current"),
        table("drift_features.csv", one_clean_partition_twice),
        line("drift_features.csv", "partition", "9"),
        member("drift.json", "policies", 0, "limit", value=9.0),
        member("drift.json", "policies", 2, "streams", 0, "scores", 3, value=more(0.001)),
        one_alarm_more,
        member("leakage.json", "cutoff", value=1.25),
        member("leakage.json", "cases", 0, "planted", value=[3, 4]),
        member("leakage.json", "modes", 0, "families", 0, "conflicts", value=lambda found: found[1:]),
        member("leakage.json", "modes", 0, "families", 0, "exact", value={"components": [5, 12, 13], "cost": 3}),
        member("leakage.json", "modes", 0, "families", 0, "greedy", "components", value=lambda found: found[1:]),
        member("leakage.json", "modes", 0, "families", 0, "residual", value=[]),
        member("leakage.json", "modes", 1, "verdicts", "SINGLETON_REVEAL", "cases_with_pair", value=more(1)),
        member("leakage.json", "modes", 2, "verdicts", "LABEL_DEPENDENT", "cases", value=more(-1)),
        member("leakage.json", "modes", 0, "solvers", "recovered_exact", value=more(1)),
        member("leakage.json", "published", 1, "ours", value="12/12"),
        member("leakage.json", "published", 1, "published", value="12/12"),
        without_the_audit_of("aggregate"),
    ),
}  # fmt: skip


def failing(saved: Saved, changed: Changed) -> set[str]:
    """The checks that fail once these files are so. Those that read none of them see what they saw before."""
    now = saved
    for name, content in changed.items():
        now = now.replaced(name, content)
    return {check.full_name for check in CHECKS if changed.keys() & set(check.reads) and check.faults(now)}


def test_there_are_56_checks_in_ten_groups_and_each_has_a_name_of_its_own() -> None:
    assert sum(GROUPS.values()) == len(CHECKS) == len({check.full_name for check in CHECKS}) == 56
    assert Counter(check.group for check in CHECKS) == GROUPS
    assert list(CORRUPTIONS) == [check.full_name for check in CHECKS]


def test_a_study_passes_all_checks_each_of_which_sees_only_the_files_that_it_says_it_reads(saved: Saved) -> None:
    assert [str(fault) for outcome in validate(saved) for fault in outcome.faults] == []


@pytest.mark.parametrize("check", CHECKS, ids=[check.full_name for check in CHECKS])
def test_corrupting_exactly_its_item_fails_a_check_and_only_those_that_rest_on_the_same_bytes(
    check: Any, saved: Saved
) -> None:
    besides: set[str] = set()
    for number, corrupt in enumerate(CORRUPTIONS[check.full_name]):
        found = failing(saved, corrupt(saved))
        assert {check.full_name, MANIFEST} <= found, number
        besides |= found - {check.full_name, MANIFEST}
    assert besides == set(check.besides), "the table of checks says which may fail besides, and no more"


# A folder that is no finished study.


MARK: Final = b"\xef\xbb\xbf"
ONE_OF_EACH: Final = ("units.csv", "arms.csv", "calibration.json", LEDGER)
DAMAGES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "a byte order mark": lambda content: MARK + content,
    "an end cut off": lambda content: content[: len(content) * 2 // 3],
    "carriage returns": lambda content: content.replace(b"\n", b"\r\n"),
    "nothing in it": lambda content: b"",
    "bytes that are no text": lambda content: content[:40] + b"\xff\xfe" + content[40:],
    "no end to its last line": lambda content: content.rstrip(b"}\n") + b" ",
    "a NUL in its head": lambda content: content.replace(content[1:2], b"\0", 1),
}


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_file_that_cannot_be_read_is_named_and_never_a_traceback(name: str, damage: str, saved: Saved) -> None:
    with pytest.raises(Unreadable, match=f"^{name}"):
        saved.replaced(name, DAMAGES[damage](saved.content[name]))


@pytest.mark.parametrize(
    "value", ["nan", "inf", "1e999", "", "-0x1", "1_0", " 1", "1" * 5000, "٣", '"1"', "01", "-0", "1e3", "+1"]
)
def test_a_number_that_is_none_is_told_with_its_line_and_column(value: str, saved: Saved) -> None:
    for name, column in (("masks.csv", "tau"), ("masks.csv", "selected")):
        with pytest.raises(Unreadable, match=f"^masks.csv line 4: {column} is "):
            read_table(name, line(name, column, value, number=4)(saved)[name])


def test_a_line_of_other_cells_than_the_header_and_a_header_without_a_column_are_told(saved: Saved) -> None:
    content = saved.content["seeds.csv"]
    with pytest.raises(Unreadable, match=r"^seeds.csv line 77: has 5 cells, the header 4$"):
        read_table("seeds.csv", content + b"null,15,0,160,1\n")
    with pytest.raises(Unreadable, match=r"^seeds.csv line 1: has no column count$"):
        read_table("seeds.csv", content.replace(b"count", b"total", 1))
    with pytest.raises(Unreadable, match=r"^seeds.csv line 1: names a column twice$"):
        read_table("seeds.csv", content.replace(b"count", b"first", 1))


@pytest.mark.parametrize(
    "content",
    [b"[]", b"null", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": -Infinity}', b'{"a": 1, "a": 2}',
     b'{"a": ' + b"9" * 5000 + b"}", b'{"a": ' + b"[" * 400 + b"]" * 400 + b"}", b"[" * 100_000],
    ids=["list", "null", "NaN", "beyond floats", "infinite", "twice", "5,000 digits", "400 deep", "100,000 deep"],
)  # fmt: skip
def test_a_document_that_is_no_object_of_finite_numbers_is_told(content: bytes) -> None:
    with pytest.raises(Unreadable, match=r"^drift\.json"):
        read_document("drift.json", content)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_study_without_one_of_its_files_is_not_finished(name: str, study: Path, tmp_path: Path) -> None:
    for other in sorted(set(FILES) - {name}):
        (tmp_path / other).symlink_to(study / other)
    found = study_validate(tmp_path)
    assert found.exit_code == 2
    assert found.output == f"{tmp_path}: no finished study: {name}: is missing\n"


def test_a_folder_that_is_empty_a_file_or_not_there_is_no_finished_study(study: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere", study / "protocol.json"):
        found = study_validate(folder)
        assert (found.exit_code, len(found.output.splitlines())) == (2, 1)
    (tmp_path / "schedule.csv").mkdir()
    assert "schedule.csv: is no file" in study_validate(tmp_path).output


def test_what_else_lies_in_the_folder_is_told_but_for_the_report(study: Path, tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).symlink_to(study / name)
    (tmp_path / "report").mkdir()
    assert study_validate(tmp_path).output.endswith("EXECUTED\n")
    (tmp_path / "verdict.txt").write_text("PASS")
    found = study_validate(tmp_path)
    assert found.exit_code == 1
    assert "freeze/manifest: verdict.txt: lies among the files of the study" in found.output


def test_a_file_beyond_all_bounds_is_refused_unread(study: Path, tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).symlink_to(study / name)
    (tmp_path / "units.csv").unlink()
    with (tmp_path / "units.csv").open("wb") as file:
        file.truncate(1 << 40)
    found = study_validate(tmp_path)
    assert (found.exit_code, found.output) == (
        2, f"{tmp_path}: no finished study: units.csv: is larger than {1 << 26} bytes\n"
    )  # fmt: skip


def test_a_support_is_held_against_all_subsets_of_its_components() -> None:
    trap = tuple(map(frozenset, ({0, 2, 5}, {0, 2, 6}, {1, 2, 7}, {1, 2, 8}, {0, 3}, {1, 4})))
    assert audit._solved(trap) == ([], [sorted(one) for one in sorted(trap, key=lambda one: (len(one), sorted(one)))],
                                   [0, 1], [0, 1, 2])  # fmt: skip
    assert audit._solved((frozenset({3}), frozenset({3, 4}))) == ([3], [], [3], [3])


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_without_rows_and_rows_of_nothing_are_faults_and_no_traceback(name: str, saved: Saved) -> None:
    header = saved.content[name].splitlines()[0] + b"\n"
    assert failing(saved, {name: header}) > {MANIFEST}
    numbers = [column for column in saved.tables[name].ints if column != "runtime_partitions"]

    def change(rows: list[Row], _: Saved) -> None:
        rows[0].update(dict.fromkeys(numbers, "-1"))
        rows[-1].update(dict.fromkeys(numbers, "9" * 18))

    assert failing(saved, table(name, change)(saved)) > {MANIFEST}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of a document; of a list the first and the last."""
    if at:
        yield at
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*at, name))
    elif isinstance(value, list):
        for place in sorted({0, len(value) - 1} if value else ()):
            yield from places(value[place], (*at, place))


def held(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


STRANGE: Final = (None, True, -1, 10**18, 1e300, "", "\ud800", [], [[]], {}, {"a": 1})
"""What may stand in JSON where anything else belongs."""


@pytest.mark.parametrize("name", sorted({*DOCUMENTS, LEDGER}))
def test_whatever_stands_in_a_document_each_check_ends(name: str, saved: Saved) -> None:
    """All values at a time become strange ones, several in turn; then all lists and objects of a level."""
    first, *others = saved.content[name].split(b"\n") if name == LEDGER else (saved.content[name],)
    all_places = list(places(json.loads(first)))
    groups: dict[int, list[tuple[Any, ...]]] = {}
    for path in all_places:
        inner = isinstance(held(json.loads(first), path), dict | list) if len(path) < 4 else False
        groups.setdefault(len(path) if inner else 0, []).append(path)
    groups[0] = [path for path in groups[0] if not isinstance(held(json.loads(first), path), dict | list)]
    for level, group in sorted(groups.items()):
        for shift in range(0, len(STRANGE), 5 if level else 2):
            document = json.loads(first)
            for number, path in enumerate(group):
                held(document, path[:-1])[path[-1]] = STRANGE[(number + shift) % len(STRANGE)]
            content = b"\n".join([json.dumps(document).encode(), *others])
            assert failing(saved, {name: content}) >= {MANIFEST}, (level, shift)


# The command.


def test_a_study_that_passes_is_told_to_be_executed_and_nothing_more(study: Path) -> None:
    found = study_validate(study)
    assert found.exit_code == 0
    *counts, told = found.output.splitlines()
    assert counts == [f"{group}: {count} of {count}" for group, count in GROUPS.items()]
    assert told == "EXECUTED"


@pytest.mark.parametrize(
    "name", ["schedule/numbers", "signal/z", "analysis/family", "ledger/claims"]
)
def test_the_command_names_check_file_and_row_of_what_fails(
    name: str, saved: Saved, study: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    shutil.copytree(study, folder)
    changed = CORRUPTIONS[name][0](saved)
    for file, content in changed.items():
        (folder / file).write_bytes(content)
    found = study_validate(folder)
    assert found.exit_code == 1
    assert "EXECUTED" not in found.output.splitlines()
    (file,) = changed
    assert any(line.startswith(f"{name}: {file} ") for line in found.output.splitlines()), found.output


# What it rests on.


def test_the_bound_is_the_exact_one() -> None:
    wanted = {(0, 20): 0.139108, (1, 20): 0.216106, (0, 54): 0.053966, (0, 13): 0.2058, (0, 14): 0.1926}
    for (events, trials), bound in wanted.items():
        assert safety.upper_bound(events, trials) == pytest.approx(bound, abs=5e-5)
    assert safety.upper_bound(0, 0) is None
    assert safety.upper_bound(3, 3) == 1.0


def test_the_validator_shares_no_code_with_what_it_validates() -> None:
    own = "simulators.closedloop.validator"
    allowed = sys.stdlib_module_names | {"numpy", "scipy"}
    found = {
        f"{path.name}: {name}"
        for path in sorted(PACKAGE.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or "."] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
        if name.split(".")[0] not in allowed and name != own and not name.startswith(f"{own}.")
    }
    assert found == set()
    told = "print(*(name for name in sys.modules if name.split('.')[0] in ('xapp', 'streams', 'simulators')))"
    code = f"import sys, {own}.checks; {told}"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    others = {name for name in loaded.split() if not name.startswith(own)}
    assert others == {"simulators", "simulators.closedloop"}


def test_the_hash_of_the_code_changes_with_its_text_and_not_with_its_line_endings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("simulators", "xapp"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    before = sources.code()
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    assert sources.code() == before
    rule = tmp_path / "xapp" / "support" / "rule.py"
    rule.write_bytes(rule.read_bytes().replace(b"\n", b"\r\n"))
    assert sources.code() == before
    rule.write_bytes(rule.read_bytes().replace(b"= 12", b"= 11"))
    assert sources.code() != before


def test_the_table_of_checks_in_the_docs_is_the_code_s() -> None:
    told = (ROOT / "docs" / "study-validation.md").read_text().splitlines()
    rows = [line for line in told if line.startswith("| `") and line.count("/")]
    wanted = [
        f"| `{check.full_name}` | {check.says} | {', '.join(check.reads) if len(check.reads) < 10 else 'all tables'}"
        f" | {', '.join(f'`{name}`' for name in check.besides)} |"
        for check in CHECKS
    ]
    assert [line for line in rows if line.count("|") == 5] == wanted
