"""A realisation family: one operational symptom, and the function that realises it on an item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulators.optbench.model import Domain, Facts
from simulators.optbench.realisation.clutter import cluttered
from simulators.optbench.realisation.scene import Scene


@dataclass(frozen=True, slots=True)
class Family:
    """`symptom`: what operators report that the family stands for, or what its rule guards against.

    `disturb` does it to a scene, and returns None where the item has no suitable field. It is never told an action: the
    label follows from the facts.
    """

    name: str
    domain: Domain
    symptom: str
    disturb: Callable[[Scene], Facts | None]

    def realise(self, scene: Scene) -> Facts | None:
        """The disturbed scene with its clutter (see `clutter`); None where no field suits. Uses up the scene."""
        facts = self.disturb(scene)
        return None if facts is None else cluttered(scene, facts)
