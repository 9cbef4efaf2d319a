"""Material disagreement: what lies beyond the tolerance of a field (sections 1 and 3)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from xapp.contract import Field, Member
from xapp.integrity.fault import Verdict
from xapp.units import DIMENSIONLESS

_ROUNDING: Final = 1e-9  # section 1
_OF_TOLERANCE: Final = 1e-3
"""The greatest share of a tolerance that rounding may add: see `slack`."""


def slack(tolerance: float, magnitude: float) -> float:
    """What rounding may add to a tolerance (section 1): 1e-9 · max(1, magnitude).

    Never more than a thousandth of a tolerance that is given: powers of 1e-13 W and 1e-10 W, whose tolerance is 2 %,
    are two values (docs/decisions.md).
    """
    rounding = _ROUNDING * max(1.0, magnitude)
    return min(rounding, _OF_TOLERANCE * tolerance) if tolerance > 0.0 else rounding


def differ(one: Any, other: Any, field: Field, *, of_expr: bool = False) -> bool:
    """True where two values in the field's unit differ by more than its tolerance.

    The relative tolerance is of the larger magnitude; with `of_expr` (a plan against its `expr` value, `other`) of that
    value. Mappings differ where one member does.
    """
    if type(one) is dict or type(other) is dict:
        if type(one) is not dict or type(other) is not dict or one.keys() != other.keys():
            return True
        return any(differ(one[key], other[key], field, of_expr=of_expr) for key in one)
    if field.type != "number":
        return bool(one != other)
    magnitude = max(abs(one), abs(other))
    tolerance = max(field.tolerance, field.rel_tolerance * (abs(other) if of_expr else magnitude))
    return bool(abs(one - other) > tolerance + slack(tolerance, magnitude))


def disagreeing(values: Sequence[tuple[str, Any]], field: Field) -> tuple[str, ...]:
    """Ids of the values that are a side of a conflict, sorted; empty where all agree.

    Against the least and the greatest value suffices: with a relative tolerance of at most 1, two values that differ
    lie between two that do.
    """
    if len(values) < 2:
        return ()
    ordered = sorted(values, key=lambda item: (item[1], item[0]))
    low, high = ordered[0], ordered[-1]
    if not differ(low[1], high[1], field):
        return ()
    return tuple(sorted(i for i, v in ordered if differ(v, low[1], field) or differ(v, high[1], field)))


def material_conflict(
    member: Member, heads: Mapping[str, Verdict], sides: Sequence[Verdict]
) -> tuple[str, tuple[str, ...]] | None:
    """(detail, ids) of a disagreement among heads of different sources, or within one source at its head's time.

    The detail names sources and values first, for whoever has to settle it; then the ids, in the same order.
    """
    field = member.field
    admissible = [v for v in heads.values() if v.fault is None]
    ids = set(disagreeing([(v.observation.id, v.value) for v in admissible], field))
    if len(sides) > len(admissible):
        for source in heads:
            ids |= set(
                disagreeing([(v.observation.id, v.value) for v in sides if v.observation.source == source], field)
            )
    if not ids:
        return None
    found = {v.observation.id: v for v in (*sides, *admissible)}
    ordered = tuple(sorted(ids))
    unit = "" if field.unit == DIMENSIONLESS else f" {field.unit}"
    told = ", ".join(f"{found[i].observation.source} says {_said(found[i].value)}{unit}" for i in ordered)
    named = ", ".join(f"'{i}'" for i in ordered)
    return f"{told}: more than the tolerance apart ({named})", ordered


def _said(value: Any) -> str:
    """A value for a person: twelve digits tell all apart that differ by more than `slack`."""
    return f"{value:.12g}" if type(value) is float else str(value)
