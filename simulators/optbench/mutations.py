"""Label-only mutations (paper, section III-D): another hidden action must leave view and prompts byte-identical."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from simulators.optbench.agents import Completion, Prompt
from simulators.optbench.candidates import case_of
from simulators.optbench.methods import METHODS, build
from simulators.optbench.model import REFERENCES, Case

PER_EPISODE: Final = 2
"""Two mutations an episode: 1,200 over a suite of 600."""


def mutated(case: Case) -> Iterator[Case]:
    """The case under other labels, each rendered anew from its mutated sealed part."""
    at = REFERENCES.index(case.sealed.reference)
    for step in range(1, PER_EPISODE + 1):
        other = REFERENCES[(at + step) % len(REFERENCES)]
        blocked = frozenset() if other == "APPLY" else case.sealed.blocked ^ frozenset(case.sealed.item.lineage)
        yield case_of(replace(case.sealed, reference=other, blocked=blocked))


def leaks(cases: Sequence[Case]) -> list[str]:
    """Where a mutation shows: `EPISODE: the view`, or `EPISODE: a prompt of METHOD`. Empty for a fair suite."""
    found: list[str] = []
    for case in cases:
        view, prompts = _bytes(case), _prompts(case)
        for other in mutated(case):
            if _bytes(other) != view:
                found.append(f"{case.episode_id}: the view")
            asked = _prompts(other)
            found += [f"{case.episode_id}: a prompt of {name}" for name in METHODS if asked[name] != prompts[name]]
    return found


def _bytes(case: Case) -> bytes:
    return orjson.dumps(case.view, option=orjson.OPT_SORT_KEYS)


def _prompts(case: Case) -> dict[str, list[Prompt]]:
    """All that each method asks of a backbone that proposes nothing."""
    asked: dict[str, list[Prompt]] = {}
    for name in METHODS:
        listener = _Listener([])
        build(name, listener).decide(case.view)
        asked[name] = listener.heard
    return asked


@dataclass(frozen=True, slots=True)
class _Listener:
    heard: list[Prompt]
    name: str = "listener"
    synthetic: bool = True

    def complete(self, prompt: Prompt) -> Completion:
        self.heard.append(prompt)
        return Completion("{}")
