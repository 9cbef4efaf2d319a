"""What plugs into the benchmark: backbones that answer prompts, and agents that decide episodes.

A user's own agent is any object with `name` and `decide(view) -> Bundle`. It gets the public view of an episode and
nothing else, and is scored on what it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a backbone is asked. `messages`: (role, text), roles `system`, `user`, `assistant`.

    `purpose` and `disputed` (what a critique disputes: `plan:FIELD`, `fields:FIELD`, or `action:ACTION` with the action
    that it suggests) tell a synthetic proposer what the text says; a language model reads the messages alone.
    """

    episode_id: str
    messages: tuple[tuple[str, str], ...]
    purpose: Literal["propose", "revise"] = "propose"
    round: int = 0
    disputed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back. `error` is set, and `text` empty, where the call failed for good.

    `cost_usd`: None where it is unknown.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    cached: bool = False
    error: str | None = None


class Backbone(Protocol):
    """Answers prompts. `synthetic` says that no model stands behind it."""

    @property
    def name(self) -> str:
        """Its name in rows and results."""
        ...

    @property
    def synthetic(self) -> bool:
        """Whether it is a noise model over known answers."""
        ...

    def complete(self, prompt: Prompt) -> Completion:
        """The answer; never raises for a call that fails, but says so in `error`."""
        ...


@dataclass(frozen=True, slots=True)
class RawProposal:
    """A backbone's reply, read. `action` None: it named none that exists.

    `answer`: the task's answer, structured or free text. `plan`: field → `{"value", "unit"}` as written. `fields`:
    observed field → `{"state": "supported" | "blocked", "observation": id | null}` as claimed.
    """

    action: str | None
    answer: Any
    plan: Mapping[str, Any]
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a method makes of one episode.

    `action`: one of the five, or None where the output is invalid (then `invalid` says why, and it still counts).
    `answer`: the rebuilt candidate answer, also where nothing is executed. `plan`: what is released, field →
    `{"value", "unit"}`; on a refusal the candidate, not executable. `record`: `{"fields": {field: {"state",
    "observation", "value", "unit"}}, "blocked": [ids], "repairs": [...]}` or None; `value` and `unit` are those under
    which the observation supports the field. `proposed`: the proposal before anything was done to it, None where the
    method had none.
    """

    episode_id: str
    action: str | None
    answer: Any = None
    plan: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] | None = None
    proposed: RawProposal | None = None
    invalid: str | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None


class Agent(Protocol):
    """Decides one episode from its public view. Must not keep state between episodes."""

    @property
    def name(self) -> str:
        """Its name in rows and results."""
        ...

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The bundle for `view` (see `Case.view`). What it raises is an invalid output of this episode."""
        ...
