"""Formula tools: named formulas of wireless communication, each with its parameters and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: an expression name, and a unit of the contracts' registry."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Formula:
    """A named formula."""

    name: str
    parameters: tuple[Parameter, ...]
    unit: str
    compute: Callable[..., float]
