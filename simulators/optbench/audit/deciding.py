"""Methods as the audit asks them: over a backbone that knows the public view alone, with the sealed part poisoned."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from simulators.optbench.agents import Agent, Backbone, Completion, Prompt
from simulators.optbench.bundles import encode
from simulators.optbench.methods import METHODS
from simulators.optbench.model import Case, Sealed
from simulators.optbench.running import decide
from simulators.optbench.tools import answer_of, contract_of, nominal

Methods = Mapping[str, Callable[[str, Backbone], Agent]]


class PoisonedError(RuntimeError):
    """Somebody read a sealed part."""


class Poison:
    """Stands where a sealed part would: whatever is asked of it is noted in `touched`, and raises PoisonedError."""

    def __init__(self, touched: list[str]) -> None:
        object.__setattr__(self, "touched", touched)

    def __getattribute__(self, name: str) -> Any:
        object.__getattribute__(self, "touched").append(name)
        raise PoisonedError(f"the sealed part was asked for its {name}")


@dataclass(slots=True)
class Listener:
    """A backbone that says `reply` to everything, and keeps what it was asked."""

    reply: str = "{}"
    heard: list[Prompt] = field(default_factory=list)
    name: str = "listener"
    synthetic: bool = True

    def complete(self, prompt: Prompt) -> Completion:
        """The one reply there is."""
        self.heard.append(prompt)
        return Completion(self.reply)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a method made of a view: its bundle, as a line of JSON, and every prompt that it sent."""

    bundle: str
    prompts: bytes


class Bench:
    """The methods, each over a listener of its own."""

    def __init__(self, methods: Methods = METHODS) -> None:
        self.touched: list[str] = []
        self.agents: dict[str, Agent] = {}
        self._listeners: dict[str, Listener] = {}
        for name, make in methods.items():
            self._listeners[name] = Listener()
            self.agents[name] = make(name, self._listeners[name])

    def decide(self, view: Mapping[str, Any], sealed: Sealed | None = None) -> dict[str, Decided]:
        """Method → what it makes of a view. All get the same proposal, made of the view (see `plain_proposal`).

        `sealed`: what stands beside the view, for whoever looks there; None: poison, so that `touched` holds what of it
        a method reads.
        """
        if not self.agents:
            return {}
        case = Case(view, cast(Sealed, Poison(self.touched)) if sealed is None else sealed)
        reply = plain_proposal(view)
        return {name: self._decided(name, case, reply) for name in self.agents}

    def _decided(self, name: str, case: Case, reply: str) -> Decided:
        listener = self._listeners[name]
        listener.reply = reply
        listener.heard.clear()
        bundle = decide(case, self.agents[name])
        return Decided(encode(bundle), orjson.dumps(listener.heard))


def plain_proposal(view: Mapping[str, Any]) -> str:
    """APPLY, with the nominal answer of the task and the plan that gives it: what reads no evidence would propose."""
    contract = contract_of(view["episode"])
    values = nominal(view)
    planned = {name: f for name, f in contract.fields.items() if f.kind != "observed" and name in values}
    unit = contract.fields["answer"].unit if view["task"]["task"] == "WCHW" else ""
    proposal = {
        "action": "APPLY",
        "answer": answer_of(view["task"]["task"], values, unit),
        "plan": {name: {"value": values[name], "unit": f.unit} for name, f in planned.items()},
        "fields": {},
    }
    return json.dumps(proposal)
