"""Whether one observation may support one field (rules, 3): a table of checks, the first that fails is its fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from simulators.optbench.certificate_ledger import Field, Ledger, Observation, parents
from simulators.optbench.certificate_units import convert, dimension

_UNREALISED: Final = ("future", "out_of_range")
_TYPES: Final[dict[str, tuple[type, ...]]] = {"number": (int, float), "string": (str,), "boolean": (bool,)}


class Fault(NamedTuple):
    """The first check that an observation fails, and what shows it: itself, or ancestors of it."""

    code: str
    shown: tuple[str, ...]


def fault(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    """The first check of `field` that `o` fails; None where it is admissible.

    Raises ValueError for a fault that no family realises: a measurement in the future, a value out of range.
    """
    found = next((found for check in _CHECKS if (found := check(ledger, field, o))), None)
    if found and found.code in _UNREALISED:
        raise ValueError(f"{o['id']}: {found.code} for {field.name}, which the suite never realises")
    return found


def value(field: Field, o: Observation) -> Any:
    """The value of an admissible observation, in the contract's unit."""
    return convert(o["value"], _unit_of(o) or field.unit, field.unit) if field.type == "number" else o["value"]


def unreplaced(at_one_time: Sequence[Observation]) -> tuple[Observation, ...]:
    """Of one source and event time: a higher version replaces a lower one, where all have one."""
    versions = [v for o in at_one_time if (v := o.get("version")) is not None]
    if len(versions) < len(at_one_time):
        return tuple(at_one_time)
    return tuple(o for o in at_one_time if o["version"] == max(versions))


def _source(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    return None if o["source"] in field.sources else Fault("unknown_source", (o["id"],))


def _time(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    if _ahead(ledger, o):
        return Fault("future", (o["id"],))
    return Fault("stale", (o["id"],)) if _age_ms(ledger, o) > field.limit_ms else None


def _ahead(ledger: Ledger, o: Observation) -> bool:
    return bool(o["event_time_ms"] > min(ledger.t, o["ingest_time_ms"]) + ledger.skew_ms)


def _age_ms(ledger: Ledger, o: Observation) -> int:
    return ledger.t - int(o["event_time_ms"])


def _provenance(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    line = sorted(ledger.lineage([o["id"]]))
    lost = tuple(i for i in line if i in ledger.ancestors[i] or not ledger.held.keys() >= {*parents(ledger.held[i])})
    if lost:
        return Fault("unresolved_provenance", lost)
    expired = tuple(i for i in line if _age_ms(ledger, ledger.held[i]) > field.limit_ms)
    return Fault("stale", expired) if expired else _inherited(ledger, o)


def _inherited(ledger: Ledger, o: Observation) -> Fault | None:
    """The first fault among the ancestors of `o`: parents in listed order, depth first."""
    return next((found for p in parents(o) if (found := _of_ancestor(ledger, ledger.held[p]))), None)


def _of_ancestor(ledger: Ledger, o: Observation) -> Fault | None:
    for field in ledger.bound[o["id"]]:
        if found := fault(ledger, field, o):
            return found
        if _replaced(ledger, field, o):
            return Fault("stale", (o["id"],))
    return None if ledger.bound[o["id"]] else _of_unbound(ledger, o)


def _of_unbound(ledger: Ledger, o: Observation) -> Fault | None:
    """Rules, 3.3: not of the future, of good quality, from a source that some field lists; then its own ancestors."""
    if _ahead(ledger, o):
        return Fault("future", (o["id"],))
    if not _has_value(o):
        return Fault("no_value", (o["id"],))
    if not any(o["source"] in field.sources for field in ledger.fields.values()):
        return Fault("unknown_source", (o["id"],))
    return _inherited(ledger, o)


def _replaced(ledger: Ledger, field: Field, o: Observation) -> bool:
    """Whether its source sent, for its own event time, a higher version, a later arrival, or another value with it.

    Whether the rival is admissible does not matter: the source took back what the child was computed from.
    """
    rivals = [r for r in ledger.told(field) if r["id"] != o["id"] and _moment(r) == _moment(o)]
    remaining = unreplaced([o, *rivals])
    return o not in remaining or any(
        r["ingest_time_ms"] > o["ingest_time_ms"]
        or (r["ingest_time_ms"] == o["ingest_time_ms"] and _exposed(r) != _exposed(o))
        for r in remaining
    )


def _moment(o: Observation) -> tuple[str, int]:
    return o["source"], o["event_time_ms"]


def _exposed(o: Observation) -> tuple[Any, ...]:
    """The value and all that says how to read it: of two that differ in any, nothing says which is meant."""
    return o["value"], _unit_of(o), o.get("quality", "good"), o.get("schema")


def _schema(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    if len(ledger.bound[o["id"]]) > 1:
        return Fault("ambiguous_schema", (o["id"],))
    accepted = field.schemas is None or o.get("schema") in field.schemas
    return None if accepted else Fault("unknown_schema", (o["id"],))


def _quality(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    if not _has_value(o):
        return Fault("no_value", (o["id"],))
    fits = isinstance(o["value"], _TYPES[field.type]) and (field.type == "boolean" or not isinstance(o["value"], bool))
    return None if fits else Fault("unknown_schema", (o["id"],))


def _has_value(o: Observation) -> bool:
    return o.get("quality", "good") == "good" and o["value"] is not None


def _unit(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    unit = _unit_of(o)
    if unit is None:
        return None if field.unit == "1" else Fault("ambiguous_unit", (o["id"],))
    if dimension(unit) is None:
        return Fault("unknown_unit", (o["id"],))
    return None if dimension(unit) == dimension(field.unit) else Fault("ambiguous_unit", (o["id"],))


def _unit_of(o: Observation) -> str | None:
    """The unit as exposed; an empty unit is none (rules, 1)."""
    return o.get("unit") or None


def _range(ledger: Ledger, field: Field, o: Observation) -> Fault | None:
    inside = field.type != "number" or field.low <= value(field, o) <= field.high
    return None if inside else Fault("out_of_range", (o["id"],))


_CHECKS: Final[tuple[Callable[[Ledger, Field, Observation], Fault | None], ...]] = (
    _source, _time, _provenance, _schema, _quality, _unit, _range,
)  # fmt: skip
