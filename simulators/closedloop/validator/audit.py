"""The leakage audit: what leakage.json counts, concludes and solves, by its planted pairs and conflicts once more.

Whether a scope was violated at all no saved row tells; everything after that is here. Supports are checked against all
subsets, and the greedy one is made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator import words
from simulators.closedloop.validator.check import Fault
from simulators.closedloop.validator.design import COMPONENTS, REGIMES
from simulators.closedloop.validator.reading import Document, Saved, apart, at
from simulators.closedloop.validator.signal import PROTOCOL, cutoff

FILE: Final = "leakage.json"
CASES: Final = 12
PAIRS: Final = CASES // len(REGIMES)
MODES: Final = {
    "aggregate": "pooled",
    "anchor_on_all": "anchor",
    "anchor_on_planted": "anchor",
    "hard_probe_on_planted": "hard_probe",
}
"""Mode → what its conflicts have besides the pooled ones."""
TOLD: Final = ("anchor_on_planted", "hard_probe_on_planted")
ORIGINS: Final = ("anchor", "hard_probe", "support_made", "unexplained")

Parts = frozenset[int]


class _Wrong(Exception):
    """What stands in the document cannot be: place and reason."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A planted pair, and what the reference admits."""

    regime: int
    planted: Parts
    admitted: Parts


@dataclass(frozen=True, slots=True)
class _Family:
    """The conflicts of a case in a mode: their components, and the components of the predicates about one alone."""

    conflicts: tuple[Parts, ...]
    pooled: tuple[str, ...]
    alone: Parts


@cache
def scopes() -> dict[str, Parts]:
    """Every scope of one or two axes, then each component by itself."""
    found: dict[str, Parts] = {}
    for axes in (1, 2):
        for choice in product((None, 0, 1, 2, 3), (None, 0, 1), (None, 0, 1, 2)):
            if sum(value is not None for value in choice) == axes:
                named = zip(("quarter", "half", "third"), choice, strict=True)
                name = " ".join(f"{axis} {value}" for axis, value in named if value is not None)
                found[name] = frozenset(c for c in range(COMPONENTS) if _lies(c, choice))
    return found | {f"component {component}": frozenset({component}) for component in range(COMPONENTS)}


def _lies(component: int, choice: tuple[int | None, ...]) -> bool:
    parts = component // 6, component // 3 % 2, component % 3
    return all(wanted in (None, part) for wanted, part in zip(choice, parts, strict=True))


def faults(saved: Saved) -> Iterator[Fault]:
    """What does not follow in leakage.json."""
    document = saved.documents[FILE]
    try:
        cases = _cases(document.get("cases"))
        families = _families(document, cases)
    except _Wrong as wrong:
        yield Fault(FILE, *wrong.args)
        return
    wanted = _document(document, cases, families, cutoff(saved))
    for place, said, value in apart(document, wanted):
        yield Fault(FILE, place, f"is {said!r}; by {PROTOCOL}, its cases and their conflicts {value!r}")
    published = [[row.get(name) for name in ("what", "published", "mode")] for row in wanted["published"]]
    if (found := words.digest(document.get("fault"), document.get("costs"), published)) != words.AUDIT:
        yield Fault(FILE, "", f"its words, and what was published, are not those of the design: {found}")


def _parts(value: Any, place: str) -> Parts:
    known = isinstance(value, list) and all(type(one) is int and 0 <= one < COMPONENTS for one in value)
    if not known or any(a >= b for a, b in pairwise(value)):
        raise _Wrong(place, f"is {value!r}: no components in their order")
    return frozenset(value)


def _rows(value: Any, place: str, count: int | None = None) -> list[Document]:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise _Wrong(place, "is no list of objects")
    if count is not None and len(value) != count:
        raise _Wrong(place, f"has {len(value)} rows, not {count}")
    return value


