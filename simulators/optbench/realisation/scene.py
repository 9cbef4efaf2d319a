"""The scene that a family acts on: an item, who tells its fields in a clean world, and what can be done about it.

A *plane* is primary (0) or secondary (1): the place of a source in a field's list. A child that a plane computes has
that plane's values as parents, so whoever withholds a value from a plane withholds the plane's children of it too.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Any, Final, Literal, NamedTuple, TypeVar

from simulators.optbench.model import BaseItem, Change, Exposure, Facts, Outage, Scalar
from simulators.optbench.realisation.units import UNHEARD, compatible, foreign, moved

PRIMARY: Final = 0
SECONDARY: Final = 1
PLANES: Final = (PRIMARY, SECONDARY)

_NEWEST_MS: Final = 40  # age of the youngest clean value; each generation above is at least as much older
_WITHIN: Final = (0.1, 0.8)  # an immaterial difference, in tolerances
_BEYOND: Final = (2.0, 6.0)  # a material one
_SLACK: Final = 1e-9  # of the rules (section 1), for rounding, where a tolerance of 0 leaves nothing else
_VISIBLE: Final = 0.02  # least half of a material difference where the tolerance is less, as a share of the value
_SERVICE_CLASSES: Final = ("eMBB", "URLLC")
_T = TypeVar("_T")

Late = Literal["overtaken", "overwritten"]
"""How an older report that arrives after a newer one is numbered: below it, or above."""


class _Tree(NamedTuple):
    """What descends from what. `order`: parents before children; `heights`: how many values a field's age must span."""

    order: tuple[str, ...]
    ancestors: Mapping[str, frozenset[str]]
    descendants: Mapping[str, tuple[str, ...]]
    heights: Mapping[str, int]


@lru_cache(maxsize=256)
def _tree(lineage: tuple[tuple[str, tuple[str, ...]], ...]) -> _Tree:
    """Of (field, its parents): there are few shapes, and many scenes of each."""
    parents = dict(lineage)
    order = tuple(TopologicalSorter(parents).static_order())
    ancestors: dict[str, frozenset[str]] = {}
    for name in order:
        ancestors[name] = frozenset(parents[name]).union(*(ancestors[p] for p in parents[name]))
    heirs = {name: tuple(d for d in order if name in ancestors[d]) for name in order}
    heights = {
        name: 1 + max((len(ancestors[d] & {name, *heirs[name]}) for d in heirs[name]), default=0) for name in order
    }
    return _Tree(order, ancestors, heirs, heights)


