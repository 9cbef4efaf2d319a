"""A public view as the certificate checker reads it (rules, 1 and 3): what had arrived, its names, its lineage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Observation = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One observed field of the contract (rules, 1), defaults filled in. `names`: its own and its aliases, canonical.

    `limit_ms`: δ of eq. (5); `low`, `high`, `tolerance` in `unit`; `schemas` None where any schema is accepted.
    """

    name: str
    names: frozenset[str]
    sources: tuple[str, ...]
    limit_ms: int
    unit: str
    type: str
    low: float
    high: float
    tolerance: float
    rel_tolerance: float
    schemas: frozenset[str] | None
    critical: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """What had arrived by `t` (ms). `held`: id → observation, in arrival order; `bound`: id → the fields that it names.

    `ancestors`: id → what it was computed from, itself only in a cycle; `live`: all but memories and what descends from
    one; `foreign`: live ones under a name that no field knows; `out`: source in outage → whether it may be asked again.
    """

    t: int
    skew_ms: int
    fields: Mapping[str, Field]
    held: Mapping[str, Observation]
    bound: Mapping[str, tuple[Field, ...]]
    ancestors: Mapping[str, frozenset[str]]
    live: frozenset[str]
    foreign: frozenset[str]
    out: Mapping[str, bool]

    def lineage(self, ids: Iterable[str]) -> frozenset[str]:
        """The observations themselves and all that they were computed from."""
        return frozenset(found for one in ids for found in (one, *self.ancestors[one]))

    def told(self, field: Field, *, live: bool = True) -> tuple[Observation, ...]:
        """The observations bound to `field`, of whatever source: the live ones, or the memories."""
        return tuple(o for i, o in self.held.items() if field in self.bound[i] and (i in self.live) is live)


def read(episode: Mapping[str, Any]) -> Ledger:
    """The ledger of an episode document. Raises ValueError for what no family realises (see `certificate.certify`)."""
    if "contract" not in episode:
        raise ValueError("contract: not inline")
    if episode.get("controls"):
        raise ValueError("controls: the suite never realises any")
    contract, t = episode["contract"], episode["decided_at_ms"]
    fields = {name: _field(name, f) for name, f in contract["fields"].items() if f["kind"] == "observed"}
    held = {str(o["id"]): o for o in episode["observations"] if o["ingest_time_ms"] <= t}
    for i, o in held.items():
        if o.get("origin") == "operator":
            raise ValueError(f"{i}: an operator's answer, which the suite never realises")
    ancestors = {i: _ancestors(i, held) for i in held}
    memories = frozenset(i for i, o in held.items() if o.get("origin") == "memory")
    live = frozenset(i for i in held if i not in memories and not memories & ancestors[i])
    known = frozenset(name for n, f in contract["fields"].items() for name in _names(n, f))
    return Ledger(
        t=t,
        skew_ms=contract.get("max_clock_skew_ms", 0),
        fields=fields,
        held=held,
        bound={i: tuple(f for f in fields.values() if _binds(f, o)) for i, o in held.items()},
        ancestors=ancestors,
        live=live,
        foreign=frozenset(i for i in live if _canonical(held[i]["name"]) not in known),
        out={s: _retryable(terms) for s, terms in episode.get("sources", {}).items() if terms["status"] == "outage"},
    )


@lru_cache(maxsize=4096)
def _canonical(name: str) -> str:
    """Rules, 3: case ignored, each blank or hyphen an underscore."""
    return name.casefold().replace(" ", "_").replace("-", "_")


def _names(name: str, stated: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(_canonical, (name, *stated.get("aliases", ()))))


def _binds(field: Field, o: Observation) -> bool:
    return o.get("subject") is None and _canonical(o["name"]) in field.names


def _field(name: str, stated: Mapping[str, Any]) -> Field:
    if stated.get("subject") is not None:
        raise ValueError(f"{name}: has a subject, which the suite never realises")
    low, high, schemas = stated.get("min"), stated.get("max"), stated.get("schemas")
    return Field(
        name=name,
        names=_names(name, stated),
        sources=tuple(stated["sources"]),
        limit_ms=stated["freshness_ms"],
        unit=stated.get("unit") or "1",
        type=stated.get("type", "number"),
        low=-math.inf if low is None else low,
        high=math.inf if high is None else high,
        tolerance=stated.get("tolerance") or 0,
        rel_tolerance=stated.get("rel_tolerance") or 0,
        schemas=None if schemas is None else frozenset(schemas),
        critical=stated.get("critical", True),
    )


def parents(o: Observation) -> tuple[str, ...]:
    """The ids that `o` was computed from, in listed order."""
    return tuple(o.get("parents", ()))


def _ancestors(one: str, held: Mapping[str, Observation]) -> frozenset[str]:
    found: set[str] = set()
    ahead = [*parents(held[one])]
    while ahead:
        parent = ahead.pop()
        if parent in held and parent not in found:
            found.add(parent)
            ahead += parents(held[parent])
    return frozenset(found)


def _retryable(terms: Mapping[str, Any]) -> bool:
    """Rules, 5: retryable, with retries left and a finite back-off; a view has no deadline to back off past."""
    return bool(terms.get("retryable") and terms.get("retries_left") and terms.get("retry_after_ms") is not None)
