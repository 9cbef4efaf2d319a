"""The installed sources of the study, hashed as files: which modules make a run is followed through their imports.

The documented hash: over the modules by name, each as name, NUL, text with its lines joined by line feeds, NUL.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
STUDY: Final = "simulators.closedloop"
MAKERS: Final = tuple(f"{STUDY}.{name}" for name in ("running", "derived", "leakage", "files"))


def code() -> str:
    """The hash of the modules that make a run and of all that they import of this distribution."""
    open_modules, seen = list(MAKERS), set[str]()
    while open_modules:
        name = open_modules.pop()
        if name and name not in seen:
            seen.add(name)
            open_modules.append(name.rpartition(".")[0])
            open_modules.extend(_imports(name))
    return _hash(seen)


def validator() -> str:
    """The hash of this validator."""
    return _hash(f"{STUDY}.validator.{path.stem}" for path in Path(__file__).parent.glob("*.py"))


def _hash(names: Iterable[str]) -> str:
    found = hashlib.sha256()
    for name in sorted(names):
        text = b"\n".join(_file(name).read_bytes().splitlines())
        found.update(b"%s\0%s\0" % (name.encode(), text))
    return f"sha256:{found.hexdigest()}"


def _file(name: str) -> Path:
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(name: str) -> Iterator[str]:
    for one in _named(_file(name).read_bytes()):
        if one.split(".")[0] in ("simulators", "xapp") and _file(one).is_file():
            yield one


@cache
def _named(source: bytes) -> tuple[str, ...]:
    """All that a source imports, and what may be a module of it."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)
