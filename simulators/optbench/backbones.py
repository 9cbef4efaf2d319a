"""Backbones that need no model: replies that a user recorded, and one that notes which calls of another failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from simulators.optbench.agents import Backbone, Completion, Prompt

_SHOWN: Final = 300


@dataclass(slots=True)
class RecordedReplies:
    """Says of each episode what a file says, whatever it is asked. `replies`: episode id → the reply's text."""

    name: str
    replies: Mapping[str, str]
    synthetic: bool = False

    def complete(self, prompt: Prompt) -> Completion:
        """The recorded reply; an error where there is none."""
        reply = self.replies.get(prompt.episode_id)
        return Completion("", error="no proposal is recorded") if reply is None else Completion(reply)


@dataclass(slots=True)
class Watched:
    """Another backbone, and what it could not answer: `failed` holds episode id → the first reason."""

    inner: Backbone
    failed: dict[str, str] = field(default_factory=dict)
    name: str = field(init=False)
    synthetic: bool = field(init=False)

    def __post_init__(self) -> None:
        self.name, self.synthetic = self.inner.name, self.inner.synthetic

    def complete(self, prompt: Prompt) -> Completion:
        """What the other says; what it raises is a call that failed, so that it is told, and not kept as a reply."""
        try:
            completion = self.inner.complete(prompt)
        except Exception as error:
            completion = Completion("", error=" ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN])
        if completion.error is not None:
            self.failed.setdefault(prompt.episode_id, completion.error)
        return completion
