"""`wirelessops study run`: the formal grid, its frozen protocol, and a folder that is a whole study or none."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson
import pytest
from study_runs import study_run

from simulators.closedloop import protocol, schedule
from simulators.closedloop.files import ROWS, of_rows, rows_of
from simulators.closedloop.loop import EPISODES, PARTITIONS
from simulators.closedloop.protocol import FREEZE, frozen_digest
from simulators.closedloop.running import execute, prepare
from simulators.closedloop.tables import FileFault, read
from streams.commands.answering import NotRun
from streams.commands.study_environment import commit
from streams.commands.study_folder import NAMES, finished, held, manifest, state

ROOT = Path(__file__).parents[1]
RUN = (sys.executable, "-c", "from streams.cli import main; main()", "study", "run")
Document = dict[str, Any]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def rows_and_verdicts(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(folder).items() if name in NAMES and name != "protocol.json"}


def copied(study: Path, to: Path) -> Path:
    return Path(shutil.copytree(study, to / "study"))


def edited(file: Path, to: Path, *, change: Callable[[Document], object], refrozen: bool = True) -> Path:
    """A protocol with one change; `refrozen`: by somebody who knew that it hashes itself."""
    document = orjson.loads(file.read_bytes())
    change(document)
    if refrozen:
        document["hashes"]["frozen"] = frozen_digest(document)
    to.write_bytes(orjson.dumps(document))
    return to


def put(*path: str, value: object) -> Callable[[Document], object]:
    def change(document: Document) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    return change


# The schedule


def test_the_formal_grid_is_72_units_1440_cases_21600_rows_and_3456000_episodes() -> None:
    cases = schedule.cases()
    assert len({(case.regime, case.component) for case in cases}) == 72
    assert len(set(cases)) == 1_440
    assert len(cases) * PARTITIONS == 21_600
    assert len(cases) * PARTITIONS * EPISODES == 3_456_000
    assert [case.case for case in cases] == list(range(1_440))
    arms = Counter((case.regime, case.component, case.family, case.target) for case in cases)
    assert set(arms.values()) == {2}


def test_no_two_blocks_share_an_episode_seed_and_every_partition_has_160_of_its_block() -> None:
    drawn = {block: set(range(seeds.first, seeds.first + seeds.count)) for block, seeds in schedule.blocks().items()}
    assert set(drawn) == {"development", "pilot", "reference", "current", "null"}
    assert not any(one & other for one, other in combinations(drawn.values(), 2))
    of_partitions = list(schedule.partitions(schedule.blocks()))
    assert len(of_partitions) == 75
    for block, seeds in drawn.items():
        parts = [set(range(one.first, one.first + one.count)) for one in of_partitions if one.block == block]
        assert [len(part) for part in parts] == [160] * 15
        assert set().union(*parts) == seeds


# The protocol


def test_the_preregistered_protocol_is_that_of_this_software(study_protocol: Path) -> None:
    shipped = ROOT / "simulators" / "closedloop" / "protocol.json"
    assert shipped.read_bytes() == study_protocol.read_bytes(), (
        f"the study's code has changed since it was frozen: {FREEZE} > {shipped.relative_to(ROOT)}"
    )


def test_the_cutoff_is_what_its_rule_gives_on_what_development_showed(study_protocol: Path) -> None:
    told = orjson.loads(study_protocol.read_bytes())["cutoff"]
    good = [one["cutoff"] for one in told["shown"]["cutoffs"] if one["stable"] == 0 and one["expected"] <= 0.05]
    assert told["chosen"] == good[0]
    assert told["grid"] == [one["cutoff"] for one in told["shown"]["cutoffs"]] == [1.0, 1.25, 1.5, 1.75, 2.0]


def test_what_is_frozen_comes_without_an_episode_of_the_current_or_the_null_block(study_protocol: Path) -> None:
    """Those two have seeds here that cannot be drawn."""
    told = protocol.read("frozen.json", study_protocol.read_bytes())
    nothing = schedule.Seeds(2**63, 2_400)
    prepared = prepare(told.master_seed, {**told.blocks, "current": nothing, "null": nothing})
    assert protocol.prepared_differences(told, prepared) == []
    with pytest.raises(ValueError, match="episode seeds"):
        execute(prepared, told.master_seed, {**told.blocks, "null": nothing, "current": nothing})


SHA = "sha256:" + "0" * 64
CHANGES = {
    "constants.credit": put("constants", "credit", value=120),
    "constants.targets": put("constants", "targets", value=[0.1, 0.3, 0.5, 0.75, 0.95]),
    "formulas.tau": put("formulas", "tau", value="the larger one"),
    "thresholds.min_visits": put("thresholds", "min_visits", value=10),
    "thresholds.false_admission_bound": put("thresholds", "false_admission_bound", value=0.3),
    "cutoff.rule": put("cutoff", "rule", value="the one that looks best"),
    "cutoff.grid": put("cutoff", "grid", value=[1.0, 1.5]),
    "hashes.code": put("hashes", "code", value=SHA),
    "hashes.validator": put("hashes", "validator", value=SHA),
    "hashes.schema": put("hashes", "schema", value=SHA),
}


@pytest.mark.parametrize("member", sorted(CHANGES))
def test_a_protocol_that_differs_in_one_thing_is_refused_by_its_name(
    member: str, study_protocol: Path, tmp_path: Path
) -> None:
    other = edited(study_protocol, tmp_path / "other.json", change=CHANGES[member])
    ran = study_run("--out", tmp_path / "study", "--protocol", other)
    assert ran.exit_code == 2
    first, *differences = ran.stderr.splitlines()
    assert FREEZE in first
    assert [line.split(":")[0].strip() for line in differences] == [member]
    assert not (tmp_path / "study").exists()


def test_a_policy_or_a_cutoff_that_is_not_what_was_prepared_is_refused_before_any_fault(
    study_protocol: Path, tmp_path: Path
) -> None:
    """A cutoff of the grid, frozen by somebody who knows how, that its rule does not give on development episodes."""
    policy = edited(study_protocol, tmp_path / "one.json", change=put("hashes", "policies", "7", value=SHA))
    other = edited(policy, tmp_path / "other.json", change=put("cutoff", "chosen", value=1.25))
    ran = study_run("--out", tmp_path / "study", "--protocol", other)
    assert ran.exit_code == 2
    differences = [line.split(":")[0].strip() for line in ran.stderr.splitlines()[1:]]
    assert differences == ["cutoff.chosen", "hashes.policies.7"]
    assert not (tmp_path / "study").exists()


def test_other_seeds_are_refused_because_they_make_other_masks_and_show_other_development(
    study_protocol: Path, tmp_path: Path
) -> None:
    other = edited(study_protocol, tmp_path / "other.json", change=put("seeds", "master", value=2027))
    ran = study_run("--out", tmp_path / "study", "--protocol", other)
    assert ran.exit_code == 2
    differences = {line.split(":")[0].strip() for line in ran.stderr.splitlines()[1:]}
    assert {"hashes.masks", "cutoff.shown.cutoffs"} <= differences
    assert {name.split(".")[0] for name in differences} == {"hashes", "cutoff"}
    assert not (tmp_path / "study").exists()


FAULTS = {
    "hashes.frozen": (put("seeds", "master", value=1), False),
    "seeds.blocks: current and null share episode seeds": (put("seeds", "blocks", "null", "first", value=7_300), True),
    "seeds.blocks.null.first": (put("seeds", "blocks", "null", "first", value=2**63 - 2_400), True),
    "seeds.blocks.pilot.count": (put("seeds", "blocks", "pilot", "count", value=100), True),
    "seeds.master": (put("seeds", "master", value=-1), True),
    "cutoff.chosen": (put("cutoff", "chosen", value=1.4), True),
    "hashes.code": (put("hashes", "code", value="abc"), True),
    "verdict": (put("verdict", value="PASS"), True),
    "format": (put("format", value="wirelessops.study-protocol/2"), True),
}


@pytest.mark.parametrize("member", sorted(FAULTS))
def test_a_protocol_that_is_wrong_in_itself_is_refused_with_the_place(
    member: str, study_protocol: Path, tmp_path: Path
) -> None:
    change, refrozen = FAULTS[member]
    other = edited(study_protocol, tmp_path / "other.json", change=change, refrozen=refrozen)
    ran = study_run("--out", tmp_path / "study", "--protocol", other)
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.startswith(f"{other}: {member}")


def test_a_protocol_that_is_no_json_or_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{\n  "format": "wireless')
    for name, told in (("cut.json", "cut.json: line 2, column"), ("none.json", "none.json: No such file")):
        ran = study_run("--out", tmp_path / "study", "--protocol", tmp_path / name)
        assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
        assert told in ran.stderr


def test_the_hash_of_the_code_does_not_hang_on_line_endings_or_on_where_it_lies(
    study_protocol: Path, tmp_path: Path
) -> None:
    for package in ("simulators", "xapp"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted(tmp_path.rglob("*.py")):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    def digests() -> list[str]:
        code = "import simulators.closedloop.sources as s; print(s.__file__, s.code_digest(), s.validator_digest())"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        ran = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        file, *found = ran.stdout.split()
        assert Path(file).is_relative_to(tmp_path)
        return found

    hashes = orjson.loads(study_protocol.read_bytes())["hashes"]
    assert digests() == [hashes["code"], hashes["validator"]]
    changed = tmp_path / "xapp" / "support" / "rule.py"
    changed.write_text(changed.read_text().replace("min_visits: int = 12", "min_visits: int = 11"))
    code, validator = digests()
    assert (code != hashes["code"], validator) == (True, hashes["validator"])


# The folder


def test_a_run_leaves_every_file_of_its_design_and_a_manifest_of_all_others(study: Path) -> None:
    said = (ROOT / "docs" / "study.md").read_text()
    rows = said[said.index("## What a run leaves") :]
    firsts = "".join(line.split("|")[1] for line in rows.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`([a-z_]+\.(?:csv|json|jsonl))`", firsts))
    assert {path.name for path in study.iterdir()} == named
    assert orjson.loads((study / "manifest.json").read_bytes()) == manifest({n: contents(study)[n] for n in NAMES})
    told = orjson.loads((study / "protocol.json").read_bytes())
    assert set(told["environment"]) == {"python", "numpy", "scipy", "system", "machine"}
    assert (told["commit"]["id"] is None) == (told["commit"]["reason"] is not None)


def test_a_finished_study_that_this_run_does_not_give_is_left_as_it_is(
    study: Path, study_protocol: Path, tmp_path: Path
) -> None:
    folder = copied(study, tmp_path)
    null = (folder / "null.csv").read_bytes()
    (folder / "null.csv").write_bytes(null.replace(b"\n5,0,0,", b"\n5,0,0,1", 1))
    refused = study_run("--out", folder, "--protocol", study_protocol)
    assert (refused.exit_code, refused.stderr) == (2, f"{folder}: null.csv: not as manifest.json pins it\n")

    forged = manifest({name: contents(folder)[name] for name in NAMES})
    (folder / "manifest.json").write_bytes(orjson.dumps(forged, option=orjson.OPT_INDENT_2) + b"\n")
    before = contents(folder)
    ran = study_run("--out", folder, "--protocol", study_protocol, "--threads", 2)
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert "others here: null.csv;" in ran.stderr
    assert contents(folder) == before


def test_a_folder_of_another_protocol_is_refused_and_each_difference_named(
    study: Path, study_protocol: Path, tmp_path: Path
) -> None:
    folder = copied(study, tmp_path)
    change = put("environment", "numpy", value="1.0")
    edited(folder / "protocol.json", folder / "protocol.json", change=change)
    before = contents(folder)
    ran = study_run("--out", folder, "--protocol", study_protocol)
    assert ran.exit_code == 2
    assert [line.split(":")[0].strip() for line in ran.stderr.splitlines()[1:]] == ["environment.numpy"]
    assert contents(folder) == before


def test_a_folder_with_anything_else_in_it_is_refused(study_protocol: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    ran = study_run("--out", tmp_path, "--protocol", study_protocol)
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert "holds no study" in ran.stderr
    assert contents(tmp_path) == {"thesis.txt": b"all of it"}


def test_a_run_that_was_killed_is_no_study_and_a_run_in_another_process_makes_it_the_same_one_to_the_byte(
    study: Path, study_protocol: Path, tmp_path: Path
) -> None:
    """The other process has another hash seed, time zone and number of threads."""
    folder = tmp_path / "study"
    words = ["--out", str(folder), "--protocol", str(study_protocol)]
    with subprocess.Popen([*RUN, *words], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (folder / "protocol.json").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    told = protocol.read("protocol.json", (study / "protocol.json").read_bytes())
    assert state(folder, told) == "unfinished"
    with pytest.raises(Exception, match=r"holds no finished study: manifest\.json is not there"):
        finished(folder)
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    command = [*RUN, *words, "--threads", "3"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "1,440 cases, 21,600 rows, 3,456,000 episodes" in ran.stdout
    assert "where a run had not ended" in ran.stdout
    assert rows_and_verdicts(folder) == rows_and_verdicts(study)
    before, after = (orjson.loads((one / "protocol.json").read_bytes()) for one in (study, folder))
    assert {**before, "commit": None} == {**after, "commit": None}  # somebody may commit meanwhile


def test_two_runs_do_not_write_into_one_folder_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    with held(folder):
        with pytest.raises(NotRun, match="another run is writing there"), held(folder):
            pass
        with held(tmp_path / "other"):
            pass
    with held(folder):
        assert contents(folder) == {}
    (tmp_path / "file").write_text("")
    with pytest.raises(NotRun, match="file/study: Not a directory"), held(tmp_path / "file" / "study"):
        pass


def test_a_folder_that_cannot_be_is_told_in_one_line(study_protocol: Path, tmp_path: Path) -> None:
    out = tmp_path / "file"
    out.write_text("")
    ran = study_run("--out", out, "--protocol", study_protocol)
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert str(out) in ran.stderr


def test_a_disk_that_takes_no_more_is_told_in_one_line_and_leaves_no_part(study_protocol: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    ran = subprocess.run(
        [*RUN, "--out", str(folder), "--protocol", str(study_protocol)], capture_output=True, text=True, timeout=120,
        check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000)),
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (2, f"{folder}: File too large\n")
    assert contents(folder) == {}


# The files


def test_rows_written_and_read_back_are_the_same_rows(study: Path) -> None:
    files = {name: (study / name).read_bytes() for name in ROWS}
    rows = rows_of(files)
    assert of_rows(rows) == files
    assert (rows.reference.shape, rows.null.shape) == ((3, 24, 15, 8), (3, 24, 15, 8))
    assert (rows.current.shape, len(rows.masks), len(rows.cells)) == ((1_440, 15, 8), 720, 144)
    assert rows.cases == schedule.cases()


def line_of(number: int, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        lines = content.split(b"\n")
        lines[number - 1] = change(lines[number - 1])
        return b"\n".join(lines)

    return changed


BAD: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "a header": ("current.csv", line_of(1, lambda row: row.replace(b"visits", b"seen")), "line 1: the columns are"),
    "a leading zero": ("current.csv", line_of(3, lambda row: b"0" + row), "line 3, column case: '00' is no integer"),
    "an empty cell": ("masks.csv", line_of(2, lambda row: row.replace(b",uniform,", b",,")), "line 2, column family"),
    "another number": ("masks.csv", line_of(2, lambda row: row.replace(b"0.15,", b"0.150,")), "line 2, column target"),
    "a cell too many": ("null.csv", line_of(9, lambda row: row + b",1"), "line 9: 13 cells, and 12 columns"),
    "a missing end": ("schedule.csv", lambda content: content[:-1], "line 1441: cut short"),
    "a feature that is no number": ("drift_features.csv", line_of(7, lambda row: row + b"x"), "line 7, column unmet"),
    "no utf-8": ("cells.csv", line_of(5, lambda row: b"\xff" + row), "line 5: no UTF-8"),
    "a carriage return": ("masks.csv", line_of(2, lambda row: row + b"\r"), "line 2, column digest"),
}


@pytest.mark.parametrize("what", sorted(BAD))
def test_a_file_that_would_not_be_written_so_is_refused_with_file_line_and_column(what: str, study: Path) -> None:
    name, change, told = BAD[what]
    with pytest.raises(FileFault) as refused:
        read(name, change((study / name).read_bytes()))
    assert str(refused.value).startswith(f"{name}: "), refused.value
    assert told in str(refused.value)


OTHER_GRID: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "a wrong sum": ("null.csv", line_of(2, lambda row: row[:-1] + b"999"), "line 2, column visits: not the sum"),
    "a row twice": ("reference.csv", line_of(4, lambda row: row + b"\n" + row), "line 5: row of 5 0 2 where 5 0 3"),
    "a row missing": ("reference.csv", lambda content: content[: content[:-1].rfind(b"\n") + 1], "1079 rows"),
    "another case": ("schedule.csv", line_of(2, lambda row: row.replace(b"0,5,0,", b"0,9,3,")), "line 2: row of 0 9 3"),
    "fewer cases": ("schedule.csv", lambda content: content[: content[:-1].rfind(b"\n") + 1], "1439 rows"),
    "another order": ("cells.csv", line_of(3, lambda row: row.replace(b",1,", b",2,", 1)), "line 3: place 2 of 5 0"),
    "an unvisited cell": ("occupancy.csv", line_of(2, lambda row: row.rsplit(b",", 1)[0] + b",0"), "line 2: cell"),
    "another stream": (
        "drift_features.csv", lambda content: content.replace(b",pilot,", b",development,"), "line 17: row of 5 5 dev",
    ),
    "no stream": ("drift_features.csv", lambda content: content[: content.find(b"\n") + 1], "line 2: 0 rows"),
}  # fmt: skip


def test_files_of_another_grid_than_the_formal_one_are_refused_with_file_and_line(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {one: (study / one).read_bytes() for one in ROWS}
    # Each file is parsed once, and again where it is changed: what is tested is what comes after.
    monkeypatch.setattr("simulators.closedloop.files.read", cache(read))
    for name, change, told in (OTHER_GRID[what] for what in sorted(OTHER_GRID)):
        with pytest.raises(FileFault) as refused:
            rows_of({**files, name: change(files[name])})
        assert str(refused.value).startswith(f"{name}: "), refused.value
        assert told in str(refused.value)


# The commit


def test_the_commit_is_told_and_whether_files_differ_from_it_or_why_it_is_not_known(tmp_path: Path) -> None:
    unknown = commit(tmp_path)
    assert (unknown["id"], unknown["dirty"], unknown["reason"]) == (None, None, "the software is no git checkout")
    if shutil.which("git") is None:
        pytest.skip("no git here")

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True, check=True
        ).stdout

    git("init", "-q")
    assert commit(tmp_path)["id"] is None
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "a")
    assert commit(tmp_path) == {"id": git("rev-parse", "HEAD").strip(), "dirty": False, "reason": None}
    (tmp_path / "a").write_text("2")
    assert commit(tmp_path)["dirty"] is True


def test_the_commit_is_that_of_the_software_where_git_itself_runs_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of another repository, whose variables git sets."""
    if shutil.which("git") is None:
        pytest.skip("no git here")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    known = commit()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / ".git" / "index"))
    assert commit() == known
