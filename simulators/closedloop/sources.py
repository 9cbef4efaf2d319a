"""Digests of this software's own sources: what rows and verdicts are made by, and what checks them.

A digest is of module names and texts alone: line endings, and where the software lies, make no difference.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_HERE: Final = "simulators.closedloop"
MAKERS: Final = tuple(f"{_HERE}.{name}" for name in ("running", "derived", "leakage", "files"))
"""The modules that make a run; whatever of this software they import makes it with them."""


@cache
def code_digest() -> str:
    """SHA-256 over the sources of `MAKERS` and of all they import from this software."""
    return digest(reached(MAKERS))


@cache
def validator_digest() -> str:
    """SHA-256 over the sources of the independent validator."""
    folder = _ROOT.joinpath(*_HERE.split("."), "validator")
    return digest(f"{_HERE}.validator.{path.stem}" for path in folder.glob("*.py"))


def reached(modules: Iterable[str]) -> frozenset[str]:
    """These modules of this software, and all that they import from it, by dotted name; packages on the way, too."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imported(name)
            waiting += [parent for parent in (name.rpartition(".")[0],) if parent]
    return frozenset(found)


def digest(modules: Iterable[str]) -> str:
    """`sha256:` and the hash over names and texts of these modules, whatever their order and line endings."""
    found = hashlib.sha256()
    for name in sorted(modules):
        text = b"\n".join(_path(name).read_bytes().splitlines())
        found.update(name.encode() + b"\0" + text + b"\0")
    return "sha256:" + found.hexdigest()


def _path(name: str) -> Path:
    folder = _ROOT.joinpath(*name.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _imported(name: str) -> Iterator[str]:
    """The modules of this software that a module names in its imports, those inside functions too."""
    for node in ast.walk(ast.parse(_path(name).read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in ("simulators", "xapp") and _path(name).is_file())
