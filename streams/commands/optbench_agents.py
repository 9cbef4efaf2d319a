"""Agents that a run can be asked for: the shipped methods, and a user's own as `FILE.py:NAME` or `MODULE:NAME`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from simulators.optbench.agents import Agent, Backbone
from simulators.optbench.backbones import Watched
from simulators.optbench.bundles import reason_of
from streams.commands.answering import NotRun

_PRIVATE: Final = "wirelessops_own_agent_"
"""What the names of modules begin with that were read from a FILE.py: none of them is any other module's name."""
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """An agent over a backbone of its own to watch. `label`: its name in rows and results; `code`: what made it.

    `code` is a digest of all sources of ours that make bundles, and of a user's own agent.
    """

    label: str
    agent: Agent
    backbone: Watched
    code: str

    @property
    def row(self) -> str:
        """What its row is called."""
        return f"{self.label}, {self.backbone.name}"


def is_own(name: str) -> bool:
    """Whether a method's name is that of a user's own agent."""
    return ":" in name


def agents_of(names: Sequence[str], backbone: Backbone) -> list[Asked]:
    """Methods, ablations and own agents over a backbone, each with a name that is no other's.

    An own agent is called by its `name` where that is a text of one line that no other agent or method has, else by
    file (or module) and class. Raises NotRun for one that cannot be had, and says why.
    """
    from simulators.optbench.sources import workflow_digest

    watched = {name: Watched(backbone) for name in names}
    made = {name: _made(name, watched[name]) for name in names}
    labels = _labels(made)
    digests = {name: workflow_digest() + (f", {_loaded(_where(name))[1]}" if is_own(name) else "") for name in names}
    return [Asked(labels[name], made[name], watched[name], digests[name]) for name in names]


def _made(name: str, backbone: Backbone) -> Agent:
    from simulators.optbench.methods import build

    if not is_own(name):
        return build(name, backbone)
    make = _named_by(name)
    agent = _tried(f"{name}: called with a backbone, it raised", lambda: make(backbone))
    if not _tried(f"{name}: its decide(view) raised", lambda: callable(getattr(agent, "decide", None))):
        raise NotRun(f"{name} gave a {type(agent).__name__}, which has no decide(view)")
    return agent  # type: ignore[no-any-return]


def _labels(made: dict[str, Agent]) -> dict[str, str]:
    """Own agents' names by what they were asked for as; of each the first of its possible names that is not taken."""
    from simulators.optbench.methods import ABLATIONS, METHODS

    possible = {
        name: [*_own_name(agent), _short(name), name] if is_own(name) else [name] for name, agent in made.items()
    }
    claimed = Counter(one for names in possible.values() for one in set(names))
    shipped = {*METHODS, *ABLATIONS}
    return {
        name: next((one for one in names if claimed[one] == 1 and (one == name or one not in shipped)), name)
        for name, names in possible.items()
    }


def _own_name(agent: Agent) -> Iterator[str]:
    try:
        name: Any = agent.name
    except KeyboardInterrupt:
        raise
    except BaseException:
        return
    if isinstance(name, str) and 0 < len(name.strip()) <= _LONGEST and name.isprintable():
        yield name.strip()


def _short(name: str) -> str:
    where, _, attribute = name.rpartition(":")
    return f"{Path(where).name}:{attribute}"


def _where(name: str) -> str:
    return name.rpartition(":")[0]


def _named_by(name: str) -> Callable[[Backbone], Any]:
    """What `name` names: a class or a function that takes a backbone."""
    where, _, attribute = name.rpartition(":")
    module = _loaded(where)[0]
    made = _tried(f"{where}: {attribute!r} raised", lambda: getattr(module, attribute, None))
    if not callable(made):
        raise NotRun(f"{where} holds no class or function {attribute!r}")
    return made  # type: ignore[no-any-return]


def _tried(what: str, call: Callable[[], Any]) -> Any:
    """What a stranger's code gives. Raises NotRun, on one line, for whatever it raises; Ctrl-C stays what it is."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise NotRun(f"{what} {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(reason_of(error).split()).encode(errors="replace").decode()


@cache
def _loaded(where: str) -> tuple[ModuleType, str]:
    """(the module of a FILE.py or of a module's name, SHA-256 of its source and of those beside it that it loaded)."""
    for name in _beside_agents():
        del sys.modules[name]  # another agent's folder may hold another module of that name
    before = set(sys.modules)
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else _by_name(where)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise NotRun(f"{where}: {_line(error)}") from error
    file = _file_of(module)
    if file is None:
        raise NotRun(f"{where}: there is no source of it")
    loaded = [one for name, one in sys.modules.items() if name not in before]
    return module, _digest(Path(file), loaded)


def _beside_agents() -> list[str]:
    """Names of the modules that were loaded from folders of agents, the agents themselves left out."""
    files = {name: Path(file) for name, one in list(sys.modules.items()) if isinstance(file := _file_of(one), str)}
    folders = {file.parent for name, file in files.items() if name.startswith(_PRIVATE)}
    return [name for name, file in files.items() if not name.startswith(_PRIVATE) and _is_beside(file, folders)]


def _file_of(module: ModuleType) -> Any:
    return getattr(module, "__file__", None)


def _is_beside(file: Path, folders: Iterable[Path]) -> bool:
    return "site-packages" not in file.parts and any(file.is_relative_to(folder) for folder in folders)


def _digest(own: Path, loaded: Iterable[ModuleType]) -> str:
    files = {Path(file) for one in loaded if isinstance(file := _file_of(one), str)}
    beside = {file for file in files if _is_beside(file, [own.parent]) and file.is_file()}
    digest = hashlib.sha256()
    for file in sorted({own} | beside):
        digest.update(file.name.encode(errors="replace") + b"\0" + file.read_bytes() + b"\0")
    return f"agent sha256:{digest.hexdigest()}"


@contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    """First on the path while an agent is loaded, as of a script; last later, for what it imports when it decides."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def _by_name(where: str) -> ModuleType:
    with _on_path(Path.cwd()):
        return importlib.import_module(where)


def _from_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise FileNotFoundError("there is no such file")
    file = file.resolve()
    name = _PRIVATE + hashlib.sha256(str(file).encode(errors="replace")).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    with _on_path(file.parent):
        spec.loader.exec_module(module)
    return module