class Scene:
    """One item in a clean world, with a seeded generator. Families withhold and change what is told, then take `facts`.

    Clean: the primary tells every observed field; the secondary some, with their parents; all values equal, and no
    effective age above half of its limit. A windowed field is told by its primary alone, and is never the target of a
    change.
    """

    def __init__(self, item: BaseItem, rng: random.Random) -> None:
        self.item, self.rng = item, rng
        self._documents: dict[str, Mapping[str, Any]] = {
            name: f for name, f in item.contract["fields"].items() if f["kind"] == "observed"
        }
        self._tree = _tree(tuple((name, item.lineage.get(name, ())) for name in self._documents))
        self._order = self._tree.order
        self._ages: dict[tuple[str, int], int] = {}
        for plane in PLANES:
            for name in self._order:
                self._ages[name, plane] = self._draw_age(name, plane)
        self._told: dict[tuple[str, str], Exposure] = {}
        self._recalled: dict[tuple[str, str], Exposure] = {}
        self._quiet: set[str] = set()
        self._named: dict[str, list[str]] = {}
        for name in self._order:
            self._tell(name, PRIMARY)
        for name in self._order:
            parents = item.lineage.get(name, ())
            if name not in item.series and all(self.tells(p, SECONDARY) for p in parents) and rng.random() < 0.5:
                self._tell(name, SECONDARY)

    # the item

    def document(self, name: str) -> Mapping[str, Any]:
        """The contract's document of an observed field."""
        return self._documents[name]

    def unit(self, name: str) -> str:
        """The contract's unit of a field."""
        return str(self._documents[name].get("unit") or "1")

    def value(self, name: str) -> Scalar:
        """The item's value of a field, in the contract's unit."""
        return self.item.observed[name]

    def number(self, name: str) -> float:
        """The item's value of a numeric field."""
        value = self.item.observed[name]
        assert isinstance(value, int | float), f"'{name}' is a number"
        return value

    def limit_ms(self, name: str) -> int:
        """The freshness limit of a field."""
        return int(self._documents[name]["freshness_ms"])

    def source(self, name: str, plane: int) -> str:
        """The source that tells a field in a plane."""
        return str(self._documents[name]["sources"][plane])

    def parents(self, name: str) -> tuple[str, ...]:
        """The fields that a field is computed from."""
        return self.item.lineage.get(name, ())

    def ancestors(self, name: str) -> frozenset[str]:
        """The fields that a field descends from."""
        return self._tree.ancestors[name]

    def descendants(self, name: str) -> tuple[str, ...]:
        """The fields that descend from a field, parents before children."""
        return self._tree.descendants[name]

    def critical(self) -> tuple[str, ...]:
        """Critical observed fields that may be the target of a change (no windowed ones)."""
        return tuple(n for n, f in self._documents.items() if f.get("critical", True) and n not in self.item.series)

    def optional(self) -> tuple[str, ...]:
        """Observed fields that are not critical."""
        return tuple(n for n, f in self._documents.items() if not f.get("critical", True) and n not in self.item.series)

    def numeric(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` whose type is number."""
        return tuple(n for n in names if self._documents[n].get("type", "number") == "number")

    def with_unit(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that are numbers with a unit other than 1."""
        return tuple(n for n in self.numeric(names) if self.unit(n) != "1")

    def measured(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that are computed from nothing."""
        return tuple(n for n in names if not self.parents(n))

    def with_children(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that others are computed from."""
        return tuple(n for n in names if self.descendants(n))

    def names_of(self, name: str) -> tuple[str, ...]:
        """The names that mean this field alone: its own, then its aliases, as the contract spells them."""
        mine = (name, *self._documents[name].get("aliases", ()))
        return tuple(n for n in mine if self._owners(n) == [name])

    def shared_names(self, name: str) -> tuple[tuple[str, str], ...]:
        """(alias, the other field that has it too) of a field, for aliases of exactly two fields."""
        found = []
        for alias in self._documents[name].get("aliases", ()):
            owners = self._owners(alias)
            if len(owners) == 2:
                found += [(str(alias), other) for other in owners if other != name]
        return tuple(found)

    def other_name(self, name: str) -> str:
        """A name that means this field alone: an alias, or any of `names_of` with other case, and blanks or hyphens."""
        known = self.rng.choice(self.names_of(name))
        if known != name and self.rng.random() < 0.5:
            return known
        cased = known.upper() if known != known.upper() else known.lower()
        return cased.replace("_", self.rng.choice((" ", "-")))

    def unknown_name(self, name: str) -> str:
        """A name for a field that the contract does not know, as an upgrade may bring it."""
        forms = [f"{name}_v2", f"vendor_{name}", f"{name}_mean", f"{name}.UE"]
        return self.rng.choice([form for form in forms if not self._owners(form)])

    def _owners(self, told: str) -> list[str]:
        if not self._named:
            for name, f in self._documents.items():
                for known in {_folded(n) for n in (name, *f.get("aliases", ()))}:
                    self._named.setdefault(known, []).append(name)
        return self._named.get(_folded(told), [])

    # draws

    def pick(self, options: Collection[_T]) -> _T | None:
        """One of `options`; None where there are none."""
        return self.rng.choice(tuple(options)) if options else None

    def old(self, name: str, limit_ms: int | None = None) -> int:
        """An age beyond a field's limit (or `limit_ms`): by 20 % to 300 %, or by a single millisecond."""
        limit = self.limit_ms(name) if limit_ms is None else limit_ms
        return limit + 1 if self.rng.random() < 0.2 else round(limit * self.rng.uniform(1.2, 4.0))

    def harmless_difference(self, name: str) -> float | None:
        """A difference that is not zero and at most 80 % of the tolerance; None where a field has no room for one."""
        tolerance = self._tolerance(name)
        if tolerance <= 0 or (self._whole(name) and tolerance >= 1):
            return None  # a whole number that may be one off may not be a fraction off
        return self._signed(name, tolerance, *_WITHIN)

    def material_difference(self, name: str) -> Change | None:
        """`differs` by at least twice the tolerance, inside the field's limits; None where there is no such value."""
        difference = self._difference(name)
        if difference is None:
            return None
        return Change("differs", text=difference) if isinstance(difference, str) else Change("differs", difference)

    def older_state(self, name: str) -> tuple[Change, ...]:
        """How an old report differs from the state of now: for the most part it does."""
        change = self.material_difference(name)
        return (change,) if change and self.rng.random() < 0.8 else ()

    def make_late(self, name: str, plane: int) -> None:
        """The source of a plane tells a field's state of long ago: beyond its limit, and for the most part another."""
        self.change(name, [plane], Change("aged", self.old(name)), *self.older_state(name))

    def _difference(self, name: str) -> float | str | None:
        value = self.value(name)
        if isinstance(value, str):
            return self.pick([c for c in _SERVICE_CLASSES if c != value]) if value in _SERVICE_CLASSES else None
        size = abs(self.number(name))
        tolerance = self._tolerance(name) or _SLACK
        return self._signed(name, max(tolerance, _VISIBLE * size, 1.0 if self._whole(name) else 0.0), *_BEYOND)

    def _tolerance(self, name: str) -> float:
        f = self._documents[name]
        return max(float(f.get("tolerance", 0)), float(f.get("rel_tolerance", 0)) * abs(self.number(name)))

    def _whole(self, name: str) -> bool:
        return self.unit(name) == "1" and isinstance(self.value(name), int)

    def _signed(self, name: str, tolerance: float, low: float, high: float) -> float | None:
        """A difference of `low` to `high` tolerances, up or down, that stays inside the field's limits.

        A relative tolerance is of the larger magnitude, so `high` leaves room where the value grows.
        """
        f, value = self._documents[name], self.number(name)
        size = tolerance * self.rng.uniform(low, high)
        if low >= 1 and self._whole(name):
            size = float(-(-size // 1))
        signs = [1.0, -1.0]
        self.rng.shuffle(signs)
        for sign in signs:
            amount = float(f"{sign * size:.4g}")
            told = moved(value, amount)
            if f.get("min", told) <= told <= f.get("max", told):
                return amount
        return None

    # what is told

    def tells(self, name: str, plane: int) -> bool:
        """True where the source of `plane` tells the field."""
        return (name, self.source(name, plane)) in self._told

    def planes_of(self, name: str) -> tuple[int, ...]:
        """The planes that tell a field."""
        return tuple(plane for plane in PLANES if self.tells(name, plane))

    def age_ms(self, name: str, plane: int) -> int:
        """The age of a told field."""
        return self._told[name, self.source(name, plane)].age_ms

    def is_clean(self, name: str) -> bool:
        """True where all that tell a field tell it as in a clean world, from parents that are as clean."""
        planes = self.planes_of(name)
        return bool(planes) and all(self._is_clean(name, plane) for plane in planes) and not self._shares(name)

    def stands_alone(self, name: str) -> bool:
        """True where a field, and all that it is related to, are clean, and secondaries could `cover` it."""
        related = self._related(name)
        return not related & set(self.item.series) and all(
            self.is_clean(n) and self.source(n, SECONDARY) not in self._quiet for n in related
        )

    def is_named(self, name: str) -> bool:
        """True where some source tells a field under one of its names."""
        return any(
            n == name and all(c.kind != "foreign_name" for c in exposure.changes)
            for (n, _), exposure in self._told.items()
        )

    def cover(self, name: str) -> bool:
        """Let the secondary tell a field and all that descends from it, as the primary does; False where it cannot."""
        wanted = self._related(name)
        if wanted & set(self.item.series):
            return False
        for each in self._order:
            if each in wanted:
                self._tell(each, SECONDARY)
        return True

    def withhold(self, name: str, *planes: int) -> None:
        """Let the sources of `planes` not tell a field, and compute nothing from it."""
        for plane in planes:
            for each in (name, *self.descendants(name)):
                self._told.pop((each, self.source(each, plane)), None)

    def silence(self, source: str) -> None:
        """Let a source tell nothing, and no plane compute from what it would have told."""
        self._quiet.add(source)
        for name, f in self._documents.items():
            if source in f["sources"]:
                self.withhold(name, f["sources"].index(source))

    def leave_only(self, source: str, name: str) -> None:
        """Let a source tell nothing but one field, and no plane compute from what it tells."""
        key = name, source
        left = self._told[key]
        self.silence(source)
        self._told[key] = left

    def blank(self, source: str) -> None:
        """Let a source report that it has no value of its fields, and no plane compute from them."""
        self._quiet.add(source)
        for name, f in self._documents.items():
            if (name, source) in self._told:
                plane = f["sources"].index(source)
                for child in self.descendants(name):
                    self.withhold(child, plane)
                self.change(name, [plane], Change("no_value"))

    def complete(self) -> bool:
        """True where every critical field is told by some source as in a clean world."""
        return all(
            any(self._is_clean(n, plane) for plane in PLANES)
            for n, f in self._documents.items()
            if f.get("critical", True)
        )

    def change(self, name: str, planes: Sequence[int], *changes: Change) -> None:
        """Do `changes` to a field in those of `planes` that tell it."""
        for plane in planes:
            key = name, self.source(name, plane)
            if key in self._told:
                self._told[key] = replace(self._told[key], changes=(*self._told[key].changes, *changes))

    def age(self, name: str, plane: int, age_ms: int) -> None:
        """Let the value of a plane be of another age, and still inside its limit."""
        key = name, self.source(name, plane)
        self._told[key] = replace(self._told[key], age_ms=age_ms)

    def remember(self, name: str, plane: int, age_ms: int, *changes: Change) -> None:
        """Let an agent recall what a source said of a field `age_ms` ago."""
        source = self.source(name, plane)
        self._recalled[name, source] = Exposure(name, source, age_ms, changes=changes, memory=True)

    def recalled(self, name: str) -> bool:
        """True where an agent recalls the field."""
        return any(n == name for n, _ in self._recalled)

    def primary_of(self, source: str) -> tuple[str, ...]:
        """The fields, windowed ones too, whose primary is `source`."""
        return tuple(n for n in self._documents if self.source(n, PRIMARY) == source)

    def fallible(self, names: Iterable[str]) -> tuple[str, ...]:
        """The primaries of `names` that tell no windowed field, in contract order: those that may be out."""
        found = dict.fromkeys(self.source(n, PRIMARY) for n in names)
        return tuple(s for s in found if not any(f in self.item.series for f in self.primary_of(s)))

    def outage(self, source: str) -> Outage:
        """A source that is out, and may be asked again soon."""
        return Outage(source, True, self.rng.choice((100, 200, 300, 500, 800)), self.rng.randint(1, 3))

    def facts(self, *outages: Outage) -> Facts:
        """All that is told and recalled now, in contract order."""
        return Facts(
            tuple(
                found[name, source]
                for name, f in self._documents.items()
                for source in f["sources"]
                for found in (self._told, self._recalled)
                if (name, source) in found
            ),
            outages,
        )

    # faults that several domains use

    def stale_report(self, name: str) -> tuple[Change, ...]:
        """A report beyond the limit; one of a measured field may be sent again just now, as if it were new."""
        again = not self.parents(name) and self.rng.random() < 0.5
        return (Change("repeated" if again else "aged", self.old(name)), *self.older_state(name))

    def late_report(self, name: str, kind: Late, amount: float) -> Change:
        """An older report of the primary, `amount` away and still inside the limit, that arrives after its newest."""
        room = self.limit_ms(name) - self.age_ms(name, PRIMARY)
        return Change(kind, amount, age_ms=self.rng.randint(room // 8, room * 3 // 4))

    def harmless_late_report(self, name: str) -> Change:
        """An older report that settles nothing: of another value and a lower version, or of the same and a higher."""
        difference = self.material_difference(name)
        if difference and self.rng.random() < 0.5:
            return self.late_report(name, "overtaken", difference.amount)
        return self.late_report(name, "overwritten", 0.0)

    def schema_fault(self, name: str) -> Change:
        """A form that the guard does not know: another schema identifier, or a unit that no registry knows."""
        kinds = [self.unaccepted_schema(name)] if self._documents[name].get("schemas") else []
        if self.numeric([name]):
            kinds.append(self.unheard_unit())
        return self.rng.choice(kinds or [Change("foreign_name", text=self.unknown_name(name))])

    def unaccepted_schema(self, name: str) -> Change:
        """The schema identifier after the newest that a field accepts."""
        schemas = self._documents[name]["schemas"]
        stem, _, version = str(schemas[0]).rpartition("/")
        return Change("schema", text=f"{stem}/{int(version) + 1}" if version.isdigit() else f"{schemas[0]}-next")

    def unheard_unit(self) -> Change:
        """A unit that no registry knows."""
        return Change("unheard_unit", text=self.rng.choice(UNHEARD))

    def ambiguous_unit(self, name: str) -> Change | None:
        """A unit that leaves open what is meant: none where one is needed, or one of another dimension."""
        kinds = [Change("foreign_unit", text=unit) for unit in self.foreign_units(name)]
        missing = [Change("no_unit")] * len(kinds) if self.with_unit([name]) else []  # each kind as likely
        return self.pick([*kinds, *missing])

    def foreign_units(self, name: str) -> tuple[str, ...]:
        """Units of another dimension than a field's; none where it is no number."""
        return foreign(self.unit(name)) if self.numeric([name]) else ()

    def other_units(self, name: str) -> tuple[str, ...]:
        """Units of a numeric field's dimension in which its value can be told."""
        return compatible(self.unit(name), self.number(name))

    def _draw_age(self, name: str, plane: int) -> int:
        if name in self.item.series:
            youngest_sample = min(age for age, _ in self.item.series[name])
            return self.rng.randint(_NEWEST_MS, youngest_sample - _NEWEST_MS // 2)
        heirs = self.descendants(name)
        low = _NEWEST_MS * self._tree.heights[name]
        high = min(self.limit_ms(n) for n in (name, *heirs)) // 2
        high = min([high, *(self._ages[p, plane] - _NEWEST_MS // 2 for p in self.parents(name))])
        return self.rng.randint(low, max(low, high))

    def _is_clean(self, name: str, plane: int) -> bool:
        key = name, self.source(name, plane)
        if key not in self._told or self._told[key].changes:
            return False
        return all(self._is_clean(parent, plane) for parent in self.parents(name))

    def _shares(self, name: str) -> bool:
        """Whether another field is told under a name that this one has too."""
        return any(change.other == name for exposure in self._told.values() for change in exposure.changes)

    def _related(self, name: str) -> set[str]:
        """A field, its descendants, and all that these are computed from."""
        heirs = (name, *self.descendants(name))
        return {each for heir in heirs for each in (heir, *self.ancestors(heir))}

    def _tell(self, name: str, plane: int) -> None:
        source = self.source(name, plane)
        parents = tuple((p, self.source(p, plane)) for p in self.parents(name))
        self._told[name, source] = Exposure(name, source, self._ages[name, plane], parents)


@lru_cache(maxsize=4096)
def _folded(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")
