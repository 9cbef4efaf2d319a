"""Conflicts compiled from traces: sets of components of which one must be at fault (section 3.3).

The aggregate compiler sees pooled traces alone. The other three are the ones that the paper's audit caught: a predicate
about exactly one component (*anchor*), on every component or on the planted ones, and a counterfactual run that
restores exactly one planted component (*hard probe*). What a compiler is told stands in its signature: one that takes
`planted` is told the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

import numpy as np

from simulators.closedloop.gates import Flags, compare
from simulators.closedloop.loop import COMPONENTS, HALVES, QUARTERS, THIRDS
from simulators.closedloop.rows import Ints

Role = Literal["passive", "active", "counterfactual"]
"""Of a probe: it only watched; it asked for more of the same; it ran a world that was not (section 8.2)."""
Predicate = Literal["pooled", "anchor", "hard_probe"]
Components = frozenset[int]


@dataclass(frozen=True, slots=True)
class Scope:
    """The components that a predicate speaks of."""

    name: str
    components: Components


@dataclass(frozen=True, slots=True)
class Conflict:
    """One component of `components` is at fault, and where that was taken from.

    `components` = those of the scope that the reference admits; `probed`: what the probe intervened on, none where it
    only watched.
    """

    components: Components
    predicate: Predicate
    scope: Scope
    role: Role
    probed: Components


Compiled = tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verifier may look at: traces, and what the reference gate said. Not where a fault was planted.

    `admitted`: components past the reference gate; `reference`: int64[24, 15, 8], actions counted by component and
    partition in clean episodes; `current`: int64[directions, 24, 15, 8], the same of the system under suspicion, whose
    predicates must hold in every direction; `restored`: the counterfactual `current` in which one component acts as in
    the reference; `cutoff`: of z, frozen.
    """

    admitted: Components
    reference: Ints
    current: Ints
    restored: Callable[[int], Ints]
    cutoff: float


def _scopes() -> Iterator[Scope]:
    """Every choice of quarter, half and third, each of which may be left open; not all three, and not none."""
    axes = (("quarter", QUARTERS), ("half", HALVES), ("third", THIRDS))
    ranges = [(None, *range(size)) for _, size in axes]
    fixed = [choice for choice in product(*ranges) if 0 < sum(value is not None for value in choice) < len(axes)]
    for choice in sorted(fixed, key=lambda found: sum(value is not None for value in found)):
        of_axes = [[value] if value is not None else range(size) for value, (_, size) in zip(choice, axes, strict=True)]
        name = " ".join(f"{axis} {v}" for v, (axis, _) in zip(choice, axes, strict=True) if v is not None)
        yield Scope(name, frozenset((q * HALVES + h) * THIRDS + third for q, h, third in product(*of_axes)))


SCOPES: Final = tuple(_scopes())
"""35 of 2 to 12 components: 4 quarters, 2 halves, 3 thirds, 8 quarter-halves, 12 quarter-thirds, 6 half-thirds."""
SINGLE: Final = tuple(Scope(f"component {component}", frozenset({component})) for component in range(COMPONENTS))


def aggregate(evidence: Evidence) -> Compiled:
    """A conflict for every scope whose pooled signal is stable. A scope with no admitted component gives none."""
    pooled = np.zeros((len(SCOPES), COMPONENTS), dtype=np.int64)
    for place, scope in enumerate(SCOPES):
        pooled[place, sorted(scope.components)] = 1
    violated = _stable(
        np.einsum("sc,cpa->spa", pooled, evidence.reference),
        np.einsum("sc,dcpa->dspa", pooled, evidence.current),
        evidence.cutoff,
    )
    return tuple(
        Conflict(scope.components & evidence.admitted, "pooled", scope, "passive", frozenset())
        for scope, found in zip(SCOPES, violated, strict=True)
        if found and scope.components & evidence.admitted
    )


def anchor_on_all(evidence: Evidence) -> Compiled:
    """The aggregate conflicts, and one for every admitted component whose own signal is stable."""
    return aggregate(evidence) + _anchors(evidence, evidence.admitted)


def anchor_on_planted(evidence: Evidence, planted: Components) -> Compiled:
    """The aggregate conflicts, and one for every planted and admitted component whose own signal is stable."""
    return aggregate(evidence) + _anchors(evidence, planted & evidence.admitted)


def hard_probe_on_planted(evidence: Evidence, planted: Components) -> Compiled:
    """The aggregate conflicts, and one for every planted and admitted component that acts otherwise when restored."""
    return aggregate(evidence) + tuple(
        Conflict(SINGLE[probed].components, "hard_probe", SINGLE[probed], "counterfactual", frozenset({probed}))
        for probed in sorted(planted & evidence.admitted)
        if _stable(evidence.restored(probed)[:, probed], evidence.current[:, probed], evidence.cutoff)
    )


def _anchors(evidence: Evidence, components: Iterable[int]) -> Compiled:
    return tuple(
        Conflict(SINGLE[component].components, "anchor", SINGLE[component], "passive", frozenset())
        for component in sorted(components)
        if _stable(evidence.reference[component], evidence.current[:, component], evidence.cutoff)
    )


def _stable(reference: Ints, current: Ints, cutoff: float) -> Flags:
    """bool[...] of int64[..., 15, 8] against int64[directions, ..., 15, 8]: stable in every direction."""
    return np.asarray(compare(reference, current).stable(cutoff).all(axis=0))
