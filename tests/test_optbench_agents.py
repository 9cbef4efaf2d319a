"""Agents of a user's own: loaded as scripts are, named apart, and never trusted with the run that they are part of."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from optbench_suites import suite as whole

from simulators.optbench.agents import Completion, Prompt
from simulators.optbench.methods import ABLATIONS, METHODS
from simulators.optbench.suite import subset, write
from streams.commands.optbench_agents import agents_of

MAIN = (sys.executable, "-c", "from streams.cli import main; main()", "optbench")
EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "optbench_agent.py"
N = 6
HELD = "Bundle(view['episode_id'], 'HOLD')"
AGENT = f"""
from simulators.optbench.agents import Bundle
class Agent:
    name = "mine"
    def __init__(self, backbone): pass
    def decide(self, view): return {HELD}
"""


class Silent:
    """A backbone that says nothing."""

    name = "silent"
    synthetic = False

    def complete(self, prompt: Prompt) -> Completion:
        return Completion("")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("suite")
    write(subset(whole(), whole().cases[:: 600 // N]), directory)
    return directory


def run(suite: Path, method: object, *more: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = ["run", "--suite", suite, "--backbone", "synthetic-a", "--method", method, *more]
    return subprocess.run(
        [*MAIN, *map(str, words)], capture_output=True, text=True, timeout=120, check=False, cwd=folder
    )


def rows(result: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert result.returncode == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def written(file: Path, text: str = AGENT) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def labels(names: Sequence[str]) -> list[str]:
    return [one.label for one in agents_of(names, Silent())]


# what cannot be had


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no such file"),
        ("Nothing = 1", "no class or function 'Agent'"),
        ("def Agent(backbone): raise KeyError('x')", "KeyError"),
        ("def Agent(backbone): return 3", "no decide"),
        ("import nowhere_to_be_found", "nowhere_to_be_found"),
        ("this is no Python", "SyntaxError"),
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        ("import sys\ndef Agent(backbone): sys.exit(0)", "SystemExit: 0"),
        ("def Agent(backbone): raise GeneratorExit", "GeneratorExit"),
        ("raise BaseException('two\\nlines')", "BaseException: two lines"),
        ("class E(Exception):\n  def __str__(self): raise E\ndef Agent(backbone): raise E", "E, which cannot say why"),
        ("def __getattr__(name): raise SystemExit(0)", "SystemExit"),
        ("class Agent:\n  def __init__(self, b): 0\n  @property\n  def decide(self): raise OSError", "OSError"),
    ],
)
def test_an_agent_that_cannot_be_had_is_told_in_one_line(
    suite: Path, tmp_path: Path, text: str | None, reason: str
) -> None:
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    result = run(suite, f"{file}:Agent")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    assert reason in result.stderr


# what it does while it runs


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("return view['foo']", "KeyError: 'foo'"),
    ],
)
def test_an_agent_that_fails_is_an_invalid_output_in_every_denominator_and_told(
    suite: Path, tmp_path: Path, statement: str, reason: str, parallel: int
) -> None:
    file = written(tmp_path / "mine.py", AGENT.replace(f"return {HELD}", statement))
    result = run(suite, f"{file}:Agent", "--json", "--parallel", parallel)
    (row,) = rows(result)
    assert (row["n"], row["invalid"], row["exact"], row["unsafe_apply_rate"]) == (N, N, 0, 0)
    assert f"mine, synthetic-a: {N} invalid outputs; the first: {reason}\n" in result.stderr


def test_what_an_agent_prints_is_no_part_of_the_rows(suite: Path, tmp_path: Path) -> None:
    noisy = "import os, sys\nprint('loaded')\n" + AGENT.replace("pass", "print('made')").replace(
        "return", "print('deciding'); os.write(1, b'raw\\n'); os.system('echo child'); sys.stdout.write('end'); return"
    )
    result = run(suite, f"{written(tmp_path / 'mine.py', noisy)}:Agent", "--json")
    assert rows(result)[0]["n"] == N
    for word in ("loaded", "made", "deciding", "raw", "child", "end"):
        assert word in result.stderr


# how it is loaded


def test_an_agent_imports_what_lies_beside_it_when_it_is_loaded_and_when_it_decides(
    suite: Path, tmp_path: Path
) -> None:
    text = "from first import X\n" + AGENT.replace("return", "import second; return")
    file = written(tmp_path / "a" / "mine.py", text)
    written(file.parent / "first.py", "X = 1")
    written(file.parent / "second.py", "X = 1")
    assert rows(run(suite, f"{file}:Agent", "--json"))[0]["invalid"] == 0
    assert rows(run(suite, "mine.py:Agent", "--json", folder=file.parent))[0]["invalid"] == 0
    assert rows(run(suite, "mine:Agent", "--json", folder=file.parent))[0]["invalid"] == 0


def test_two_agents_with_helpers_of_one_name_have_each_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        text = f"from beside_both import X\nassert X == {name!r}\n" + AGENT
        written(tmp_path / name / "mine.py", text)
        written(tmp_path / name / "beside_both.py", f"X = {name!r}")
    assert len(agents_of([f"{tmp_path}/a/mine.py:Agent", f"{tmp_path}/b/mine.py:Agent"], Silent())) == 2


def test_a_file_that_is_called_as_a_library_takes_nobodys_place(tmp_path: Path) -> None:
    import colorsys

    agents_of([f"{written(tmp_path / 'colorsys.py')}:Agent"], Silent())
    assert sys.modules["colorsys"] is colorsys
    agents_of([f"{written(tmp_path / 'wave.py')}:Agent"], Silent())
    assert "wave" not in sys.modules


# what it is called


def test_an_agent_is_called_by_its_own_name_where_nobody_else_is(tmp_path: Path) -> None:
    one = f"{written(tmp_path / 'a' / 'mine.py')}:Agent"
    assert labels([f"{EXAMPLE}:Careful", one, "direct"]) == ["careful", "mine", "direct"]
    other = f"{written(tmp_path / 'b' / 'other.py')}:Agent"
    assert labels([one, other]) == ["mine.py:Agent", "other.py:Agent"]
    again = f"{written(tmp_path / 'c' / 'mine.py')}:Agent"
    assert labels([one, again]) == [one, again]


@pytest.mark.parametrize("name", [*METHODS, *ABLATIONS, "", "  ", "two\nlines", "x" * 200, 7, None])
def test_a_name_that_is_none_or_a_methods_own_is_not_taken(tmp_path: Path, name: Any) -> None:
    file = written(tmp_path / "odd.py", AGENT.replace('"mine"', repr(name)))
    assert labels([f"{file}:Agent"]) == [f"{file.name}:Agent"]


def test_a_name_that_cannot_be_read_is_not_taken(tmp_path: Path) -> None:
    text = AGENT.replace('name = "mine"', "@property\n    def name(self): raise SystemExit(0)")
    assert labels([f"{written(tmp_path / 'odd.py', text)}:Agent"]) == ["odd.py:Agent"]


# what its results are bound to


def test_kept_results_of_an_agent_that_was_edited_are_refused(suite: Path, tmp_path: Path) -> None:
    file, beside = written(tmp_path / "mine.py", "import beside_mine\n" + AGENT), tmp_path / "beside_mine.py"
    written(beside, "X = 1")
    for name in (f"{file}:Agent", "mine:Agent"):
        results = tmp_path / name.replace("/", "-")
        for edited in (file, beside):
            asked = ("--results", results)
            assert run(suite, name, *asked, folder=tmp_path).returncode == 0
            assert run(suite, name, *asked, folder=tmp_path).returncode == 0
            before = edited.read_text()
            edited.write_text(before + "\n# edited\n")
            refused = run(suite, name, *asked, folder=tmp_path)
            assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
            assert "were made by other code" in refused.stderr
            assert "use another --results folder, or delete this file" in refused.stderr
            edited.write_text(before)


def test_kept_results_are_bound_to_the_code_of_methods_and_engine(tmp_path: Path) -> None:
    """In a copy of the sources: an edit of any of them is another code."""
    root = Path(__file__).parent.parent
    for name in ("simulators", "streams", "xapp"):
        for source in (root / name).rglob("*.py"):
            written(tmp_path / source.relative_to(root), source.read_text())
    ask = "from simulators.optbench.sources import workflow_digest as w, generator_digest as g; print(w(), g())"

    def told() -> list[str]:
        ran = subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
        return ran.stdout.split()

    workflow, generator = told()
    optbench = tmp_path / "simulators" / "optbench"
    for edited, moves in (
        (optbench / "methods" / "critic.py", (True, False)),
        (optbench / "ablations.py", (True, False)),
        (optbench / "prompts.py", (True, False)),
        (optbench / "synthetic.py", (True, False)),
        (tmp_path / "xapp" / "integrity" / "conflict.py", (True, False)),
        (optbench / "oracle.py", (False, True)),
        (optbench / "report" / "sections.py", (False, False)),
    ):
        before = edited.read_text()
        edited.write_text(before + "\n# edited\n")
        assert tuple(now != then for now, then in zip(told(), (workflow, generator), strict=True)) == moves, edited
        edited.write_text(before)
    assert told() == [workflow, generator]
