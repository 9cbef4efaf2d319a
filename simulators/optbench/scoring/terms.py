"""A contract document as the evaluator reads it: what each field demands of a value (rules, section 1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import orjson

from simulators.optbench.model import Scalar
from simulators.optbench.scoring.quantities import convert, number

_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_ROUNDING: Final = 1e-9
"""Relative: powers of 1e-13 W and 1e-10 W are two values."""
_OF_TOLERANCE: Final = 1e-3
"""The share of a tolerance that rounding may add."""


@dataclass(frozen=True, slots=True)
class Terms:
    """One field of a contract. `names`: its own and its aliases, canonical; `inputs`: the fields that `expr` reads.

    `expr`: empty where there is none.
    """

    kind: str
    type: str
    unit: str
    low: float | None
    high: float | None
    tolerance: float
    rel_tolerance: float
    critical: bool
    names: frozenset[str]
    sources: tuple[str, ...]
    schemas: tuple[str, ...] | None
    freshness_ms: int
    subject: str | None
    expr: str
    inputs: frozenset[str]

    def read(self, value: Any, unit: Any) -> Scalar | None:
        """`value` in the field's unit; None where type or unit make that impossible.

        A unit must be given unless the field's is `1`; units are case-sensitive.
        """
        if self.type != "number":
            return value if isinstance(value, bool if self.type == "boolean" else str) else None
        plain = number(value)
        if plain is None or not (unit is None or isinstance(unit, str)):
            return None
        return convert(plain, unit or "1", self.unit)

    def within(self, value: Scalar) -> bool:
        """Whether a value in the field's unit lies within its `min` and `max`."""
        if not isinstance(value, int | float):
            return True
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def near(self, value: Scalar, expected: Scalar) -> bool:
        """Whether `value` is within tolerance of `expected`, both in the field's unit; relative to `expected`."""
        if not isinstance(value, int | float) or not isinstance(expected, int | float):
            return value == expected
        tolerance = max(self.tolerance, self.rel_tolerance * abs(expected))
        return equal(value, expected) or abs(value - expected) <= tolerance * (1.0 + _OF_TOLERANCE)


def equal(one: Scalar, other: Scalar) -> bool:
    """Whether two values in the same unit are the same but for rounding."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_ROUNDING)
    return one == other


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """`name` as names are compared: case ignored, each blank or hyphen an underscore."""
    return name.casefold().replace(" ", "_").replace("-", "_")


def terms(contract: Mapping[str, Any]) -> Mapping[str, Terms]:
    """Field → its terms, in the contract's order. The contract is one that loads; equal ones are read once."""
    return _read(orjson.dumps(contract["fields"]))


@lru_cache(maxsize=1024)
def _read(document: bytes) -> Mapping[str, Terms]:
    fields = orjson.loads(document)
    return MappingProxyType({name: _terms(name, one, frozenset(fields)) for name, one in fields.items()})


def _terms(name: str, document: Mapping[str, Any], fields: frozenset[str]) -> Terms:
    schemas = document.get("schemas")
    return Terms(
        kind=document["kind"],
        type=document.get("type", "number"),
        unit=document.get("unit") or "1",
        low=document.get("min"),
        high=document.get("max"),
        tolerance=document.get("tolerance", 0.0),
        rel_tolerance=document.get("rel_tolerance", 0.0),
        critical=document.get("critical", True),
        names=frozenset(canonical(known) for known in (name, *document.get("aliases", ()))),
        sources=tuple(document.get("sources", ())),
        schemas=None if schemas is None else tuple(schemas),
        freshness_ms=document.get("freshness_ms", 0),
        subject=document.get("subject"),
        expr=document.get("expr", ""),
        inputs=frozenset(_IDENTIFIER.findall(document.get("expr", ""))) & fields,
    )
