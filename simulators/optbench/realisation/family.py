"""A realisation family: one operational symptom, and the function that realises it on an item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulators.optbench.model import Domain, Facts
from simulators.optbench.realisation.scene import Scene


@dataclass(frozen=True, slots=True)
class Family:
    """`symptom`: what operators report that the family stands for, and where. `realise` uses up its scene.

    It returns None where the item has no suitable field. It is never told an action: the label follows from the facts.
    """

    name: str
    domain: Domain
    symptom: str
    realise: Callable[[Scene], Facts | None]