def _cases(said: Any) -> list[_Case]:
    found: list[_Case] = []
    for number, row in enumerate(_rows(said, "cases", CASES)):
        place = f"cases {number}"
        case = _Case(
            REGIMES[number // PAIRS],
            _parts(row.get("planted"), f"{place} planted"),
            _parts(row.get("admitted"), f"{place} admitted"),
        )
        before = found[number - number % PAIRS :]
        if len(case.planted) != 2 or not case.planted <= case.admitted:
            raise _Wrong(place, "plants no pair of admitted components")
        if any(case.planted & other.planted or case.admitted != other.admitted for other in before):
            raise _Wrong(place, "shares a planted component with a case of its regime, or admits others")
        found.append(case)
    return found


def _families(document: Document, cases: list[_Case]) -> dict[str, list[_Family]]:
    found: dict[str, list[_Family]] = {}
    for mode, row in zip(MODES, _rows(document.get("modes"), "modes", len(MODES)), strict=True):
        rows = _rows(row.get("families"), f"{mode} families", CASES)
        found[mode] = [
            _family(mode, row.get("conflicts"), case, f"{mode} case {number}")
            for number, (row, case) in enumerate(zip(rows, cases, strict=True))
        ]
    for number, case in enumerate(cases):
        for mode, families in found.items():
            if families[number].pooled != found["aggregate"][number].pooled:
                raise _Wrong(f"{mode} case {number}", "pools other conflicts than aggregate does")
        anchored = found["anchor_on_all"][number].alone & case.planted
        if found["anchor_on_planted"][number].alone != anchored:
            raise _Wrong(f"anchor_on_planted case {number}", f"anchors not {sorted(anchored)}, as anchor_on_all does")
    return found


def _family(mode: str, said: Any, case: _Case, place: str) -> _Family:
    known = scopes()
    names = list(known)
    conflicts, order, alone = [], [], set[int]()
    for number, row in enumerate(_rows(said, place)):
        scope, predicate = row.get("scope"), row.get("predicate")
        if not isinstance(scope, str) or scope not in known:
            raise _Wrong(f"{place} conflict {number}", f"is of {scope!r}, no scope")
        components = known[scope] & case.admitted
        single = len(known[scope]) == 1
        probed = components if predicate == "hard_probe" else frozenset[int]()
        wanted = {
            "components": sorted(components),
            "predicate": MODES[mode] if single else "pooled",
            "scope": scope,
            "role": "counterfactual" if probed else "passive",
            "probed": sorted(probed),
        }
        for member, one, other in apart(row, wanted):
            raise _Wrong(f"{place} conflict {number}", f"{member} is {one!r}, not {other!r}")
        speaks_of = case.planted if mode in TOLD else case.admitted if mode != "aggregate" else frozenset[int]()
        if not components or (single and not components <= speaks_of):
            raise _Wrong(f"{place} conflict {number}", "names nothing that its predicate may speak of")
        order.append(names.index(scope))
        conflicts.append(components)
        alone |= components if single else frozenset()
    if any(a >= b for a, b in pairwise(order)):
        raise _Wrong(place, "its conflicts are not each of another scope, in their order")
    pooled = tuple(names[scope] for scope in order if len(known[names[scope]]) > 1)
    return _Family(tuple(conflicts), pooled, frozenset(alone))


def _document(
    document: Document, cases: list[_Case], families: dict[str, list[_Family]], chosen: float | None
) -> Document:
    """leakage.json as it must be; words, and conflicts, as they are."""
    modes = [_mode(mode, document["modes"][place], cases, families) for place, mode in enumerate(MODES)]
    by_name = dict(zip(MODES, modes, strict=True))
    anchored, probed = by_name["anchor_on_planted"], by_name["hard_probe_on_planted"]
    ours = [
        _of(anchored, "solvers", "same_supports"),
        _of(anchored, "solvers", "recovered_exact"),
        f"{100 * anchored['not_singleton'] / anchored['conflicts']:.1f} %" if anchored["conflicts"] else "none",
        _of(anchored, "verdicts", "SINGLETON_REVEAL", "cases_with_pair"),
        _of(probed, "solvers", "recovered_exact"),
        _of(probed, "verdicts", "SINGLETON_REVEAL", "cases_with_pair"),
        _of(probed, "verdicts", "RESIDUAL_EMPTY", "cases_with_residual"),
    ]
    published = document.get("published")
    rows = published if isinstance(published, list) else []
    return {
        "format": "wirelessops.study-leakage/1",
        "cutoff": chosen,
        "blocks": {"reference": "pilot", "current": "development"},
        "fault": document.get("fault"),
        "costs": document.get("costs"),
        "scopes": {name: sorted(components) for name, components in scopes().items()},
        "cases": [
            {"case": number, "regime": case.regime, "planted": sorted(case.planted), "admitted": sorted(case.admitted)}
            for number, case in enumerate(cases)
        ],
        "modes": modes,
        "published": [
            {"what": at(row, "what"), "published": at(row, "published"), "mode": at(row, "mode"), "ours": figure}
            for row, figure in zip([row if isinstance(row, dict) else {} for row in rows][:7], ours, strict=False)
        ],
    }


def _of(mode: Document, *path: str) -> str:
    return f"{at(mode, *path)}/{mode['cases']}"


def _mode(mode: str, said: Document, cases: list[_Case], families: dict[str, list[_Family]]) -> Document:
    found = families[mode]
    conflicts = [conflict for family in found for conflict in family.conflicts]
    solved = [_solved(family.conflicts) for family in found]
    # A pooled conflict of one component is all that its scope has admitted: support made it.
    by = [
        {
            MODES[mode]: family.alone & case.planted,
            "support_made": _singletons(family.conflicts[: len(family.pooled)]) & case.planted,
        }
        for family, case in zip(found, cases, strict=True)
    ]
    alone = [frozenset[int]().union(*of_case.values()) for of_case in by]
    dependent = sum(_dependent(mode, number, cases, families) for number in range(CASES))
    pairs = [case.planted for case in cases]
    recovered = [sum(one[solver] == sorted(pair) for one, pair in zip(solved, pairs, strict=True)) for solver in (2, 3)]
    left = sum(bool(residual) for _, residual, _, _ in solved)
    return {
        "mode": mode,
        "told_what_is_planted": mode in TOLD,
        "cases": CASES,
        "conflicts": len(conflicts),
        "not_singleton": sum(len(conflict) > 1 for conflict in conflicts),
        "verdicts": {
            "LABEL_DEPENDENT": {"tripped": dependent > 0, "cases": dependent},
            "SINGLETON_REVEAL": {
                "tripped": any(alone),
                "cases_with_any": sum(map(bool, alone)),
                "cases_with_pair": sum(one == pair for one, pair in zip(alone, pairs, strict=True)),
                "cases_by_origin": {origin: sum(bool(of_case.get(origin)) for of_case in by) for origin in ORIGINS},
            },
            "RESIDUAL_EMPTY": {"tripped": not left, "cases_with_residual": left},
        },
        "solvers": {
            "comparison": "DESCRIPTIVE" if left else "NOT_ESTIMABLE",
            "same_supports": sum(exact == greedy for _, _, exact, greedy in solved),
            "recovered_exact": recovered[0],
            "recovered_greedy": recovered[1],
        },
        "families": [
            {
                "case": number,
                "conflicts": said["families"][number]["conflicts"],
                "forced": forced,
                "residual": residual,
                "exact": {"components": exact, "cost": len(exact)},
                "greedy": {"components": greedy, "cost": len(greedy)},
            }
            for number, (forced, residual, exact, greedy) in enumerate(solved)
        ],
    }


def _dependent(mode: str, number: int, cases: list[_Case], families: dict[str, list[_Family]]) -> bool:
    """Whether another pair of the regime gives other conflicts as the label; restoring a bystander gives none."""
    if mode not in TOLD:
        return False
    told = families[mode][number].alone
    if mode == "hard_probe_on_planted":
        return bool(told)
    anchored = families["anchor_on_all"][number].alone
    first = number - number % PAIRS
    return any(case.planted & anchored != told for case in cases[first : first + PAIRS] if case is not cases[number])


def _singletons(conflicts: tuple[Parts, ...]) -> Parts:
    return frozenset(component for conflict in conflicts if len(conflict) == 1 for component in conflict)


@cache
def _solved(conflicts: tuple[Parts, ...]) -> tuple[list[int], list[list[int]], list[int], list[int]]:
    """Forced components; conflicts left of which none contains another; the exact support; the greedy one."""
    forced = _singletons(conflicts)
    unmet = {conflict for conflict in conflicts if not conflict & forced}
    residual = sorted(
        (sorted(one) for one in unmet if not any(other < one for other in unmet)), key=lambda one: (len(one), one)
    )
    return sorted(forced), residual, sorted({*forced, *_least(residual)}), sorted({*forced, *_greedy(residual)})


def _least(residual: list[list[int]]) -> list[int]:
    """Of all subsets that meet every conflict one of the fewest components, the lexicographically first."""
    named = sorted({component for conflict in residual for component in conflict})
    # The first component is the highest bit: of equally many components the first in order is the largest number.
    bit = {component: 1 << (len(named) - 1 - place) for place, component in enumerate(named)}
    if not named:
        return []
    subsets = np.arange(1 << len(named), dtype=np.uint32)
    for conflict in residual:
        subsets = subsets[(subsets & np.uint32(sum(bit[component] for component in conflict))) != 0]
    sizes = sum((subsets >> np.uint32(place)) & np.uint32(1) for place in range(len(named)))
    best = int(subsets[sizes == np.min(sizes)].max())
    return [component for component in named if best & bit[component]]


def _greedy(residual: list[list[int]]) -> list[int]:
    unmet, chosen = residual, list[int]()
    while unmet:
        met = [sum(component in conflict for conflict in unmet) for component in range(COMPONENTS)]
        chosen.append(met.index(max(met)))
        unmet = [conflict for conflict in unmet if chosen[-1] not in conflict]
    return chosen
