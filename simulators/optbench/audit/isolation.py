"""Isolation: no way from a method to the answers, by imports, by what it is handed, or while it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from gc import get_referents
from itertools import chain
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Final

import orjson

from simulators.optbench.audit.deciding import Bench, Methods
from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.audit.watching import watched
from simulators.optbench.methods import METHODS
from simulators.optbench.model import BaseItem, Case, Exposure, Facts, Outage, Sealed, Verdict

_ROOT: Final = Path(__file__).parents[3]
_OURS: Final = ("simulators", "streams", "xapp")
_HERE: Final = "simulators.optbench."

SEALED_SIDE: Final = tuple(
    _HERE + name
    for name in (
        "audit", "base.anchors", "base.files", "base.gold", "candidates", "certificate", "episode_account", "frozen",
        "oracle", "realisation", "scoring", "selection", "suite", "synthetic",
    )
)  # fmt: skip
"""Beginnings of the names of modules that make, hold or judge what is sealed."""

SEALED_NOUNS: Final = (Sealed, Case, BaseItem, Facts, Exposure, Outage, Verdict)
"""Types whose values tell what was done to an episode, or what is right."""

_MODEL: Final = _HERE + "model."
METHOD_MODULES: Final = (_HERE + "methods", _HERE + "agents", _HERE + "ablations")

Source = Callable[[str], str | None]
"""A module's name → its source; None for one that is not ours."""


def source_of(module: str) -> str | None:
    """The source of a module of this software."""
    if module.split(".")[0] not in _OURS:
        return None
    place = _ROOT.joinpath(*module.split("."))
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file.read_text()
    return None


def imported(modules: Iterable[str], source: Source = source_of) -> dict[str, str]:
    """Our modules that `modules` import, directly or not → which module does. Imports within functions count."""
    found: dict[str, str] = {}
    ahead = [*modules]
    while ahead:
        module = ahead.pop()
        for name in _imports(source(module) or ""):
            parts = name.split(".")
            for one in (".".join(parts[:n]) for n in range(1, len(parts) + 1)):  # a package runs before its modules
                if one not in found and source(one) is not None:
                    found[one] = module
                    ahead.append(one)
    return found


def imports(subject: Subject, source: Source = source_of) -> Check:
    """No module of the methods, nor what it imports, imports one of `SEALED_SIDE` or names one of `SEALED_NOUNS`."""
    roots = [*METHOD_MODULES, *(f"{_HERE}methods.{file.stem}" for file in _method_files())]
    found = {**dict.fromkeys(roots, "a method"), **imported(roots, source)}
    failures = [
        f"{module}, which {importer} imports, is on the sealed side"
        for module, importer in sorted(found.items())
        if _is_sealed(module)
    ]
    nouns = {noun.__name__ for noun in SEALED_NOUNS}
    for module in sorted(found):
        named = nouns & {name.removeprefix(_MODEL) for name in _imports(source(module) or "")}
        failures += [f"{module} imports the noun {noun}" for noun in sorted(named)]
    return Check(
        "isolation-imports",
        f"isolation by imports: {len(found)} modules are reached from the methods, of which {len(failures)} lead to "
        "what is sealed",
        {"modules": len(found), "leading": len(failures)},
        tuple(failures),
    )


def objects(subject: Subject, methods: Methods = METHODS) -> Check:
    """From each method, after it has decided an episode of each task, and from the view that it was handed: no noun.

    Walked are members, items, closures, defaults, bound objects, caches, and globals of our modules (`reached`); a
    backbone that is synthetic is on the sealed side itself, so that methods have one here that knows the view alone.
    """
    bench = Bench(methods)
    for case in {case.sealed.item.task: case for case in subject.cases}.values():
        bench.decide(case.view)
    failures: list[str] = []
    walked = 0
    handed = [("a view", orjson.loads(orjson.dumps(case.view))) for case in subject.cases[:1]]
    for name, root in (*bench.agents.items(), *handed):
        seen = 0
        for one, path in reached(root):
            seen += 1
            if isinstance(one, SEALED_NOUNS):
                failures.append(f"{name} reaches a {type(one).__name__} by {path}")
            elif isinstance(one, FunctionType) and _is_sealed(one.__module__):
                failures.append(f"{name} reaches {one.__module__}.{one.__qualname__} by {path}")
        walked += seen
    return Check(
        "isolation-objects",
        f"isolation by objects: {walked} objects are reached from {len(methods)} methods and a view, of which "
        f"{len(failures)} are sealed",
        {"objects": walked, "methods": len(methods), "sealed": len(failures)},
        tuple(failures),
    )


