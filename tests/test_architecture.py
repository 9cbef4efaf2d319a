"""The directions of the house: xapp <- simulators <- streams, and a ground floor without clock, chance or wire."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = {"xapp": {"xapp"}, "simulators": {"xapp", "simulators"}, "streams": {"xapp", "simulators", "streams"}}

# Standard library modules with a clock, chance, files, processes or a network in them.
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "fcntl",
        "ftplib",
        "getpass",
        "glob",
        "http",
        "imaplib",
        "io",
        "logging",
        "mmap",
        "multiprocessing",
        "os",
        "pathlib",
        "platform",
        "poplib",
        "queue",
        "random",
        "sched",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "smtplib",
        "socket",
        "socketserver",
        "sqlite3",
        "ssl",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
        "webbrowser",
        "xmlrpc",
        "zoneinfo",
    }
)
PURE_THIRD_PARTY = frozenset({"cryptography", "networkx", "numpy", "orjson", "pydantic", "pydantic_core", "yaml"})
IMPURE_CALLS = frozenset({"open", "print", "input", "eval", "exec", "compile", "breakpoint", "__import__"})
CLOCK_READS = frozenset({"now", "utcnow", "today"})
HEAVY = ("faust", "aiokafka", "rich", "networkx", "numpy", "confluent_kafka", "aiohttp")


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"{package}/ has no modules: is the tree whole?"
    return found


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted module) of every import in a file, those inside functions too."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            yield node.lineno, ".".join([*base, *([node.module] if node.module else [])])


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_no_floor_imports_a_higher_one(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(package)
        for line, name in imports(path)
        if ((top := name.split(".")[0]) in FLOORS and top not in FLOORS[package]) or top == "tests"
    ]
    assert wrong == []


def test_the_engine_imports_nothing_with_a_clock_chance_files_or_a_network() -> None:
    allowed = (sys.stdlib_module_names - IMPURE) | PURE_THIRD_PARTY | {"xapp"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules("xapp")
        for line, name in imports(path)
        if name.split(".")[0] not in allowed or name.startswith("numpy.random")
    ]
    assert wrong == []


def test_the_engine_calls_nothing_that_reads_a_file_or_a_clock() -> None:
    wrong = []
    for path in modules("xapp"):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.id}()")
            if isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_READS:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} calls .{node.func.attr}()")
    assert wrong == []


def test_the_simulated_network_knows_no_kafka_and_no_terminal() -> None:
    wire = {"aiokafka", "confluent_kafka", "faust", "mode", "aiohttp", "rich", "typer", "socket"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules("simulators")
        for line, name in imports(path)
        if name.split(".")[0] in wire
    ]
    assert wrong == []


def heavy_modules_after(code: str, *, stdin: str = "") -> list[str]:
    """Which of the heavy packages a fresh interpreter holds after running `code`."""
    report = f"\nimport sys\nprint('HEAVY', [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    command = [sys.executable, "-c", code + report]
    ran = subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    lines = [line for line in ran.stderr.splitlines() if line.startswith("HEAVY ")]
    assert lines, f"exit {ran.returncode}: {ran.stderr[-2000:]}"
    listed: list[str] = ast.literal_eval(lines[-1].removeprefix("HEAVY "))
    return listed


@pytest.mark.parametrize("module", ["streams.cli", "xapp.engine", "streams.replay"])
def test_importing_starts_nothing_heavy(module: str) -> None:
    assert heavy_modules_after(f"import {module}") == []


def test_assuring_one_episode_loads_nothing_heavy() -> None:
    t = 1_790_000_000_000
    episode = {
        "format": "wirelessops.episode/1",
        "episode_id": "e-1",
        "decided_at_ms": t,
        "contract": {
            "contract_id": "load/1",
            "fields": {
                "load": {"kind": "observed", "unit": "1", "freshness_ms": 1000, "sources": ["s"]},
                "share": {"kind": "planned", "unit": "1"},
            },
        },
        "sources": {},
        "observations": [
            {"id": "o1", "name": "load", "value": 3, "source": "s", "event_time_ms": t - 10, "ingest_time_ms": t - 5}
        ],
        "proposal": {
            "proposal_id": "p-1",
            "proposer": "x",
            "created_at_ms": t,
            "control_key": "k",
            "plan": {"share": {"value": 1, "unit": "1"}},
        },
    }
    code = (
        "import sys\n"
        "from streams.cli import main\n"
        "sys.argv = ['wirelessops', 'assure', '-']\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
    )
    assert heavy_modules_after(code, stdin=json.dumps(episode)) == []
