"""Agents that a run can be asked for: the shipped methods, and a user's own as `FILE.py:NAME` or `MODULE:NAME`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulators.optbench.agents import Agent, Backbone
from streams.commands.optbench_lines import NotRun


def is_own(name: str) -> bool:
    """Whether a method's name is that of a user's own agent."""
    return ":" in name


def agent_of(name: str, backbone: Backbone) -> Agent:
    """The agent of a method, an ablation, or a user's own. Raises NotRun for one that cannot be had, and says why."""
    from simulators.optbench.methods import build

    if not is_own(name):
        return build(name, backbone)
    made = _found(name)
    try:
        agent = made(backbone)
    except Exception as error:
        raise NotRun(f"{name}: called with a backbone, it raised {type(error).__name__}: {error}") from error
    if not callable(getattr(agent, "decide", None)):
        raise NotRun(f"{name} gave a {type(agent).__name__}, which has no decide(view)")
    return agent  # type: ignore[no-any-return]


def source_of(name: str) -> str:
    """What tells a user's own agent from an earlier one of its name: SHA-256 of its file; of a method, nothing."""
    where = name.rpartition(":")[0]
    if not where.endswith(".py") or not Path(where).is_file():
        return ""
    return f", agent sha256:{hashlib.sha256(Path(where).read_bytes()).hexdigest()}"


def _found(name: str) -> Callable[[Backbone], Any]:
    """What `name` names: a class or a function that takes a backbone."""
    where, _, attribute = name.rpartition(":")
    try:
        module = _module(where)
    except Exception as error:
        raise NotRun(f"{where}: {type(error).__name__}: {error}") from error
    made = getattr(module, attribute, None)
    if not callable(made):
        raise NotRun(f"{where} holds no class or function {attribute!r}")
    return made  # type: ignore[no-any-return]


def _module(where: str) -> Any:
    if not where.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(where)
        finally:
            sys.path.remove(str(Path.cwd()))
    if not Path(where).is_file():
        raise FileNotFoundError("there is no such file")
    spec = importlib.util.spec_from_file_location(Path(where).stem, where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
