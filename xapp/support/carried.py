"""What an episode carries of the support gate, and what a decision says of it (docs/support-gate.md, "Verdict").

The form is read strictly here; whether what it says permits anything is for `xapp.support.gate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, NoReturn

import orjson

from xapp.support.component import Component
from xapp.support.rule import State
from xapp.support.terms import Terms, TermsError, load_terms
from xapp.times import time_fault

_COUNTS_BELOW: Final = 2**53


class SupportError(ValueError):
    """A document that is no `support`: `path` is the JSON path of the fault."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


@dataclass(frozen=True, slots=True)
class MapClaim:
    """The reference map that an episode rests on, by what it says of itself. Both times are inclusive, Unix ms."""

    map_id: str
    version: int
    digest: str
    contract_digest: str
    terms_digest: str
    built_at_ms: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class DriftClaim:
    """Of the window's partitions in the quarter of t that have visits: how many scored above the map's `limit`, and the
    highest score, None where none was scored.
    """

    exceeded: int
    score: float | None
    limit: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One observed field at one subject, in the component that it is in at t, with its visits in order of time.

    `reference`: of the map, None where it does not have the component; `current`: of the window.
    """

    field: str
    subject: str | None
    component: Component
    reference: tuple[int, ...] | None
    current: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Support:
    """An episode's member `support`. `map` None: there is none; `drift` None: it is not watched.

    `first`: the index of the window's oldest partition.
    """

    terms: Terms
    map: MapClaim | None
    drift: DriftClaim | None
    first: int
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Short:
    """What a component lacks: so many `partitions`, and at least so many `visits` in all."""

    field: str
    subject: str | None
    component: Component
    partitions: int
    visits: int


@dataclass(frozen=True, slots=True)
class SupportVerdict:
    """The gate's answer. `because`: what an operator reads; `short`: what lacks visits, where the map can be used.

    `earliest_ms`: the first end of a partition at which it could pass, None where no waiting is known to help.
    """

    state: State
    because: str
    map: MapClaim | None = None
    short: tuple[Short, ...] = ()
    earliest_ms: int | None = None

    @property
    def permits(self) -> bool:
        """Whether what would be APPLY may be."""
        return self.state in ("NOT_APPLICABLE", "SUPPORTED")

    def document(self) -> dict[str, Any]:
        """A decision's member `support`."""
        named = self.map
        return {
            "state": self.state,
            "because": self.because,
            "map": None
            if named is None
            else {"map_id": named.map_id, "version": named.version, "digest": named.digest},
            "short": [
                {
                    "field": s.field,
                    "subject": s.subject,
                    "component": s.component.document(),
                    "partitions": s.partitions,
                    "visits": s.visits,
                }
                for s in self.short
            ],
            "earliest_ms": self.earliest_ms,
        }


def support_document(support: Support) -> dict[str, Any]:
    """The JSON form of an episode's `support`, for orjson: the order in which components were asked does not matter."""
    return {
        "terms": orjson.Fragment(support.terms.document),
        "map": support.map,
        "drift": support.drift,
        "window": {"first": support.first},
        "asked": [
            {
                "field": a.field,
                "subject": a.subject,
                "component": a.component.document(),
                "reference": a.reference,
                "current": a.current,
            }
            for a in in_order(support.asked)
        ],
    }


def in_order(asked: Iterable[Asked]) -> tuple[Asked, ...]:
    """What was asked in its one order, in which it is judged too: a record says no other."""
    return tuple(sorted(asked, key=_order))


def _order(asked: Asked) -> tuple[Any, ...]:
    subject = asked.subject
    return (asked.field, subject is not None, subject or "", asked.component, asked.reference or (), asked.current)


def read_support(document: Any, path: str = "$") -> Support:
    """An episode's `support` from its JSON form. Raises SupportError with the place."""
    _object(document, path, ("terms", "map", "drift", "window", "asked"))
    try:
        terms = load_terms(document["terms"])
    except TermsError as error:
        place, reason = error.errors[0]
        _fail(f"{path}.terms{place[1:]}", reason)
    _object(document["window"], f"{path}.window", ("first",))
    if not isinstance(document["asked"], list):
        _fail(f"{path}.asked", "must be a list")
    return Support(
        terms=terms,
        map=None if document["map"] is None else _map(document["map"], f"{path}.map"),
        drift=None if document["drift"] is None else _drift(document["drift"], f"{path}.drift"),
        first=_integer(document["window"]["first"], f"{path}.window.first"),
        asked=tuple(_asked(item, f"{path}.asked[{i}]") for i, item in enumerate(document["asked"])),
    )


def _map(item: Any, path: str) -> MapClaim:
    _object(item, path, tuple(MapClaim.__dataclass_fields__))
    for key in ("map_id", "digest", "contract_digest", "terms_digest"):
        if not isinstance(item[key], str) or not item[key]:
            _fail(f"{path}.{key}", "must be a non-empty string")
    if _integer(item["version"], f"{path}.version") < 1:
        _fail(f"{path}.version", "must be at least 1")
    for key in ("built_at_ms", "expires_at_ms"):
        fault = time_fault(_integer(item[key], f"{path}.{key}"))
        if fault is not None:
            _fail(f"{path}.{key}", fault)
    return MapClaim(**item)


def _drift(item: Any, path: str) -> DriftClaim:
    _object(item, path, ("exceeded", "score", "limit"))
    score = None if item["score"] is None else _measure(item["score"], f"{path}.score")
    exceeded = _integer(item["exceeded"], f"{path}.exceeded")
    return DriftClaim(exceeded, score, _measure(item["limit"], f"{path}.limit"))


def _asked(item: Any, path: str) -> Asked:
    _object(item, path, tuple(Asked.__dataclass_fields__))
    if not isinstance(item["field"], str) or not item["field"]:
        _fail(f"{path}.field", "must be a non-empty string")
    if not isinstance(item["subject"], (str, type(None))):
        _fail(f"{path}.subject", "must be a string or null")
    reference = None if item["reference"] is None else _counts(item["reference"], f"{path}.reference")
    return Asked(
        item["field"],
        item["subject"],
        read_component(item["component"], f"{path}.component"),
        reference,
        _counts(item["current"], f"{path}.current"),
    )


def read_component(item: Any, path: str) -> Component:
    """A component from its JSON form. Raises SupportError with the place."""
    _object(item, path, Component._fields)
    for key in ("place", "load", "cqi"):
        if not isinstance(item[key], str):
            _fail(f"{path}.{key}", "must be a string")
    return Component(item["place"], _integer(item["quarter"], f"{path}.quarter"), item["load"], item["cqi"])


def _counts(items: Any, path: str) -> tuple[int, ...]:
    if not isinstance(items, list):
        _fail(path, "must be a list of counts")
    return tuple(_integer(item, f"{path}[{i}]") for i, item in enumerate(items))


def _object(item: Any, path: str, keys: tuple[str, ...]) -> None:
    if not isinstance(item, Mapping):
        _fail(path, "must be an object")
    for key in keys:
        if key not in item:
            _fail(f"{path}.{key}", "is required")
    for key in item:
        if key not in keys:
            _fail(f"{path}.{key}", "unknown key")


def _integer(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _COUNTS_BELOW:
        _fail(path, "must be an integer, not negative and below 2^53")
    return value


def _measure(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value < 0:
        _fail(path, "must be a number, not negative")
    return float(value)


def _fail(path: str, reason: str) -> NoReturn:
    raise SupportError(path, reason)
