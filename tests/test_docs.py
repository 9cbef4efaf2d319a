"""Every command that the README shows runs; the examples it names are what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
LINES = [line.split("#")[0].strip() for block in BLOCKS for line in block.splitlines()]
# What needs a broker, a recording of one, or the whole suite is run by the tests of those parts
PARTS = ("run", "record --boot", "replay", "verify", "answer", "optbench")
ELSEWHERE = ("make", ". .venv", "python docs", *(f"wirelessops {part}" for part in PARTS))
COMMANDS = [line for line in LINES if line and not line.startswith(ELSEWHERE)]


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_of_the_readme_runs(line: str, tmp_path: Path) -> None:
    given = b""
    for part in line.split("|"):
        words = [re.sub(r"schemas/|(?=guard\.pem)", f"{tmp_path}/", word) for word in shlex.split(part)]
        assert words[0] == "wirelessops"
        command = [sys.executable, "-c", "from streams.cli import main; main()", *words[1:]]
        result = subprocess.run(command, input=given, capture_output=True, cwd=ROOT, timeout=60, check=False)
        assert result.returncode == 0, result.stderr
        given = result.stdout
    assert given


def test_every_command_the_readme_names_exists() -> None:
    for line in LINES:
        if line.startswith("wirelessops "):
            command = [sys.executable, "-c", "from streams.cli import main; main()"]
            words = [w for w in shlex.split(line.split("|")[0])[1:] if not w.startswith("-")]
            depth = 2 if words[:1] in (["contract"], ["keys"], ["optbench"]) or words[:2] == ["record", "export"] else 1
            result = subprocess.run([*command, *words[:depth], "--help"], capture_output=True, timeout=60, check=False)
            assert result.returncode == 0, line
            for option in re.findall(r"--[a-z-]+", line.split("|")[0]):
                assert option.encode() in result.stdout, f"{line}: {option}"


def test_links_between_the_documents_lead_somewhere() -> None:
    for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_example_episode_is_applied_after_the_repairs_it_shows() -> None:
    command = [sys.executable, "-c", "from streams.cli import main; main()", "assure", "docs/examples/slicing.json"]
    decision = orjson.loads(subprocess.run(command, capture_output=True, cwd=ROOT, timeout=60, check=True).stdout)
    assert decision["action"] == "APPLY"
    assert {repair["operator"] for repair in decision["repairs"]} == {"rename", "convert_unit"}


def test_the_first_xapp_gets_apply_and_then_hold_from_a_guard_that_a_reader_started() -> None:
    command = [sys.executable, "-c", "from streams.cli import main; main()", "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, text=True) as guard:
        try:
            assert guard.stdout is not None
            address = re.search(r"Kafka at (\S+),", guard.stdout.readline())
            assert address is not None
            xapp = [sys.executable, "docs/examples/first_xapp.py", address.group(1)]
            result = subprocess.run(xapp, capture_output=True, cwd=ROOT, timeout=60, check=True, text=True)
        finally:
            guard.terminate()
    assert re.findall(r"^[A-Z]+$", result.stdout, re.MULTILINE) == ["APPLY", "HOLD"]
    assert guard.returncode == 0