def runtime(subject: Subject, methods: Methods = METHODS) -> Check:
    """Methods decide with the sealed part poisoned, and each is watched (`watching`).

    One episode of each task and family. A method fails that reads the poisoned part (also where it hides the error),
    while which code of `SEALED_SIDE` runs, or that opens, imports, starts or inspects what it was not handed: files,
    modules, threads and processes, frames, the collector. They are made under watch, too.
    """
    chosen = {(case.sealed.item.task, case.sealed.family): case for case in reversed(subject.cases)}
    with watched(_is_sealed) as noted:
        bench = Bench(methods)
    failures = [f"while methods were made: {what}" for what in sorted(noted)]
    for case in (chosen[key] for key in sorted(chosen)):
        with watched(_is_sealed) as noted:
            bench.decide(case.view)
        read = sorted({*bench.touched})
        failures += [f"{case.episode_id}: a method read `{name}` of the sealed part" for name in read]
        failures += [f"{case.episode_id}: while methods decided: {what}" for what in sorted(noted)]
        bench.touched.clear()
    decided = len(chosen) * len(methods)
    return Check(
        "isolation-runtime",
        f"isolation at run time: {decided} decisions with the sealed part poisoned, {len(failures)} reads of it, "
        "calls of sealed code, or reaches for files, modules, frames and the like",
        {"decisions": decided, "methods": len(methods), "read": len(failures)},
        tuple(failures),
    )


def reached(root: object) -> Iterator[tuple[object, str]]:
    """Every object that is reached from `root`, and the way there (types by name), nearest first.

    Stops at modules, and at functions and classes of others' code: what these reach is the interpreter's, not ours.
    """
    seen = {id(root)}
    ahead: list[tuple[object, str]] = [(root, type(root).__name__)]
    for one, path in ahead:  # grows meanwhile
        yield one, path
        for child in _children(one):
            if id(child) not in seen:
                seen.add(id(child))
                ahead.append((child, f"{path[-_PATH:]} > {getattr(child, '__name__', type(child).__name__)}"))


_PATH: Final = 120
_MODULE_NAMES: Final = frozenset({"__builtins__", "__spec__", "__loader__", "__cached__", "__file__"})


def _children(one: object) -> Iterable[object]:
    if isinstance(one, ModuleType | CodeType | FrameType | BuiltinFunctionType | str | bytes | int | float):
        return ()
    if isinstance(one, FunctionType):
        held = [one.__closure__, one.__defaults__, one.__kwdefaults__, one.__dict__]
        if _is_ours(one.__module__):
            held += [value for name, value in one.__globals__.items() if name not in _MODULE_NAMES]
        return held
    if isinstance(one, type):
        return (*one.__bases__, *vars(one).values()) if _is_ours(one.__module__) else ()
    if isinstance(one, partial):
        return (one.func, one.args, one.keywords)
    return get_referents(one)


def _is_ours(module: object) -> bool:
    """Of this software, and not what asks the methods."""
    return isinstance(module, str) and module.split(".")[0] in _OURS and module not in _ASKING


def _is_sealed(module: object) -> bool:
    """Whether a module is on the sealed side; of the audit, what asks the methods is not."""
    return isinstance(module, str) and module.startswith(SEALED_SIDE) and module not in _ASKING


_ASKING: Final = frozenset({_HERE + "audit.deciding", _HERE + "audit.isolation", _HERE + "audit.watching"})


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from chain([node.module], (f"{node.module}.{alias.name}" for alias in node.names))


def _method_files() -> list[Path]:
    return sorted((_ROOT / "simulators/optbench/methods").glob("[!_]*.py"))
