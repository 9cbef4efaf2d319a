"""The top level of the tree is a contract with everybody who opens the repository: nothing else may grow there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
REQUIRED = frozenset(
    {
        ".ci",
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "deploy",
        "docs",
        "helm",
        "pyproject.toml",
        "simulators",
        "streams",
        "tests",
        "xapp",
    }
)
ALLOWED = REQUIRED | {"docker-compose.yml", ".dockerignore", ".gitattributes"}


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git work tree (an unpacked archive): git cannot say what is tracked")
    return [name for name in listing.stdout.split("\0") if name]


def test_the_top_level_holds_what_is_agreed_and_nothing_else() -> None:
    top = {name.split("/", 1)[0] for name in tracked()}
    assert top - ALLOWED == set()
    assert REQUIRED - top == set()


def test_no_generated_or_downloaded_file_is_tracked() -> None:
    generated = {".pyc", ".log", ".pcap", ".gz", ".db"}
    names = tracked()
    assert [name for name in names if Path(name).suffix in generated] == []
    assert [name for name in names if name.endswith("bench.json")] == []
    assert [name for name in names if (ROOT / name).is_file() and (ROOT / name).stat().st_size > 500_000] == []


def test_ci_runs_what_a_developer_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
    assert "make test" in script
