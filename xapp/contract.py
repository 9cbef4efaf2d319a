"""Contracts: what a control action rests on (rules, section 1).

`xapp.contract_loading` makes them from documents; `Contract.resolve` fills their subject templates from a proposal's
bindings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Final

from xapp.contract_document import ControlDocument
from xapp.expression import Expression
from xapp.model import Observation

Bindings = Mapping[str, str | tuple[str, ...]]
PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
EFFECT: Final = "control:effect"  # its place among the inputs of a contract
_BLANKS: Final = str.maketrans({" ": "_", "-": "_", "\t": "_"})


class DocumentFaults(ValueError):
    """A document that must not be loaded. `errors`: (JSON path, reason) of each fault."""

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{path}: {reason}" for path, reason in errors))


class ContractError(DocumentFaults):
    """A contract that must not be loaded."""


class BindingError(ValueError):
    """The bindings do not fill the contract; `name` is the binding at fault."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(reason)


@lru_cache(maxsize=16384)
def normalise(name: str) -> str:
    """A name as binding compares it: lower case, each blank or hyphen an underscore (section 3)."""
    return name.lower().translate(_BLANKS)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a contract. `names`: normalised own name and aliases; `freshness_ms` is δ of eq. (5).

    `min`, `max`, `tolerance`, `max_repair` are in `unit`; `bindings`: the names its subject and sources use.
    """

    name: str
    kind: str
    type: str
    unit: str
    names: frozenset[str]
    min: float | None
    max: float | None
    tolerance: float
    rel_tolerance: float
    subject: str | None
    bindings: tuple[str, ...]
    freshness_ms: int
    sources: tuple[str, ...]
    critical: bool
    schemas: frozenset[str] | None
    moved_by_control: bool
    repairable: bool
    max_repair: float | None
    expr: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """One rule over fields. With `window_ms` it must hold at every instant of [t − window, t] (eq. 4)."""

    id: str
    expr: Expression
    window_ms: int | None
    max_gap_ms: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One observed field at one subject: what evidence is gathered for. `key` is the list binding's value, or None."""

    field: Field
    key: str | None
    subject: str | None
    sources: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return self.field.names

    @property
    def freshness_ms(self) -> int:
        return self.field.freshness_ms


@dataclass(frozen=True, slots=True, eq=False)
class Resolution:
    """A contract with its bindings filled.

    `members`: observed fields in contract order, then in the binding's order. `keys`: field name → members of its
    mapping, for every field over a list binding. `bound`: (subject, normalised name) → the members it binds to.
    `sources`: every source that some member lists. `windows`: observed field → the longest window that reads it, ms.
    `coupled`: the other keys that the control moves; `budget_ms`: how far back its changes are counted, 0 for not at
    all.
    """

    members: tuple[Member, ...]
    by_field: Mapping[str, tuple[Member, ...]]
    keys: Mapping[str, tuple[str, ...]]
    bound: Mapping[tuple[str | None, str], tuple[Member, ...]]
    sources: frozenset[str]
    control_key: str | None
    windows: Mapping[str, int]
    known_names: frozenset[str]
    max_clock_skew_ms: int
    coupled: tuple[str, ...] = ()
    budget_ms: int = 0

    def members_of(self, observation: Observation) -> tuple[Member, ...]:
        """The observed fields that an observation is bound to, by subject and name (section 3)."""
        return self.bound.get((observation.subject, normalise(observation.name)), ())


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """A validated contract. `order`: fields with an expression, inputs first. `document`: its canonical JSON bytes.

    `inputs`: field or constraint id (as `"constraint:" + id`) → all observed fields it rests on, transitively.
    `by_name`: normalised name → the fields that carry it as own name or alias. `effect`: what `control.effect` says,
    its inputs under `"control:effect"`.
    """

    contract_id: str
    fields: Mapping[str, Field]
    constraints: tuple[Constraint, ...]
    control: ControlDocument | None
    max_clock_skew_ms: int
    override_intent: bool
    order: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]]
    bindings: tuple[str, ...]
    by_name: Mapping[str, tuple[str, ...]]
    document: bytes
    digest: str
    effect: Expression | None = None

    def resolve(self, bindings: Bindings) -> Resolution:
        """Fill subjects, sources and control key. Raises BindingError where a binding is missing or does not fit."""
        return _resolve(self, tuple(sorted(bindings.items())))


@lru_cache(maxsize=4096)
def _resolve(contract: Contract, items: tuple[tuple[str, str | tuple[str, ...]], ...]) -> Resolution:
    bindings = dict(items)
    for name in contract.bindings:
        if name not in bindings:
            raise BindingError(name, "the contract needs this binding")
    members: list[Member] = []
    keys: dict[str, tuple[str, ...]] = {}
    for f in contract.fields.values():
        lists = [name for name in f.bindings if isinstance(bindings[name], tuple)]
        if len(lists) > 1:
            raise BindingError(lists[1], f"field '{f.name}' uses two lists")
        if lists:
            keys[f.name] = values = tuple(bindings[lists[0]])
        else:
            values = (None,)  # type: ignore[assignment]
        if f.kind == "observed":
            for value in values:
                filled = bindings if value is None else {**bindings, lists[0]: value}
                subject = None if f.subject is None else fill(f.subject, filled)
                members.append(Member(f, value, subject, tuple(fill(s, filled) for s in f.sources)))
    bound: dict[tuple[str | None, str], tuple[Member, ...]] = {}
    for member in members:
        for alias in member.names:
            bound[(member.subject, alias)] = (*bound.get((member.subject, alias), ()), member)
    control_key = None
    if contract.control is not None and contract.control.key is not None:
        for name in PLACEHOLDER.findall(contract.control.key):
            if isinstance(bindings[name], tuple):
                raise BindingError(name, "the control key cannot use a list")
        control_key = fill(contract.control.key, bindings)
    budget = None if contract.control is None else contract.control.budget
    windows: dict[str, int] = {}
    for c in contract.constraints:
        if c.window_ms is not None:
            for name in contract.inputs["constraint:" + c.id]:
                windows[name] = max(windows.get(name, 0), c.window_ms)
    return Resolution(
        members=tuple(members),
        by_field={f: tuple(m for m in members if m.field.name == f) for f in contract.fields},
        keys=keys,
        bound=bound,
        sources=frozenset(s for m in members for s in m.sources),
        control_key=control_key,
        windows=windows,
        known_names=frozenset(name for f in contract.fields.values() for name in f.names),
        max_clock_skew_ms=contract.max_clock_skew_ms,
        coupled=_coupled(contract, bindings, control_key),
        budget_ms=0 if budget is None or budget.changes is None else budget.per_ms or 0,
    )


def _coupled(contract: Contract, bindings: Bindings, own: str | None) -> tuple[str, ...]:
    """The coupled keys, one for each member of a list binding; the control's own key is none."""
    found: dict[str, None] = {}
    for template in () if contract.control is None else contract.control.coupled:
        names = list(dict.fromkeys(PLACEHOLDER.findall(template)))
        choices = [v if isinstance(v := bindings[name], tuple) else (v,) for name in names]
        found |= dict.fromkeys(fill(template, dict(zip(names, chosen, strict=True))) for chosen in product(*choices))
    return tuple(key for key in found if key != own)


def fill(template: str, bindings: Mapping[str, Any]) -> str:
    """A template with each binding that it names filled in. Raises KeyError where one is missing."""
    return PLACEHOLDER.sub(lambda match: bindings[match.group(1)], template)
